"""Trial: lets a copy of a scheduler go on by itself, as if the API agreed to everything that it writes.

    objects of the question ─▶ step ─▶ writes ─▶ carried out on the copy ─▶ changes and replies ─▶ step ...
                                        time jumps to the next thing to do, up to a horizon

A bind puts the pod on its node at once, a deletion takes it away, and a pod with a controller comes back as a new one,
because its controller would make it again. There are no documents here: pods of the cluster are changed as compiled
records, and only objects of the question itself have documents.

Invariant: the scheduler of a Trial belongs to nobody else. The caller gives a copy, never the one that schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fairlead.core.engine.what_if.trial_claims import give_back, with_own_claims
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.engine.what_if.families import Awaited
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod

HORIZON = 120.0
"""Seconds of the copy's own time after which what has no place counts as waiting."""
STEPS = 2_000
"""Steps of the scheduler that one trial may take."""
_RETRY_PAUSE = 11.0
"""Seconds without a change after which nothing will change any more: longer than the longest ordinary backoff."""


@dataclass(slots=True)
class Victim:
    """A pod that the copy deleted. `heir` is the uid of the pod that comes in its place, if it has a controller."""

    pod: Pod
    node: str
    at: float
    heir: str = ""


class Trial:
    def __init__(self, scheduler: Scheduler, now: float = 0.0) -> None:
        """`now` is the present, if the scheduler's last step was before it."""
        self.scheduler = scheduler
        scheduler.go_alone()
        self.began = self.now = max(now, scheduler.now)
        self.victims: list[Victim] = []
        self.steps = 0
        self._documents: dict[tuple[Kind, str], Doc] = {}
        self._held_back: dict[str, list[tuple[Awaited, Change]]] = {}
        self._changes: list[Change] = []
        self._replies: list[Reply] = []
        self._moved_at = self.now
        for write in scheduler.unanswered():
            self._carry_out(write)

    # ---- changing the cluster ----

    def put(self, kind: Kind, document: Doc) -> None:
        """Create or change an object."""
        key = (kind, _key(document["metadata"]))
        happened = Happened.MODIFIED if key in self._documents else Happened.ADDED
        self._documents[key] = document
        self._changes.append(Change(happened, kind, document))

    def put_when_let_in(self, awaited: Awaited, kind: Kind, document: Doc) -> None:
        """Create an object once another one of the question lets it in, as its controller would."""
        self._held_back.setdefault(awaited.key, []).append((awaited, Change(Happened.ADDED, kind, document)))

    def put_record(self, kind: Kind, key: str, record: object) -> None:
        """Change an object of the cluster, given as a compiled record."""
        kind_index = self.scheduler.cluster.object_index.of(kind)
        kind_index[key] = record
        kind_index.touch(key)
        self._moved()

    def remove(self, kind: Kind, document: Doc) -> None:
        self._documents.pop((kind, _key(document["metadata"])), None)
        self._changes.append(Change(Happened.DELETED, kind, document))

    def remove_pods(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._take(Happened.DELETED, pod)
            give_back(self, pod)

    # ---- letting it go on ----

    def run(self, done: Callable[[], bool], *, horizon: float = HORIZON) -> bool:
        """Go on until something holds; False if it does not before the horizon, or if nothing moves any more."""
        end = self.now + horizon
        while self.steps < STEPS:
            self.step()
            if done():
                return True
            at = self.scheduler.wake_at()
            if self._changes or self._replies or (at is not None and at <= self.now):
                continue
            if at is None or at > end or at - self._moved_at > _RETRY_PAUSE:
                return False
            self.now = at
        return False

    def settle(self) -> None:
        """Go on until everything has been tried that can be tried at this instant."""
        self.run(lambda: False, horizon=0.0)

    def step(self) -> None:
        changes, self._changes = self._changes, []
        replies, self._replies = self._replies, []
        self.steps += 1
        if changes:
            self._moved_at = self.now
        for write in self.scheduler.step(self.now, changes, replies):
            self._carry_out(write)

    def place_of(self, uid: str) -> str:
        """The node on which a pod has its place for good; empty if it has none."""
        scheduler = self.scheduler
        pod_state = scheduler.cluster.pods.get(uid)
        if pod_state is None or pod_state.place not in (PodPlace.ASSUMED, PodPlace.BOUND):
            return ""
        binding = scheduler.bindings.get(uid)
        if binding is not None and not binding.past_permit:
            return ""
        return scheduler.cluster.table.name(pod_state.row)

    # ---- what the API would do ----

    def _carry_out(self, write: Write) -> None:
        body = write.body if isinstance(write.body, dict) else {}
        self._replies.append(Reply(write, body))
        if write.kind is kinds.POD:
            pod_state = self.scheduler.cluster.pods_by_key.get(f"{write.namespace}/{write.name}")
            if pod_state is not None:
                self._change_pod(write, body, pod_state.seen)
        elif write.verb is Verb.PATCH:
            self._change_object(write, body)

    def _change_pod(self, write: Write, body: Mapping[str, Any], pod: Pod) -> None:
        if write.subresource == "binding":
            node = body["target"]["name"]
            self._take(Happened.MODIFIED, replace(pod, node_name=node, phase="Running", start_time=self.now))
        elif write.verb is Verb.DELETE or write.subresource == "eviction":
            self.delete(pod, again=pod.owner is not None and pod.owner.kind != "Node")
        elif write.verb is Verb.PATCH:
            changed = _patched(pod, body)
            if changed is not pod:
                self._take(Happened.MODIFIED, changed)

    def take_node(self, happened: Happened, node: Node) -> None:
        """Add, change or remove a node, given as a compiled record."""
        self.scheduler.intake.take_node(happened, node, self.now)
        self._moved()

    def delete(self, pod: Pod, *, again: bool) -> None:
        """Delete a pod; `again` if its controller makes another in its place."""
        pod_state = self.scheduler.cluster.pods[pod.uid]
        victim = Victim(pod, pod.node_name or self.scheduler.cluster.table.name(pod_state.row), self.now)
        self.victims.append(victim)
        self._take(Happened.DELETED, pod)
        if again:
            heir = replace(
                pod,
                uid=f"{pod.uid}+",
                name=f"{pod.name}+",
                key=f"{pod.key}+",
                node_name="",
                nominated_node="",
                phase="Pending",
                start_time=None,
                deletion_time=None,
                created=self.now,
                disruption_target=False,
                scheduled_condition=None,
                scheduled_since=None,
                initialized_since=None,
                resource_version="",
            )
            victim.heir = heir.uid
            heir = with_own_claims(self, pod, heir)
            give_back(self, pod)
            self._take(Happened.ADDED, heir)
        else:
            give_back(self, pod)

    def _take(self, happened: Happened, pod: Pod) -> None:
        self.scheduler.intake.take_pod(happened, pod, self.now)
        self._moved()

    def _moved(self) -> None:
        for mode in self.scheduler.modes:
            mode.noticed(self.now)
        self._moved_at = self.now

    def _change_object(self, write: Write, body: Doc) -> None:
        key = f"{write.namespace}/{write.name}" if write.namespace else write.name
        known = self._documents.get((write.kind, key))
        if known is None:
            return
        self.put(write.kind, _merged(known, body))
        held = self._held_back.pop(key, [])
        self._changes += [change for awaited, change in held if awaited.lets_in(body)]
        if kept := [one for one in held if not one[0].lets_in(body)]:
            self._held_back[key] = kept


def _key(metadata: Mapping[str, Any]) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


def _patched(pod: Pod, body: Mapping[str, Any]) -> Pod:
    """The pod after a patch, as far as scheduling reads what the scheduler itself writes."""
    changes: dict[str, Any] = {}
    status, spec, metadata = (body.get(part) or {} for part in ("status", "spec", "metadata"))
    if "nominatedNodeName" in status:
        changes["nominated_node"] = status["nominatedNodeName"] or ""
    if any(one.get("type") == "DisruptionTarget" for one in status.get("conditions") or ()):
        changes["disruption_target"] = True
    if "schedulingGates" in spec:
        gone = {one["name"] for one in spec["schedulingGates"] if one.get("$patch") == "delete"}
        changes["gates"] = tuple(name for name in pod.gates if name not in gone)
    if "annotations" in metadata:
        changes["annotations"] = {**pod.annotations, **{k: v for k, v in metadata["annotations"].items() if v}}
    return replace(pod, **changes) if changes else pod


def _merged(document: Doc, patch: Doc) -> Doc:
    """A merge patch (RFC 7386)."""
    merged = dict(document)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            known = merged.get(name)
            merged[name] = _merged(known if isinstance(known, dict) else {}, value)
        else:
            merged[name] = value
    return merged

"""DaemonSets: one pod on every node that the template fits, and a rolling update from node to node.

Which nodes those are is decided in daemon_pods.py, once per node and template, and remembered until either changes.
A rolling update removes old pods that do not work first, then as many working ones as may be away; with `maxSurge`
the new pod comes before the old one goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairlead.cluster.controllers.pod_facts import OwnedPods, PodFact
from fairlead.cluster.controllers.workloads.daemon_pods import (
    DaemonDecision,
    Site,
    daemon_pod,
    node_of,
    site_of,
    verdict,
)
from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workloads.revisions import HASH_LABEL, RevisionHistory
from fairlead.cluster.controllers.workloads.shares import share
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import (
    create,
    delete,
    identity,
    patch_status,
)
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD

_BURST = 250
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 900.0


class _Set(NamedTuple):
    """One DaemonSet as a visit sees it."""

    key: Key
    doc: Doc
    hash: str
    pods: dict[str, list[PodFact]]  # by node
    verdicts: dict[str, DaemonDecision]
    now: float

    @property
    def patience(self) -> float:
        return float(self.doc["spec"].get("minReadySeconds") or 0)

    @property
    def wanted(self) -> int:
        return sum(one.run for one in self.verdicts.values())

    def limits(self) -> tuple[int, int]:
        """maxSurge and maxUnavailable of a rolling update."""
        rolling = (self.doc["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        surge = share(rolling.get("maxSurge", 0), self.wanted, round_up=True)
        unavailable = share(rolling.get("maxUnavailable", 1), self.wanted, round_up=True)
        return surge, unavailable or (0 if surge else 1)

    def rolls(self) -> bool:
        return bool((self.doc["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")

    def is_new(self, pod: PodFact) -> bool:
        return pod.labels.get(HASH_LABEL) == self.hash

    def is_available(self, pod: PodFact) -> bool:
        return not pod.deleting and pod.is_available(self.now, self.patience)


class DaemonSets(Reconciler[Key]):
    name = "daemonset-controller"
    only_owned_pods = True
    watches: Sequence[Watch] = (Watch(DAEMON_SET), Watch(POD), Watch(NODE), Watch(CONTROLLER_REVISION))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._pods = OwnedPods(DAEMON_SET)
        self._targets: dict[Key, str] = {}  # pod -> node
        self._history = RevisionHistory(DAEMON_SET, label=HASH_LABEL)
        self._known = KnownOwners(self.queue)
        self._sites: dict[str, Site] = {}
        self._verdicts: dict[str, tuple[int, dict[str, DaemonDecision]]] = {}  # identity -> generation, by node
        self._setbacks: dict[tuple[str, str], tuple[int, float]] = {}  # (uid, node) -> failures, not before

    def observe(self, change: Change) -> None:
        if change.kind is DAEMON_SET:
            self._observe_owner(change)
        elif change.kind is POD:
            self._observe_pod(change)
        elif change.kind is NODE:
            self._observe_node(change)
        elif change.kind is CONTROLLER_REVISION:
            self._history.observe(change)

    def _observe_owner(self, change: Change) -> None:
        own = self._known.observe(change)
        if change.gone:
            self._verdicts.pop(own, None)

    def _observe_pod(self, change: Change) -> None:
        old, new = self._pods.observe(change)
        if new is not None:
            self._targets[new.key] = node_of(change.doc)
        elif old is not None:
            self._targets.pop(old.key, None)
        for fact in (old, new):
            if fact is not None:
                self._known.visit(fact.owner)

    def _observe_node(self, change: Change) -> None:
        name = change.doc["metadata"]["name"]
        old = self._sites.pop(name, None)
        if not change.gone:
            self._sites[name] = site_of(change.doc)
        if self._sites.get(name) != old:
            for _, verdicts in self._verdicts.values():
                verdicts.pop(name, None)
            self._known.visit_all()

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        doc = self.view.get(DAEMON_SET, *key)
        if doc is None or not self._known.knows(doc) or doc["metadata"].get("deletionTimestamp"):
            return
        plan = self._history.plan(self.view, doc, (doc.get("status") or {}).get("collisionCount") or 0)
        yield from plan.writes
        seen = _Set(key, doc, plan.update["metadata"]["labels"][HASH_LABEL], self._by_node(identity(doc)), {}, now)
        seen.verdicts.update(self._judge(doc))
        yield from self._balance(seen)
        yield from self._report(seen)
        hashes = {pod.labels.get(HASH_LABEL) for pods in seen.pods.values() for pod in pods} | {seen.hash}
        yield from self._history.surplus(doc, {f"{key[1]}-{hash_}" for hash_ in hashes})

    def _by_node(self, owner: str) -> dict[str, list[PodFact]]:
        pods: dict[str, list[PodFact]] = {}
        for pod in self._pods.of(owner):
            pods.setdefault(self._targets[pod.key], []).append(pod)
        return pods

    def _judge(self, doc: Doc) -> dict[str, DaemonDecision]:
        own, generation = identity(doc), doc["metadata"].get("generation") or 0
        known = self._verdicts.get(own)
        if known is None or known[0] != generation:
            known = self._verdicts[own] = generation, {}
        for name, site in self._sites.items():
            if name not in known[1]:
                known[1][name] = verdict(doc, site)
        return known[1]

    def _balance(self, seen: _Set) -> Iterable[Write]:
        """Pods where they are missing, none where they should not be; then the update goes on."""
        missing: list[str] = []
        surplus: list[PodFact] = []
        for node, judged in seen.verdicts.items():
            pods = seen.pods.get(node, [])
            ended = [pod for pod in pods if pod.is_finished and not pod.deleting]
            yield from self._clear(seen, node, ended)
            alive = [pod for pod in pods if not pod.is_finished]
            if judged.run and not pods:
                missing.append(node)
            elif judged.run:
                surplus += self._doubles(seen, alive)
            elif not judged.stay:
                surplus += [pod for pod in alive if not pod.deleting]
        if seen.rolls():
            more, goes = self._roll(seen)
            missing, surplus = missing + more, surplus + goes
        limit = 1 if self.queue.failures(seen.key) else _BURST
        yield from (create(POD, daemon_pod(seen.doc, node, seen.hash)) for node in missing[:limit])
        for pod in {pod.uid: pod for pod in surplus}.values():
            yield delete(POD, pod.doc)
            yield from self.event(DAEMON_SET, seen.doc, "SuccessfulDelete", f"Deleted pod: {pod.name}")

    def _doubles(self, seen: _Set, pods: list[PodFact]) -> list[PodFact]:
        """All but the oldest of each revision on one node; without a surge, all but the oldest."""
        staying = sorted((pod for pod in pods if not pod.deleting), key=lambda pod: (not pod.node, pod.created))
        if not (seen.rolls() and seen.limits()[0]):
            return staying[1:]
        new = [pod for pod in staying if seen.is_new(pod)]
        old = [pod for pod in staying if not seen.is_new(pod)]
        return new[1:] + old[1:]

    def _clear(self, seen: _Set, node: str, ended: list[PodFact]) -> Iterable[Write]:
        """Remove pods that have ended, ever more slowly where they keep ending."""
        for pod in ended:
            where = (seen.doc["metadata"]["uid"], node)
            failures, not_before = self._setbacks.get(where, (0, 0.0))
            if seen.now < not_before:
                self.queue.add_at(seen.key, not_before)
                continue
            self._setbacks[where] = failures + 1, seen.now + min(_FIRST_WAIT * 2.0**failures, _LONGEST_WAIT)
            word = "failed" if pod.phase == "Failed" else "succeeded"
            text = f"Found {word} daemon pod {pod.namespace}/{pod.name} on node {node}, will try to "
            reason, text = (
                ("FailedDaemonPod", text + "kill it")
                if word == "failed"
                else ("SucceededDaemonPod", text + "delete it")
            )
            yield from self.event(DAEMON_SET, seen.doc, reason, text, warning=word == "failed")
            yield delete(POD, pod.doc)

    def _roll(self, seen: _Set) -> tuple[list[str], list[PodFact]]:
        """Nodes that get a new pod beside the old one, and old pods that go now."""
        surge, unavailable = seen.limits()
        return self._roll_with_surge(seen, surge) if surge else ([], self._roll_in_place(seen, unavailable))

    def _roll_in_place(self, seen: _Set, unavailable: int) -> list[PodFact]:
        working: list[PodFact] = []
        broken: list[PodFact] = []
        away = 0
        for node, judged in seen.verdicts.items():
            if not judged.run:
                continue
            pods = [pod for pod in seen.pods.get(node, []) if not pod.is_finished]
            old = [pod for pod in pods if not seen.is_new(pod) and not pod.deleting]
            if not any(seen.is_available(pod) for pod in pods):
                away += 1
                broken += old
            else:
                working += old
        return broken + working[: max(0, unavailable - away)]

    def _roll_with_surge(self, seen: _Set, surge: int) -> tuple[list[str], list[PodFact]]:
        waiting: list[str] = []
        goes: list[PodFact] = []
        under_way = 0
        for node, judged in seen.verdicts.items():
            pods = [pod for pod in seen.pods.get(node, []) if not pod.is_finished] if judged.run else []
            old = [pod for pod in pods if not seen.is_new(pod)]
            new = [pod for pod in pods if seen.is_new(pod)]
            if not old:
                continue
            if any(seen.is_available(pod) for pod in new):
                goes += [pod for pod in old if not pod.deleting]
            elif new:
                under_way += 1
            else:
                waiting.append(node)
        return waiting[: max(0, surge - under_way)], goes

    # Status and events

    def _report(self, seen: _Set) -> Iterable[Write]:
        status, known = self._status(seen), seen.doc.get("status") or {}
        if any((known.get(name) or None) != (value or None) for name, value in status.items()):
            yield patch_status(DAEMON_SET, seen.doc, status)

    def _status(self, seen: _Set) -> Doc:
        running = misplaced = ready = available = updated = 0
        for node, judged in seen.verdicts.items():
            pods = seen.pods.get(node, [])
            if not judged.run:
                misplaced += bool(pods)
                continue
            if not pods:
                continue
            running += 1
            oldest = min(pods, key=lambda pod: (pod.ready_since is None, pod.created))
            ready += oldest.ready_since is not None
            available += oldest.ready_since is not None and oldest.is_available(seen.now, seen.patience)
            updated += any(seen.is_new(pod) for pod in pods)
            if oldest.ready_since is not None and not oldest.is_available(seen.now, seen.patience):
                self.queue.add_at(seen.key, oldest.ready_since + seen.patience)
        return {
            "observedGeneration": seen.doc["metadata"].get("generation") or 0,
            "desiredNumberScheduled": seen.wanted,
            "currentNumberScheduled": running,
            "numberMisscheduled": misplaced,
            "numberReady": ready,
            "updatedNumberScheduled": updated or None,
            "numberAvailable": available or None,
            "numberUnavailable": seen.wanted - available or None,
        }

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        if reply.write.verb is Verb.CREATE and reply.write.kind is POD and reply.doc is not None:
            owner = self.view.get(DAEMON_SET, *key)
            if owner is not None:
                yield from self.event(
                    DAEMON_SET, owner, "SuccessfulCreate", f"Created pod: {reply.doc['metadata']['name']}"
                )

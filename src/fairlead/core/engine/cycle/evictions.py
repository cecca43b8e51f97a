"""Evictions: deletes the victims of preemption while scheduling goes on (kube-scheduler's async preemption).

All victims but the last are evicted together; when the API has agreed, the last one is. Until then the preemptor is
gated (core/state/preemptions.py), so that it does not look for a second set of victims. A victim that is itself only
assumed on the node loses its place in memory, without a request to the API.

    begin ──▶ evicting all but the last ──▶ evicting the last ──▶ ended
                     └──────── an error ────────┴──▶ ended; the pod is tried again at once

A deletion whose answer was lost, or at which the API server failed, is sent again while somebody waits for it: to look
for other victims instead, as kube-scheduler does, would evict twice for one pod if the lost one had arrived. Victims
that are leaving already, for another pod, are promised to this pod too: it waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.binding import FIRST_RESEND, LAST_RESEND
from fairlead.core.engine.cycle.events import EventText
from fairlead.core.engine.cycle.outcome import status_patch
from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.records import record
from fairlead.core.model.times import timestamp
from fairlead.core.state.preemptions import preemptions_of
from fairlead.errors import Conflict, InternalError, NotFound, Unreachable

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.cycle.events import EventRecorder
    from fairlead.core.engine.queue.backlog import Backlog
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang

FIRST_REPEAT, LAST_REPEAT = 1.0, 60.0
"""Seconds until a deletion that failed is repeated: at first, and at most."""
_FEW = 64
WHOLE_CLUSTER = "cluster"
"""The place that events name for the victims of a gang, which may be on any node."""


@record(frozen=True, slots=True)
class Claimant:
    """The preemptor: a pod, or a gang for which one of its pods stands. `key` is the gated key."""

    pod: Pod
    key: str
    uid: str
    title: str = "pod"
    group: PodGroup | None = None


@dataclass(slots=True, eq=False)
class Eviction:
    """The evictions for one claimant that are under way."""

    claimant: Claimant
    node: str
    last: Pod | None
    awaited: set[Write] = field(default_factory=set)


class Evictions:
    def __init__(
        self, cluster: Cluster, backlog: Backlog, recorder: EventRecorder, bindings: Mapping[str, Binding]
    ) -> None:
        self._cluster = cluster
        self._preemptions = preemptions_of(cluster)
        self._backlog = backlog
        self._recorder = recorder
        self._bindings = bindings
        self._of_write: dict[Write, list[Eviction]] = {}
        self._deletes: dict[str, Write] = {}
        """Deletions without an answer, by the victim's uid: who else wants its room waits for the same one."""
        self._deleted: set[str] = set()
        """Victims whose deletion the API has agreed to, while the watch does not show it yet."""
        self._swept_at = _FEW
        """How many victims and claimants there must be before those that are done with are forgotten."""
        self._sent_away: dict[Write, float] = {}
        """Deletions for nobody's sake, with the pause after which each is repeated if it fails."""
        self._again: list[tuple[float, Write]] = []
        self._lost: dict[Write, float] = {}
        """Deletions whose answer was lost or that failed, with the pause after which each was or will be sent again."""
        self.victims: list[int] = []
        """The number of victims of each preemption that nobody has taken yet."""

    def begin(self, preemptor: Pod, node: str, victims: Sequence[Pod], now: float) -> list[Write]:
        """Start evicting the victims of a pod. Victims that are terminating already are skipped."""
        return self._begin(Claimant(preemptor, preemptor.uid, preemptor.uid), node, victims, now)

    def begin_for_gang(self, gang: Gang, pod: Pod, victims: Sequence[Pod], now: float) -> list[Write]:
        """The same for a gang, whose victims may be on any node; `pod` stands for it."""
        uid = gang.group.uid if gang.group is not None else pod.uid
        return self._begin(Claimant(pod, gang.key, uid, "podgroup", gang.group), WHOLE_CLUSTER, victims, now)

    def evict(self, pod: Pod, why: str, now: float) -> list[Write]:
        """Evict a pod that is not in another's way: a started member of an incomplete gang."""
        delete = Write(Verb.DELETE, kinds.POD, pod.namespace, pod.name, _only(pod), note=("", why))
        self._sent_away[delete] = FIRST_REPEAT
        return [_disruption(pod, f"{pod.scheduler_name}: {why}", now), delete]

    def take_victims(self) -> list[int]:
        """The number of victims of each preemption since the last call."""
        victims, self.victims = self.victims, []
        return victims

    def unanswered(self) -> list[Write]:
        """Deletions that the API has not answered yet."""
        return [*self._of_write, *self._sent_away]

    def wake_at(self) -> float | None:
        return min((at for at, _ in self._again), default=None)

    def repeat(self, now: float) -> list[Write]:
        """Deletions that failed and that nobody else would request again, and those whose answer was lost."""
        due = [write for at, write in self._again if at <= now]
        if due:
            self._again = [(at, write) for at, write in self._again if at > now]
        return [write for write in due if write not in self._lost or self._is_wanted(write)]

    def _is_wanted(self, write: Write) -> bool:
        """Whether somebody still waits for a deletion; if not, it is forgotten."""
        evictions = self._of_write[write]
        if any(eviction.claimant.pod.uid in self._cluster.pods for eviction in evictions):
            return True
        del self._of_write[write], self._lost[write]
        self._deletes.pop(_uid_in(write), None)
        for eviction in evictions:
            self._end(eviction)
        return False

    def _begin(self, claimant: Claimant, node: str, victims: Sequence[Pod], now: float) -> list[Write]:
        self.victims.append(len(victims))
        if len(self._deleted) + len(self._preemptions) >= self._swept_at:
            self._sweep()
        self._preemptions.promise(claimant.key, node, victims)
        going = [victim for victim in victims if not self._is_leaving(victim)]
        if not going:
            return []
        eviction = Eviction(claimant, node, going[-1])
        self._preemptions.begin(claimant.key)
        writes = self._clear_lower_nominations(claimant.pod, node, now)
        for victim in going[:-1]:
            writes += self._evict(eviction, victim, now)
        return writes + (self._go_on(eviction, now) if not eviction.awaited else [])

    def _sweep(self) -> None:
        """Forget victims that are gone or seen to go. It is done whenever their number has doubled: looking at all of
        them for each preemption would cost more the more there are."""
        pods = self._cluster.pods
        self._deleted = {uid for uid in self._deleted if uid in pods and not pods[uid].seen.terminating}
        self._preemptions.sweep()
        self._swept_at = 2 * (len(self._deleted) + len(self._preemptions)) + _FEW

    def take_replies(self, replies: Sequence[Reply], now: float) -> list[Write]:
        writes: list[Write] = []
        for reply in replies if self._of_write or self._sent_away else ():
            if reply.write in self._sent_away:
                self._note_reply(reply, now)
            if reply.write not in self._of_write:
                continue
            if self._is_worth_another(reply):
                pause = self._lost[reply.write] = min(LAST_RESEND, 2 * self._lost.get(reply.write, FIRST_RESEND / 2))
                self._again.append((now + pause, reply.write))
                continue
            self._lost.pop(reply.write, None)
            uid = _uid_in(reply.write)
            self._deletes.pop(uid, None)
            if reply.error is None:
                self._deleted.add(uid)
            for eviction in self._of_write.pop(reply.write):
                eviction.awaited.discard(reply.write)
                if reply.error is not None and not isinstance(reply.error, NotFound):
                    self._end(eviction)
                    self._preemptions.withdraw(eviction.claimant.key)
                    self._backlog.activate([eviction.claimant.pod], now)
                elif not eviction.awaited and self._preemptions.is_under_way(eviction.claimant.key):
                    writes += self._go_on(eviction, now)
        return writes

    def _is_worth_another(self, reply: Reply) -> bool:
        """Whether a deletion is sent again: always if its answer was lost, and twice if the API server failed."""
        if isinstance(reply.error, InternalError):
            return self._lost.get(reply.write, 0.0) < 2 * FIRST_RESEND
        return isinstance(reply.error, Unreachable)

    def _note_reply(self, reply: Reply, now: float) -> None:
        pause = self._sent_away.pop(reply.write)
        if reply.error is not None and not isinstance(reply.error, NotFound | Conflict):
            self._again.append((now + pause, reply.write))
            self._sent_away[reply.write] = min(LAST_REPEAT, 2 * pause)

    def _go_on(self, eviction: Eviction, now: float) -> list[Write]:
        """Evict the last victim, or end if that is done."""
        last, eviction.last = eviction.last, None
        if last is None:
            self._conclude(eviction, now)
            return []
        self._preemptions.go_on(eviction.claimant.key, last)
        writes = self._evict(eviction, last, now)
        if not eviction.awaited:
            self._conclude(eviction, now)
        return writes

    def _conclude(self, eviction: Eviction, now: float) -> None:
        """The API has agreed to everything. Victims that leave later will wake the claimant; if all have left by now,
        nobody else would."""
        self._end(eviction)
        if self._preemptions.have_left(eviction.claimant.key):
            self._backlog.activate([eviction.claimant.pod], now)

    def _end(self, eviction: Eviction) -> None:
        self._preemptions.end(eviction.claimant.key)

    # ---- one victim ----

    def _is_leaving(self, victim: Pod) -> bool:
        pod_state = self._cluster.pods.get(victim.uid)
        return pod_state is None or pod_state.seen.terminating or victim.uid in self._deleted

    def _evict(self, eviction: Eviction, victim: Pod, now: float) -> list[Write]:
        claimant = eviction.claimant
        if self._is_leaving(victim):
            return []
        under_way = self._deletes.get(victim.uid)
        if under_way is not None:  # it is being deleted for somebody else already
            eviction.awaited.add(under_way)
            self._of_write[under_way].append(eviction)
            return []
        note = f"Preempted by {claimant.title} {claimant.uid} on node {eviction.node}"
        writes: list[Write] = []
        if self._send_back(victim):
            note += " (in kube-scheduler memory)."
        else:
            rule = f"its priority {victim.priority} is lower than {claimant.pod.priority}"
            sake = claimant.pod.key if claimant.group is None else claimant.group.key
            delete = Write(Verb.DELETE, kinds.POD, victim.namespace, victim.name, _only(victim), note=(sake, rule))
            words = f"{claimant.pod.scheduler_name}: preempting to accommodate a higher priority {claimant.title}"
            writes += [_disruption(victim, words, now), delete]
            eviction.awaited.add(delete)
            self._of_write[delete] = [eviction]
            self._deletes[victim.uid] = delete
        return writes + self._recorder.record(
            victim,
            EventText(kind="Normal", reason="Preempted", action="Preempting", note=note),
            now=now,
            controller=claimant.pod.scheduler_name,
            related=claimant.pod if claimant.group is None else claimant.group,
        )

    def _send_back(self, victim: Pod) -> bool:
        """End the binding of a victim that is in Permit or PreBind; False if it has none."""
        binding = self._bindings.get(victim.uid)
        return binding is not None and binding.preempt()

    def _clear_lower_nominations(self, preemptor: Pod, node: str, now: float) -> list[Write]:
        """Clear the nominations of pods of lower priority to this node."""
        writes = []
        for pod in self._backlog.nominator.on_node(node):
            if pod.priority < preemptor.priority and pod.uid != preemptor.uid:
                self._backlog.nominator.nominate(pod, "")
                self._preemptions.withdraw(pod.uid)
                patch = status_patch(pod, now=now, nominated="")
                if patch is not None:
                    writes.append(patch)
        return writes


def _only(victim: Pod) -> dict[str, object]:
    """Delete options with the pod's uid, so that a new pod of the same name is not deleted."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.uid}}


def _uid_in(deletion: Write) -> str:
    """The uid of the victim that a deletion is about."""
    return str(deletion.body["preconditions"]["uid"])


def _disruption(victim: Pod, words: str, now: float) -> Write:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": words,
        "observedGeneration": victim.generation,
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
    return Write(
        Verb.PATCH, kinds.POD, victim.namespace, victim.name, body, subresource="status", patch_type=PatchType.STRATEGIC
    )

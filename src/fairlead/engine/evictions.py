"""Evictions: carrying out what preemption decided, while scheduling goes on.

All victims but the last are evicted together; when the API has agreed, the last one goes, and with its deletion on the
way the pod that all this is for may be tried again. Until then it is kept out of the queue (`cluster.preempting`), so
that it does not look for a second set of victims. A victim that is itself only on its way to the node is sent back in
memory, without a word to the API.

    begin ──▶ evicting all but the last ──▶ evicting the last ──▶ ended
                     └──────── an error ────────┴──▶ ended; the pod is tried again at once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.engine.outcome import status_patch
from fairlead.errors import NotFound
from fairlead.model import kinds
from fairlead.model.documents import timestamp
from fairlead.model.flow import PatchType, Verb, Write

if TYPE_CHECKING:
    from fairlead.engine.backlog import Backlog
    from fairlead.engine.binding import Binding
    from fairlead.engine.recorder import Recorder
    from fairlead.model.flow import Reply
    from fairlead.model.pod import Pod
    from fairlead.state.cluster import Cluster


@dataclass(slots=True, eq=False)
class Eviction:
    """Room being made for one pod."""

    preemptor: Pod
    node: str
    last: Pod | None
    awaited: set[Write] = field(default_factory=set)


class Evictions:
    def __init__(self, cluster: Cluster, backlog: Backlog, recorder: Recorder, bindings: Mapping[str, Binding]) -> None:
        self._cluster = cluster
        self._backlog = backlog
        self._recorder = recorder
        self._bindings = bindings
        self._of_write: dict[Write, Eviction] = {}
        self.victims: list[int] = []
        """How many victims each preemption had; telemetry reads and clears it."""

    def begin(self, preemptor: Pod, node: str, victims: Sequence[Pod], now: float) -> list[Write]:
        """Start evicting. Victims that are leaving already need no push."""
        self.victims.append(len(victims))
        going = [victim for victim in victims if not self._is_leaving(victim)]
        if not going:
            return []
        eviction = Eviction(preemptor, node, going[-1])
        self._cluster.preempting[preemptor.uid] = ""
        writes = self._clear_lower_nominations(preemptor, node, now)
        for victim in going[:-1]:
            writes += self._evict(eviction, victim, now)
        return writes + (self._go_on(eviction, now) if not eviction.awaited else [])

    def hear(self, replies: Sequence[Reply], now: float) -> list[Write]:
        writes: list[Write] = []
        for reply in replies:
            eviction = self._of_write.pop(reply.write, None)
            if eviction is None:
                continue
            eviction.awaited.discard(reply.write)
            if reply.error is not None and not isinstance(reply.error, NotFound):
                self._end(eviction)
                self._backlog.activate([eviction.preemptor], now)
            elif not eviction.awaited and eviction.preemptor.uid in self._cluster.preempting:
                writes += self._go_on(eviction, now)
        return writes

    def _go_on(self, eviction: Eviction, now: float) -> list[Write]:
        """The turn of the last victim; or the end, if it has had it."""
        last, eviction.last = eviction.last, None
        if last is None:
            self._end(eviction)
            return []
        self._cluster.preempting[eviction.preemptor.uid] = last.uid
        writes = self._evict(eviction, last, now)
        if not eviction.awaited:
            self._end(eviction)
        return writes

    def _end(self, eviction: Eviction) -> None:
        self._cluster.preempting.pop(eviction.preemptor.uid, None)

    # ---- one victim ----

    def _is_leaving(self, victim: Pod) -> bool:
        seat = self._cluster.pods.get(victim.uid)
        return seat is None or seat.seen.terminating

    def _evict(self, eviction: Eviction, victim: Pod, now: float) -> list[Write]:
        note = f"Preempted by pod {eviction.preemptor.uid} on node {eviction.node}"
        writes: list[Write] = []
        if self._send_back(victim):
            note += " (in kube-scheduler memory)."
        else:
            delete = Write(Verb.DELETE, kinds.POD, victim.namespace, victim.name, _only(victim))
            writes += [_disruption(victim, eviction.preemptor, now), delete]
            eviction.awaited.add(delete)
            self._of_write[delete] = eviction
        return writes + self._recorder.record(
            victim,
            now=now,
            controller=eviction.preemptor.scheduler_name,
            kind="Normal",
            reason="Preempted",
            action="Preempting",
            note=note,
            related=eviction.preemptor,
        )

    def _send_back(self, victim: Pod) -> bool:
        """A victim that waits for permission or prepares to be bound loses its place at once."""
        binding = self._bindings.get(victim.uid)
        return binding is not None and binding.preempt()

    def _clear_lower_nominations(self, preemptor: Pod, node: str, now: float) -> list[Write]:
        """Who was promised room on this node with a lower priority must look elsewhere."""
        writes = []
        for pod in self._backlog.nominator.on_node(node):
            if pod.priority < preemptor.priority:
                self._backlog.nominator.clear(pod.uid)
                patch = status_patch(pod, now=now, nominated="")
                if patch is not None:
                    writes.append(patch)
        return writes


def _only(victim: Pod) -> dict[str, object]:
    """Options that delete this pod and not a namesake that has taken its place."""
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.uid}}


def _disruption(victim: Pod, preemptor: Pod, now: float) -> Write:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod",
        "observedGeneration": victim.generation,
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
    return Write(
        Verb.PATCH, kinds.POD, victim.namespace, victim.name, body, subresource="status", patch_type=PatchType.STRATEGIC
    )

"""EvictionLedger: who was evicted, when, for whom and at what cost; kept after the pods are gone.

Every deletion of a pod that a step writes is an eviction, whichever manner decided it, so the ledger reads the step's
writes and nobody has to remember to tell it. The note of such a write says for whose sake.

Invariant: at most `_KEPT` evictions are kept, the newest; they live as long as the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.engine.what_if.victims import lost_work
from fairlead.model import kinds
from fairlead.model.flow import Verb
from fairlead.model.times import micro_timestamp

if TYPE_CHECKING:
    from fairlead.model.flow import Doc, Write
    from fairlead.state.cluster import Cluster

_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class EvictionRecord:
    """One eviction. `beneficiary` is `namespace/name` of the pod or group that room was made for, if that is known."""

    at: float
    namespace: str
    name: str
    uid: str
    priority: int
    node: str
    owner: str
    scheduler: str
    beneficiary: str
    rule: str
    lost: float

    def to_document(self, namespace: str = "") -> Doc:
        """The JSON form. Who asks for one namespace is not told the names of others."""
        other = namespace and self.beneficiary and not self.beneficiary.startswith(f"{namespace}/")
        return {
            "at": micro_timestamp(self.at), "namespace": self.namespace, "name": self.name, "uid": self.uid,
            "priority": self.priority, "node": self.node, "owner": self.owner, "scheduler": self.scheduler,
            "beneficiary": "in another namespace" if other else self.beneficiary, "rule": self.rule,
            "lostSeconds": round(self.lost, 3),
        }  # fmt: skip


class EvictionLedger:
    def __init__(self) -> None:
        self._kept: deque[EvictionRecord] = deque(maxlen=_KEPT)

    def note(self, writes: Sequence[Write], cluster: Cluster, now: float) -> None:
        """Take down the evictions among what a step writes."""
        for write in writes:
            if write.verb is not Verb.DELETE or write.kind is not kinds.POD or not isinstance(write.body, dict):
                continue
            pod_state = cluster.pods.get((write.body.get("preconditions") or {}).get("uid", ""))
            if pod_state is None:
                continue
            pod = pod_state.seen
            beneficiary, rule = write.note if isinstance(write.note, tuple) else ("", "")
            owner = "" if pod.owner is None else f"{pod.owner.kind}/{pod.owner.name}"
            self._kept.append(EvictionRecord(
                now, pod.namespace, pod.name, pod.uid, pod.priority, pod.node_name, owner, pod.scheduler_name,
                beneficiary, rule, lost_work(pod, now),
            ))  # fmt: skip

    def of(self, namespace: str = "") -> Iterator[EvictionRecord]:
        """The evictions of a namespace, or of all, the newest first."""
        return (one for one in reversed(self._kept) if not namespace or one.namespace == namespace)

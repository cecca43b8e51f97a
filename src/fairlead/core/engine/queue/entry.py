"""Entry: a pod or a gang that waits (kube-scheduler's QueuedPodInfo), and Waiting, the answer to where a pod waits.

An Entry lives from the moment its pod is added until the pod is bound or gone, through all its attempts. Counters and
times are changed by the queues only; a failed attempt writes its verdict here (`refuse`) before the entry is put back.

The entry of a gang stands for all members that wait; `pod` is then the one of them whose priority, gates and requests
the queues look at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.gangs import Gang

NOBODY: frozenset[str] = frozenset()


class QueueName(Enum):
    """The queue that an entry is in. The values are shown to users."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    PARKED = "unschedulable"
    IN_FLIGHT = "in flight"
    NOWHERE = ""


class LastRefusal(NamedTuple):
    """Why the last attempt failed, or what gates the entry: the plugins to blame, those of them whose refusal may end
    without a backoff (`pending`), and the message."""

    unschedulable: frozenset[str] = NOBODY
    pending: frozenset[str] = NOBODY
    message: str = ""


_NONE_YET = LastRefusal()


@dataclass(slots=True, eq=False)
class Entry:
    pod: Pod
    since: float
    """When it was added, or put back after the last attempt."""
    serial: int = 0
    """The order of arrival, which decides between equals."""
    attempts: int = 0
    cycle: int = 0
    """The number of its last attempt, counted over all entries."""
    unschedulable_count: int = 0
    error_count: int = 0
    """Consecutive attempts that failed with an error, so that no plugin is to blame."""
    backoff_until: float | None = None
    """When the backoff ends: computed when first needed, cleared by each attempt."""
    first_attempt: float | None = None
    """When it became active for the first time."""
    refusal: LastRefusal = _NONE_YET
    gated_by: str = ""
    flushed_at: float | None = None
    """When it was moved only because it had been parked for too long."""
    place: QueueName = field(default=QueueName.NOWHERE)
    began: float = 0.0
    """When the current attempt began, by the meter's clock."""
    gang: Gang | None = None

    @property
    def key(self) -> str:
        return self.pod.key if self.gang is None else self.gang.key

    @property
    def uid(self) -> str:
        return self.pod.uid if self.gang is None else self.gang.key

    def stands_for(self, uid: str) -> bool:
        return self.pod.uid == uid if self.gang is None else uid in self.gang.members

    def waiting(self) -> list[Pod]:
        """All pods that wait in this entry."""
        return [self.pod] if self.gang is None else self.gang.pending()

    def faces(self) -> Iterable[Pod]:
        """One waiting pod of each shape: enough to ask hints whether an event helps."""
        if self.gang is None:
            return (self.pod,)
        return {id(pod.shape): pod for pod in self.gang.pending()}.values() or (self.pod,)

    @property
    def gated(self) -> bool:
        return self.gated_by != ""

    @property
    def blamed(self) -> frozenset[str]:
        """The plugins that refused this entry in its last attempt, or gate it."""
        unschedulable, pending, _ = self.refusal
        return unschedulable | pending if pending else unschedulable

    @property
    def parked_since(self) -> float:
        """Since when the time in the unschedulable queue counts."""
        return self.since if self.flushed_at is None else max(self.since, self.flushed_at)

    def with_gang(self, gang: Gang, other: Entry | None) -> Entry:
        """This pod's entry turned into its gang's. `other` is the entry that the gang had meanwhile; the plugins that
        it blames are blamed too."""
        refusal = self.refusal
        if other is not None:
            unschedulable = refusal.unschedulable | other.refusal.unschedulable
            refusal = LastRefusal(unschedulable, refusal.pending | other.refusal.pending, refusal.message)
        return replace(self, gang=gang, place=QueueName.NOWHERE, refusal=refusal)

    def refuse(
        self, unschedulable: frozenset[str] = NOBODY, pending: frozenset[str] = NOBODY, *, message: str = ""
    ) -> None:
        """Set the verdict of a failed attempt. Without plugins to blame it is an error."""
        self.refusal = LastRefusal(unschedulable, pending, message)
        self.gated_by = ""

    def count_failure(self, now: float) -> None:
        """Count a failed attempt. Only an attempt that no plugin is to blame for counts as an error."""
        if self.blamed:
            self.unschedulable_count += 1
            self.error_count = 0
        else:
            self.error_count += 1
        self.since = now
        self.backoff_until = None
        self.flushed_at = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a pod waits, since when, for which plugins, and what would wake it."""

    queue: str
    """`active`, `backoff`, `unschedulable`, `gated` or `in flight`."""
    since: float
    attempts: int
    plugins: tuple[str, ...] = ()
    gated_by: str = ""
    backoff_until: float | None = None
    wakes_on: tuple[str, ...] = ()
    """Labels of the events that may wake it, if they concern it."""
    retried_at: float | None = None
    """When it is tried again if no event wakes it before."""
    message: str = ""

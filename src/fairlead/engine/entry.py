"""Entry: a pod that waits, with all that the queue knows about it; and what it can tell about itself.

An Entry lives from the moment its pod is added until the pod is bound or gone. It goes round with the pod: queue,
attempt, queue again. Counters and times are changed by the Backlog only; a failed attempt leaves its verdict here
(`refuse`) before the entry is put back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.model.pod import Pod

NOBODY: frozenset[str] = frozenset()


class Place(Enum):
    """Where an entry is. The values are what users read."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    PARKED = "unschedulable"
    IN_FLIGHT = "in flight"
    NOWHERE = ""


@dataclass(slots=True, eq=False)
class Entry:
    pod: Pod
    since: float
    """When it entered the queue: at first, or after the last attempt."""
    serial: int = 0
    """The order of arrival, which decides between equals."""
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    """Consecutive attempts that came to nothing for no plugin's fault."""
    backoff_until: float | None = None
    """Computed when first asked for, forgotten when the entry comes back from an attempt."""
    first_attempt: float | None = None
    """When it became active for the first time."""
    unschedulable_plugins: frozenset[str] = NOBODY
    pending_plugins: frozenset[str] = NOBODY
    gated_by: str = ""
    message: str = ""
    """The last refusal, in words."""
    flushed: bool = False
    """Whether it is where it is only because it had been parked for too long."""
    flushed_at: float | None = None
    place: Place = field(default=Place.NOWHERE)
    began: float = 0.0
    """When the current attempt began, by the meter's clock."""

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def gated(self) -> bool:
        return self.gated_by != ""

    @property
    def blamed(self) -> frozenset[str]:
        """The plugins that stand between this pod and a node."""
        return self.unschedulable_plugins | self.pending_plugins if self.pending_plugins else self.unschedulable_plugins

    @property
    def parked_since(self) -> float:
        """From when the time in the unschedulable queue is counted."""
        return self.since if self.flushed_at is None else max(self.since, self.flushed_at)

    def refuse(
        self, unschedulable: frozenset[str] = NOBODY, pending: frozenset[str] = NOBODY, *, message: str = ""
    ) -> None:
        """The verdict of an attempt. Without plugins it was an error."""
        self.unschedulable_plugins = unschedulable
        self.pending_plugins = pending
        self.gated_by = ""
        self.message = message


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a pod waits, since when, for whom, and what would wake it."""

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
    """When it is tried again, or looked at again, even if nothing happens."""
    message: str = ""

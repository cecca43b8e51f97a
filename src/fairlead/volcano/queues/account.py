"""QuotaAccount: what one queue has, requests, is promised and may have, and shares of a whole.

A quota is described by QuotaRules, which Volcano's Queue satisfies as it is; other schedulers hand in records of their
own. Work that was let in but has not got its minimum yet holds the rest of it (`inqueue`), so that the same room is not
given twice. What work has beyond its minimum is elastic: it does not keep other work from being let in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from fairlead.volcano.records.amounts import EPSILON, INFINITY, PODS, UNLIMITED, Amounts, total_of

if TYPE_CHECKING:
    Units = Mapping[str, int]


class QuotaRules(Protocol):
    """What a user says of a queue. Amounts are in base units; None where nothing is said."""

    @property
    def name(self) -> str: ...

    @property
    def parent(self) -> str:
        """The queue above it; empty for the root's children and for the root."""

    @property
    def weight(self) -> int: ...

    @property
    def capability(self) -> Units | None:
        """The most that it may have."""

    @property
    def deserved(self) -> Units | None:
        """What it gets back from others when it requests it."""

    @property
    def guarantee(self) -> Units | None:
        """What is kept for it even while it does not request it."""


def share_of(part: Amounts, whole: Amounts) -> float:
    """The largest share of any dimension that the whole has."""
    shares = [part.scalars.get(name, 0.0) / amount for name, amount in whole.scalars.items() if amount >= EPSILON]
    if whole.memory >= EPSILON:
        shares.append(part.memory / whole.memory)
    if whole.cpu >= EPSILON:
        shares.append(part.cpu / whole.cpu)
    return max(shares) if shares else 0.0


class QuotaAccount:
    """One queue's sums. `limit` is how far it may grow: its capability, and what others' guarantees leave."""

    __slots__ = (
        "allocated", "capability", "deserved", "elastic", "guarantee", "inqueue", "limit", "name", "request", "rules",
        "share",
    )  # fmt: skip

    def __init__(self, rules: QuotaRules) -> None:
        self.rules = rules
        self.name = rules.name
        self.allocated = Amounts()
        self.request = Amounts()
        self.inqueue = Amounts()
        self.elastic = Amounts()
        self.deserved = Amounts()
        self.guarantee = Amounts.of(rules.guarantee)
        self.capability = Amounts.of(rules.capability)
        self.limit = Amounts()
        self.share = 0.0

    def count(self, allocated: Amounts, pending: Amounts, *, elastic: Amounts, held: Amounts | None) -> None:
        """Add a piece of work: what it has, what it requests beyond that, what of it is elastic, and what is kept for
        it because it was let in (None for nothing)."""
        self.allocated.add(allocated)
        self.request.add(allocated)
        self.request.add(pending)
        self.elastic.add(elastic)
        if held is not None:
            self.inqueue.add(held)

    def set_limit(self, left: Amounts) -> None:
        """`left` is what all guarantees together leave of the cluster."""
        self.limit = left + self.guarantee
        if self.rules.capability:
            if self.capability.cpu <= 0:
                self.capability.cpu = UNLIMITED
            if self.capability.memory <= 0:
                self.capability.memory = UNLIMITED
            self.limit.cap(self.capability, INFINITY)

    def lacks(self, minimum: Amounts) -> list[str]:
        """The dimensions in which work with such a minimum would exceed the limit, were it let in."""
        wanted = (minimum + self.allocated).add(self.inqueue).subtract(self.elastic)
        return wanted.exceeding_requested(self.limit, minimum)

    def too_many_pods(self, request: Amounts, ending: Amounts | None = None) -> bool:
        """Whether a limit on the number of pods would be exceeded, which `would_exceed` does not compare."""
        if PODS not in (self.rules.capability or ()):
            return False
        there = self.allocated.get(PODS) + (ending.get(PODS) if ending is not None else 0.0)
        return there + request.get(PODS) >= self.limit.get(PODS) + EPSILON

    def would_exceed(self, what: Amounts, request: Amounts, reserved: Amounts | None = None) -> bool:
        """Whether a request on top of what the queue has exceeds `what` in a dimension that is requested."""
        used = self.allocated + request
        if reserved is not None:
            used.add(reserved)
        return bool(used.exceeding_requested(what, request))


def left_by_guarantees(total: Amounts, rules: Iterable[QuotaRules]) -> Amounts:
    """What the guarantees of all queues together leave of the cluster, for `set_limit`."""
    return total.exceeded_part(total_of(Amounts.of(one.guarantee) for one in rules))

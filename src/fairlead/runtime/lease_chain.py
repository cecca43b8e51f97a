"""LeaseChain: several leases that one process has to hold at a time, taken in order.

A release of the chart has a lease of its own, in every mode. In kube-scheduler's place it also needs kube-scheduler's.
Were the own one given up for that, a replica of the former mode would go on to serve the release's scheduler name under
it, beside a replica of the new mode: one name, two schedulers. So the own lease is taken first and kept.

    standing by ──first lease──▶ standing by ──last lease──▶ leading ──any of them lost──▶ lost

Invariant: work runs, and `may_write` holds, only while every lease of the chain is held.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fairlead.runtime.leader import Elector


class Candidate(Protocol):
    """A candidate in elections: an Elector, or a chain of them."""

    @property
    def leader(self) -> str:
        """Who leads, as far as was seen; empty if nobody does."""
        ...

    @property
    def leading(self) -> bool: ...

    @property
    def led_since(self) -> float:
        """The wall time at which this process became the leader, if it leads."""
        ...

    @property
    def may_write(self) -> bool: ...

    @property
    def healthy(self) -> bool: ...

    @property
    def knows(self) -> bool:
        """Whether the API server answers about the lease."""
        ...

    async def run(self, work: Callable[[], Awaitable[None]]) -> None: ...


class LeaseChain:
    def __init__(self, electors: Sequence[Elector]) -> None:
        self._electors = electors

    @property
    def leader(self) -> str:
        """The holder of the first lease that somebody else holds, else of the last."""
        others = [one.leader for one in self._electors if one.leader and not one.leading]
        return others[0] if others else self._electors[-1].leader

    @property
    def leading(self) -> bool:
        return all(one.leading for one in self._electors)

    @property
    def led_since(self) -> float:
        return self._electors[-1].led_since

    @property
    def may_write(self) -> bool:
        return all(one.may_write for one in self._electors)

    @property
    def healthy(self) -> bool:
        return all(one.healthy for one in self._electors)

    @property
    def knows(self) -> bool:
        """A lease that was not stood for yet says nothing."""
        taken = [one.leading for one in self._electors]
        reached = taken.index(False) + 1 if False in taken else len(taken)
        return all(one.knows for one in self._electors[:reached])

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Stand for each lease in turn, then do `work` while all are held. Raises LeadershipLost when one is lost."""
        await self._run(self._electors, work)

    async def _run(self, electors: Sequence[Elector], work: Callable[[], Awaitable[None]]) -> None:
        if electors:
            await electors[0].run(lambda: self._run(electors[1:], work))
        else:
            await work()

"""kill -9 of Volcano's controllers in the middle of their writes, again and again, while fifty Jobs live and end.

The controllers die after some write: the rest of what they had decided is never sent, and what they remembered is lost.
Of writes that were on their way together any may have arrived.
Those that take their place know only what stands in the API. Every Job must end as it does undisturbed, with every pod
made as often, and every Command carried out once.

FAIRLEAD_KILLS says at how many points they die; `make soak` takes a thousand.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from fairlead.cluster.store.store import Store
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Controller, Happened, Reply, Verb, Write
from tests.support.job_cases import TWENTY
from tests.support.job_cluster import Ends, JobCluster, volcano_controllers

JOBS = 50
KILLS = int(os.environ.get("FAIRLEAD_KILLS", "50"))
POINTS_OF_A_RUN = 25


class Mortal:
    """All of Volcano's controllers in one process, which dies whenever it has sent a chosen number of writes: what else
    it wanted to send is lost, and so is what it remembered."""

    name = "mortal"

    def __init__(self, store: Store, deaths: Iterable[int]) -> None:
        self._store = store
        self._deaths = sorted(deaths, reverse=True)
        self._chance = Random(len(self._deaths))
        self._born = True
        self._inner: Controller = volcano_controllers(store)
        self.watches = self._inner.watches
        self.writes = 0
        self.made: Counter[str] = Counter()

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        made = [reply.write for reply in replies if reply.error is None and reply.write.verb is Verb.CREATE]
        self.made.update(write.name for write in made if write.kind is kinds.POD)
        if not self._born:
            self._born, changes, replies = True, list(self._everything()), ()
        writes = self._inner.step(now, changes, replies)
        if self._deaths and self.writes + len(writes) >= self._deaths[-1]:
            writes = self._sent_of(writes, max(0, self._deaths.pop() - self.writes))
            self._inner, self._born = volcano_controllers(self._store), False
        self.writes += len(writes)
        return writes

    def _sent_of(self, writes: list[Write], count: int) -> list[Write]:
        """As many of these as were sent before a death. Writes to different objects are on their way together, and any
        of them may arrive first; those to one object keep their order."""
        self._chance.shuffle(
            order := list(dict.fromkeys((write.kind, write.namespace, write.name) for write in writes))
        )
        return sorted(writes, key=lambda write: order.index((write.kind, write.namespace, write.name)))[:count]

    def _everything(self) -> Iterator[Change]:
        for watch in self.watches:
            for doc in self._store.list(watch.kind):
                yield Change(Happened.ADDED, watch.kind, doc)

    def wake_at(self) -> float | None:
        return self._inner.wake_at() if self._born else float("-inf")


CASES = [replace(case, name=f"{case.name}-{index // len(TWENTY)}") for index, case in enumerate((TWENTY * 3)[:JOBS])]
Cluster = JobCluster[Mortal]


def cluster_of(deaths: Iterable[int] = ()) -> Cluster:
    return JobCluster(CASES, lambda store: Mortal(store, deaths))


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Cluster, Ends]:
    cluster = cluster_of()
    return cluster, cluster.live()


def test_undisturbed_every_job_ends_as_it_is_said_to(undisturbed: tuple[Cluster, Ends]) -> None:
    _, ends = undisturbed
    said = {case.name: case.ends for case in TWENTY}
    assert {name: phase for name, (phase, _) in ends.items()} == {name: said[name.rpartition("-")[0]] for name in ends}


@pytest.mark.parametrize("seed", range(-(-KILLS // POINTS_OF_A_RUN)))
def test_controllers_that_are_killed_anywhere_lose_and_double_nothing(
    undisturbed: tuple[Cluster, Ends], seed: int
) -> None:
    calm, ends = undisturbed
    deaths = set(Random(seed).sample(range(1, calm.controllers.writes), POINTS_OF_A_RUN))
    cluster = cluster_of(deaths)
    assert cluster.live() == ends
    assert cluster.controllers.made == calm.controllers.made

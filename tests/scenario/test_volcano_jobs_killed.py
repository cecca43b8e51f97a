"""kill -9 of Volcano's controllers in the middle of their writes, again and again, while fifty Jobs live and end.

The controllers die after some write: the rest of what they had decided is never sent, and what they remembered is lost.
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

from fairlead.api.store.store import Store
from fairlead.config.volcano_presets import PRESETS
from fairlead.controllers.housekeeping import VOLCANO_CONTROLLERS, housekeepers
from fairlead.model import kinds
from fairlead.model.flow import Change, Controller, Happened, Reply, Verb, Write
from fairlead.testing.builders import nodes
from tests.support.job_cases import GONE, TWENTY, Case
from tests.support.volcano import VolcanoHarness

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
        self._born = True
        self._inner: Controller = _controllers(store)
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
            writes = writes[: max(0, self._deaths.pop() - self.writes)]
            self._inner, self._born = _controllers(self._store), False
        self.writes += len(writes)
        return writes

    def _everything(self) -> Iterator[Change]:
        for watch in self.watches:
            for doc in self._store.list(watch.kind):
                yield Change(Happened.ADDED, watch.kind, doc)

    def wake_at(self) -> float | None:
        return self._inner.wake_at() if self._born else float("-inf")


def _controllers(store: Store) -> Controller:
    (controller,) = housekeepers(store, names=VOLCANO_CONTROLLERS)
    return controller


class Cluster:
    """Fifty Jobs under mortal controllers."""

    def __init__(self, deaths: Iterable[int] = ()) -> None:
        without = ",".join(f"-{name}" for name in VOLCANO_CONTROLLERS)
        self._harness = VolcanoHarness(PRESETS["shipped"], nodes(8), housekeeping=without)
        self.controllers = Mortal(self._harness.store, deaths)
        self._harness.runtime.add(self.controllers)
        self._harness.run(1)  # queues open
        self._cases = [
            replace(case, name=f"{case.name}-{index // len(TWENTY)}") for index, case in enumerate((TWENTY * 3)[:JOBS])
        ]
        self._open = {case.name: list(case.commands) for case in self._cases}

    def live(self) -> dict[str, tuple[str, int]]:
        """Phase and retries of every Job, once all have ended."""
        for case in self._cases:
            self._harness.apply(case.document("default"))
        for _ in range(400):
            self._harness.run(0.5)
            open_ones = [case for case in self._cases if not self._has_ended(case)]
            if not open_ones:
                break
        self._harness.run(30)
        assert not self._harness.list(kinds.VC_COMMAND)
        return {case.name: self._state(case.name) for case in self._cases}

    def _has_ended(self, case: Case) -> bool:
        phase, _ = self._state(case.name)
        waiting = self._open[case.name]
        if waiting and waiting[0][0] == phase:
            self._command(case.name, waiting.pop(0)[1])
        return not waiting and phase == case.ends

    def _state(self, name: str) -> tuple[str, int]:
        job = self._harness.get(kinds.VC_JOB, name)
        if job is None:
            return GONE, 0
        status = job.get("status") or {}
        return (status.get("state") or {}).get("phase", ""), int(status.get("retryCount") or 0)

    def _command(self, name: str, action: str) -> None:
        job = self._harness.get(kinds.VC_JOB, name)
        assert job is not None
        target = {"apiVersion": kinds.VC_JOB.api_version, "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        self._harness.apply({
            "apiVersion": kinds.VC_COMMAND.api_version, "kind": "Command", "action": action, "target": target,
            "metadata": {"generateName": f"{name}-", "namespace": "default"},
        })  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Cluster, dict[str, tuple[str, int]]]:
    cluster = Cluster()
    return cluster, cluster.live()


def test_undisturbed_every_job_ends_as_it_is_said_to(
    undisturbed: tuple[Cluster, dict[str, tuple[str, int]]],
) -> None:  # fmt: skip
    _, ends = undisturbed
    said = {case.name: case.ends for case in TWENTY}
    assert {name: phase for name, (phase, _) in ends.items()} == {name: said[name.rpartition("-")[0]] for name in ends}


@pytest.mark.parametrize("seed", range(-(-KILLS // POINTS_OF_A_RUN)))
def test_controllers_that_are_killed_anywhere_lose_and_double_nothing(
    undisturbed: tuple[Cluster, dict[str, tuple[str, int]]], seed: int
) -> None:  # fmt: skip
    calm, ends = undisturbed
    deaths = set(Random(seed).sample(range(1, calm.controllers.writes), POINTS_OF_A_RUN))
    cluster = Cluster(deaths)
    assert cluster.live() == ends
    assert cluster.controllers.made == calm.controllers.made

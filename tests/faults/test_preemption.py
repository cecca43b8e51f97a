"""Preemption while answers are lost, requests fail and watches are late: nobody is evicted for nobody.

Important pods arrive one by one on a full cluster. Whatever is lost or late on the way, each of them gets a node, and
no more pods are evicted than they need the room of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

from fairlead.cluster.kubelets.pod_script import PodScript
from fairlead.core.model import kinds
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import podgroup, priority_class
from tests.support.faulty_port import Faults, FaultyWorld, binds

NODES, PREEMPTORS = 10, 20


@dataclass
class Line:
    """How bad the connection is: shares of writes, and seconds by which watches are late. `is_bad` turns it on."""

    lose: float = 0.2
    fail: float = 0.05
    delay: float = 0.3
    is_bad: bool = False

    def latencies(self) -> Latencies:
        def watch(rng: Random) -> float:
            return self.delay * (1 + rng.random()) if self.is_bad else 0.0

        return Latencies(write=lambda rng: rng.choice((0.002, 0.01, 0.05)), watch=watch)


def full_cluster(line: Line, seed: int, *, mixed: bool, grace: int = 0, cpu: int = 2) -> FaultyWorld:
    """Nodes of eight cores without room. If `mixed`, half of the pods are Volcano's, each in a group of its own."""
    script = PodScript(terminate_delay=float(grace))
    world = FaultyWorld(Faults(), NODES, seed=seed, latencies=line.latencies(), script=script)
    world.apply(priority_class("high", 1000))
    for at in range(NODES * 8 // cpu):
        name, volcano = f"low-{at}", mixed and at // 4 % 4 >= 2
        built = world.one(name, "volcano" if volcano else "kube", cpu=str(cpu)).having(
            terminationGracePeriodSeconds=grace
        )
        if volcano:
            world.apply(podgroup(f"{name}-alone", 1))
            built = built.in_group(f"{name}-alone")
        world.apply(built)
    world.run(10)
    assert world.waiting() == []
    return world


def evicted(world: FaultyWorld, before: int) -> int:
    left = [doc for doc in world.list(kinds.POD) if doc["metadata"]["name"].startswith("low")]
    return before - len(left)


def play(line: Line, seed: int, *, mixed: bool = True, grace: int = 0, cpu: int = 2) -> int:
    """How many pods were evicted beyond those that important pods of two cores needed the room of."""
    rng, line = Random(seed), replace(line)
    world = full_cluster(line, seed, mixed=mixed, grace=grace, cpu=cpu)
    before = len(world.list(kinds.POD))
    world.faults.like_a_bad_line(rng, lose=line.lose, fail=line.fail)
    line.is_bad = True
    for at in range(PREEMPTORS):
        world.apply(world.one(f"high-{at}", cpu="2").of_priority("high"))
        if rng.random() < 0.5:
            world.run(rng.choice((0.005, 0.02, 0.1)))
    world.run(6 + 3 * grace)
    line.is_bad = False
    world.faults.stop()
    world.run(60 + 3 * grace)
    world.check()
    assert world.waiting() == []
    return evicted(world, before) - PREEMPTORS * 2 // cpu


@pytest.mark.parametrize("seed", [*range(8), 9, 14, 15, 18])  # the last four needed more than one cure each
def test_nobody_is_evicted_for_nobody_while_answers_are_lost_and_watches_are_late(seed: int) -> None:
    assert play(Line(), seed) == 0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "line", [Line(delay=1.5), Line(lose=0.4, fail=0.2), Line(delay=0.02)], ids=["late", "bad", "prompt"]
)
def test_nor_on_a_worse_line_or_a_quick_one(line: Line, seed: int) -> None:
    assert play(line, seed) == 0


@pytest.mark.parametrize("seed", range(2))
def test_nor_if_victims_take_their_time_to_leave(seed: int) -> None:
    assert play(Line(), seed, grace=5, mixed=False) == 0


@pytest.mark.parametrize("seed", range(2))
def test_nor_if_every_preemptor_needs_two_victims(seed: int) -> None:
    assert play(Line(), seed, cpu=1) == 0


def test_room_that_was_made_for_a_pod_stays_its_own_if_the_api_fails_to_bind_it() -> None:
    world = full_cluster(Line(), 1, mixed=False, grace=5)
    before = len(world.list(kinds.POD))
    world.faults.refuse(binds("first"), times=2)
    world.apply(world.one("first", cpu="2").of_priority("high"))
    world.run(4)
    world.apply(world.one("second", cpu="2").of_priority("high"))
    world.run(60)
    assert world.faults.count(binds("first"))["first"] > 2
    assert world.waiting() == []
    assert evicted(world, before) == 2

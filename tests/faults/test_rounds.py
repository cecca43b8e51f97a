"""Rounds that raise while no job in particular is being tried: all but the culprit are scheduled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.volcano.plugins.gang import GangTierPlugin
from tests.support.faulty_port import Faults, FaultyWorld
from tests.support.volcano import round_drivers

GOOD = [f"good-{at}" for at in range(6)]


def world_with_gangs(names: list[str]) -> FaultyWorld:
    world = FaultyWorld(Faults(), 4)
    for name in names:
        world.gang(name, 2, "volcano")
    return world


def over_jobs(what: Callable[..., Any]) -> Callable[..., Any]:
    """A plugin's `open` or `close` that fails over a job called bad."""

    def raising(self: Any, round: Any) -> None:
        if any(job.uid.endswith("/bad") for job in round.jobs.values()):
            raise ArithmeticError("nobody counted on this")
        what(self, round)

    return raising


def over_queues(what: Callable[..., Any]) -> Callable[..., Any]:
    def raising(self: Any, round: Any) -> None:
        if "bad" in round.queues:
            raise ArithmeticError("nobody counted on this")
        what(self, round)

    return raising


@pytest.mark.parametrize("point", ["open", "close"])
@pytest.mark.parametrize("position", [0, 3, 6])
def test_a_round_that_fails_over_all_its_jobs_together_leaves_out_only_the_one_to_blame(
    monkeypatch: pytest.MonkeyPatch, point: str, position: int
) -> None:
    monkeypatch.setattr(GangTierPlugin, point, over_jobs(getattr(GangTierPlugin, point)))
    world = world_with_gangs([*GOOD[:position], "bad", *GOOD[position:]])
    world.run(60)
    bad = world.waiting()
    if point == "open":
        assert bad == ["bad-0", "bad-1"]
        assert "nobody counted on this" in str(world.pod("bad-0")["status"]["conditions"])
    assert [key for key in world.scheduler.guard.quarantine.held if key.endswith("/bad")]
    world.gang("later", 2, "volcano")
    before = world.scheduler.guard.quarantine.raised.total()
    world.run(30)
    assert world.waiting() == bad
    assert world.scheduler.guard.quarantine.raised.total() == before
    world.scheduler.cluster.check()
    monkeypatch.undo()
    world.run(1200)
    assert world.waiting() == []


def test_a_queue_over_which_rounds_fail_is_left_out_with_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GangTierPlugin, "open", over_queues(GangTierPlugin.open))
    world = world_with_gangs(GOOD)
    world.apply(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "bad"},
            "spec": {"weight": 1},
        }
    )
    world.gang("more", 2, "volcano")
    world.run(60)
    assert world.waiting() == []
    assert "a round with queue bad" in world.scheduler.guard.quarantine.held


def test_a_plugin_that_always_fails_costs_no_pod_of_another_profile_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(self: Any, round: Any) -> None:
        raise ArithmeticError("whatever is in the round")

    monkeypatch.setattr(GangTierPlugin, "open", raising)
    world = world_with_gangs(GOOD)
    world.apply(world.one("kube"))
    world.run(20)
    assert "kube" in world.bindings()
    assert round_drivers(world.scheduler)[0].counted < 60
    monkeypatch.undo()
    world.run(30)
    assert world.waiting() == []
    assert world.list(kinds.POD)

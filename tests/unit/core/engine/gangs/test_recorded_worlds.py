"""Worlds in which the real kube-scheduler evicts for a gang whose members were nominated by an earlier attempt: whom it
evicts and where the members go, as recorded from 1.36.4, with room made for gangs as 1.36 makes it."""

from __future__ import annotations

import json

import pytest

from fairlead.core.engine.queue import sweeps
from tests.support.fuzz.gang_play import played_often
from tests.support.fuzz.gangs import make_world

RECORDED = {
    771124: {"0 left": "e0 e1 e2 e3 e4 e5 e7", "0 nodes g0-1": {"n1": 1, "n4": 1}, "0 nodes g0-2": {"n4": 2}},
    771141: {"1 left": "e0 e3 e4 e5", "1 nodes g1-2": {"n0": 1, "n2": 1}},
    771176: {"0 left": "e0 e1 e2 e5", "0 nodes g0-0": {"n2": 2}},
    771204: {"0 left": "e0 e1 e2 e3 e6", "0 nodes g0-1": {"n2": 2, "n3": 2}},
}
SEEDS = range(2)


@pytest.mark.parametrize("world", RECORDED)
async def test_members_that_were_nominated_take_no_room_from_each_other(
    world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "SWEEP_PERIOD", 1.0)
    _, in_their_way = await played_often([make_world(world)], SEEDS)
    for facts in in_their_way:
        shown = json.loads(json.dumps(facts[world], default=sorted).replace(f"w{world}-0-", ""))
        for name, recorded in RECORDED[world].items():
            assert shown[name] == (recorded.split() if isinstance(recorded, str) else recorded)

"""binpack: fuller nodes score higher."""

from __future__ import annotations

import pytest

from fairlead.volcano.plugins.binpack import BinPack
from fairlead.volcano.rounds.arguments import Arguments
from tests.support.rounds import RoundScenario, scores


def half_full() -> RoundScenario:
    yard = RoundScenario().node("n", cpu="8", memory="32", gpu="8").queue("default").group("job")
    yard.pod("there", on="n", asks={"cpu": "2", "memory": "8", "nvidia.com/gpu": "4"})
    return yard


def test_binpack_of_cpu_and_memory() -> None:
    plugin = BinPack()
    round = half_full().pod("new", "job", asks={"cpu": "1", "memory": "4"}).open(plugin)
    assert scores(plugin, round, "new") == {"n": pytest.approx(37.5)}


def test_binpack_with_weights_and_a_scalar() -> None:
    arguments = {"binpack.weight": 10, "binpack.cpu": 5, "binpack.resources": "nvidia.com/gpu, example.com/x"}
    plugin = BinPack.of(Arguments(arguments | {"binpack.resources.nvidia.com/gpu": 2}))
    asks = {"cpu": "1", "memory": "4", "nvidia.com/gpu": "1"}
    round = half_full().pod("new", "job", asks=asks).open(plugin)
    assert scores(plugin, round, "new") == {"n": pytest.approx(437.5)}


def test_a_node_that_is_too_small_scores_nothing() -> None:
    plugin = BinPack()
    round = half_full().pod("new", "job", asks={"cpu": "7", "memory": "4"}).open(plugin)
    assert scores(plugin, round, "new") == {"n": 0.0}


def test_a_resource_that_a_node_lacks_counts_as_empty() -> None:
    plugin = BinPack(weights={"cpu": 1, "memory": 1, "nvidia.com/gpu": 2})
    yard = RoundScenario().node("bare", cpu="8", memory="32").queue("default").group("job")
    round = yard.pod("new", "job", asks={"cpu": "4", "memory": "16", "nvidia.com/gpu": "1"}).open(plugin)
    assert scores(plugin, round, "new") == {"bare": pytest.approx(100 * (0.5 + 0.5) / 4)}


def test_pods_only_promised_to_a_node_do_not_fill_it() -> None:
    plugin = BinPack()
    round = half_full().pod("new", "job", asks={"cpu": "1", "memory": "4"}).open(plugin)
    round.resources.pipelined["cpu"][:] = 4000
    assert scores(plugin, round, "new") == {"n": pytest.approx(37.5)}


@pytest.mark.parametrize("busy", [1, 35])
def test_scores_follow_what_is_booked(busy: int) -> None:
    """A few rows are looked at one by one and many at once; either way all is as if it had been looked at afresh."""
    weights = {"cpu": 3, "memory": 1, "nvidia.com/gpu": 2}
    yard = RoundScenario().queue("default").group("job")
    for at in range(40):
        yard.node(f"n{at}", cpu=str(at % 7 + 2), memory="32", **({"gpu": "8"} if at % 3 else {}))
    asks = {"cpu": "1", "memory": "3", "nvidia.com/gpu": "1"}
    for at in range(busy + 1):
        yard.pod(f"p{at}", "job", asks=asks)
    plugin, afresh = BinPack(weight=7, weights=weights), BinPack(weight=7, weights=weights)
    round = yard.open(plugin)
    before = scores(plugin, round, "p0")
    tasks = [one for one in round.jobs["default/job"].tasks.values() if one.name != "p0"]
    for row, one in enumerate(tasks):
        round.resources.put(one, row)
    afresh.open(round)
    assert scores(plugin, round, "p0") == scores(afresh, round, "p0") != before

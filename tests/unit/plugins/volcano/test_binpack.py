"""binpack: fuller nodes score higher."""

from __future__ import annotations

import pytest

from fairlead.plugins.volcano.arguments import Arguments
from fairlead.plugins.volcano.binpack import BinPack
from tests.unit.plugins.volcano.yard import Yard, scores


def half_full() -> Yard:
    yard = Yard().node("n", cpu="8", memory="32", gpu="8").queue("default").group("job")
    yard.pod("there", on="n", asks={"cpu": "2", "memory": "8", "nvidia.com/gpu": "4"})
    return yard


def test_12_binpack_of_cpu_and_memory() -> None:
    plugin = BinPack()
    round = half_full().pod("new", "job", asks={"cpu": "1", "memory": "4"}).round(plugin)
    assert scores(plugin, round, "new") == {"n": pytest.approx(37.5)}


def test_12_binpack_with_weights_and_a_scalar() -> None:
    arguments = {"binpack.weight": 10, "binpack.cpu": 5, "binpack.resources": "nvidia.com/gpu, example.com/x"}
    plugin = BinPack.of(Arguments(arguments | {"binpack.resources.nvidia.com/gpu": 2}))
    asks = {"cpu": "1", "memory": "4", "nvidia.com/gpu": "1"}
    round = half_full().pod("new", "job", asks=asks).round(plugin)
    assert scores(plugin, round, "new") == {"n": pytest.approx(437.5)}


def test_6_10_a_node_that_is_too_small_scores_nothing() -> None:
    plugin = BinPack()
    round = half_full().pod("new", "job", asks={"cpu": "7", "memory": "4"}).round(plugin)
    assert scores(plugin, round, "new") == {"n": 0.0}


def test_6_10_a_resource_that_a_node_lacks_counts_as_empty() -> None:
    plugin = BinPack(weights={"cpu": 1, "memory": 1, "nvidia.com/gpu": 2})
    yard = Yard().node("bare", cpu="8", memory="32").queue("default").group("job")
    round = yard.pod("new", "job", asks={"cpu": "4", "memory": "16", "nvidia.com/gpu": "1"}).round(plugin)
    assert scores(plugin, round, "new") == {"bare": pytest.approx(100 * (0.5 + 0.5) / 4)}


def test_6_10_pods_only_promised_to_a_node_do_not_fill_it() -> None:
    plugin = BinPack()
    round = half_full().pod("new", "job", asks={"cpu": "1", "memory": "4"}).round(plugin)
    round.books.pipelined["cpu"][:] = 4000
    assert scores(plugin, round, "new") == {"n": pytest.approx(37.5)}

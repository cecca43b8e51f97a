"""The plugins for shared GPUs, named in a configuration file."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.assembly.registry import PluginRegistry
from fairlead.errors import ConfigError

TYPICAL = {"cpu": "8", "gpuCount": 1, "gpuMilli": 500, "gpuModels": ["T4"], "weight": 3}


@pytest.mark.parametrize(
    "name",
    [
        "Open-Gpu-Share", "FGDScore", "ScarcityScore", "BestFitScore", "DotProductScore", "GpuPackingScore",
        "GpuClusteringScore",
    ],
)  # fmt: skip
def test_every_plugin_can_be_named(name: str) -> None:
    registry = PluginRegistry(installed={})
    assert registry.create(name, {}).name == name
    assert registry.points(name)


def test_typical_pods_are_given_in_the_file() -> None:
    registry = PluginRegistry(installed={})
    for name in ("FGDScore", "ScarcityScore"):
        assert registry.create(name, {"typicalPods": [TYPICAL, {"cpu": "500m"}]}).name == name
    chosen = registry.create("Open-Gpu-Share", {"gpuSelMethod": "FGDScore", "typicalPods": [TYPICAL]})
    assert chosen.name == "Open-Gpu-Share"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"gpuSelMethod": "worst"}, "gpuSelMethod: 'worst' must be one of best, random, FGDScore"),
        ({"gpuSelMetod": "best"}, 'unknown field "gpuSelMetod"'),
        ({"gpuSelMethod": "FGDScore", "typicalPods": [{**TYPICAL, "gpuCount": 2}]}, "typicalPods[0].gpuMilli"),
        ({"gpuSelMethod": "FGDScore", "typicalPods": [{**TYPICAL, "weight": 0}]}, "typicalPods[0].weight"),
        ({"gpuSelMethod": "FGDScore", "typicalPods": [{**TYPICAL, "cpu": "x"}]}, "typicalPods[0].cpu"),
        ({"gpuSelMethod": "FGDScore", "typicalPods": [{**TYPICAL, "gpus": 1}]}, 'typicalPods[0]: unknown field "gpus"'),
    ],
)
def test_what_is_wrong_is_named(args: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        PluginRegistry(installed={}).create("Open-Gpu-Share", args)
    assert words in str(error.value)

"""What cards are like, from a ConfigMap."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.volcano.config.devices import device_config, device_config_map
from fairlead.volcano.config.reading import load_volcano_config
from fairlead.volcano.devices.device_config import DeviceConfig, Template

DOCUMENT = """
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  resourceMemoryName: volcano.sh/vgpu-memory
  gpuMemoryFactor: 1024
  knownMigGeometries:
  - models: [A30]
    allowedGeometries:
    - group: group1
      geometries: [{name: 1g.6gb, memory: 6144, count: 4}]
vnpus:
- commonWord: Ascend910B
  resourceName: huawei.com/Ascend910B
  resourceMemoryName: huawei.com/Ascend910B-memory
  memoryAllocatable: 32768
  memoryCapacity: 32768
  templates: [{name: vir04, memory: 16384, aiCore: 4}, {name: vir02, memory: 8192}]
"""


def config_map(**data: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "kube-system", "name": "volcano-vgpu-device-config"}, "data": data}


def test_a_config_map_says_how_cards_may_be_cut() -> None:
    found = device_config(config_map(**{"device-config.yaml": DOCUMENT}))
    assert found.nvidia.memory_factor == 1024
    assert found.nvidia.percentage == ""
    ways = found.nvidia.geometries_of("NVIDIA-A30-24GB")
    assert ways is not None
    assert ways[0].instances[0].count == 4
    assert found.vnpus[0].templates == (Template("vir02", 8192), Template("vir04", 16384)), "the smallest first"
    assert found.vnpus[0].trimmed(9000) == (16384, "vir04")
    assert found.vnpus[0].trimmed(20000) == (32768, "")
    assert found.vnpus[0].trimmed(40000) == (0, "")


@pytest.mark.parametrize("text", ["nvidia: [", "vnpus: [{}]", "just text"])
def test_what_is_not_to_be_understood_is_left_out_and_said(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert device_config(config_map(**{"device-config.yaml": text})) == DeviceConfig()
    assert "cannot be used" in caplog.text


def test_without_one_the_names_are_volcanos_own() -> None:
    assert device_config(None).nvidia.count == "volcano.sh/vgpu-number"
    assert [vnpu.word for vnpu in device_config(None).vnpus] == ["Ascend310P"]


def test_the_config_map_has_a_default_name_that_an_argument_replaces() -> None:
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: {}\n'
    assert device_config_map(load_volcano_config(text.format("gang"))) is None
    cards = load_volcano_config(text.format("deviceshare"))
    assert device_config_map(cards) == ("kube-system", "volcano-vgpu-device-config")
    named = load_volcano_config(text.format("deviceshare\n    arguments: {deviceshare.KnownGeometriesCMName: cards}"))
    assert device_config_map(named) == ("kube-system", "cards")

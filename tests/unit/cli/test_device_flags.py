"""`--device`: what it says of simulated devices, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.device_flags import parse_device
from fairlead.cli.fleet import Fleet
from fairlead.cli.fleet_file import read_fleet_file
from fairlead.core.model.devices import compile_device_class, compile_slice
from fairlead.errors import ConfigError


def test_a_device_has_attributes_and_capacities_by_the_form_of_their_values() -> None:
    devices = parse_device("gpu.example.com:2,model=H100,slot=3,ecc=true,driverVersion=1.2.3,memory=80Gi")
    compiled = compile_slice(devices.slice_for("n0"))
    assert [device.id.name for device in compiled.devices] == ["gpu-0", "gpu-1"]
    assert dict(compiled.devices[0].attributes) == {
        "model": ("string", "H100"),
        "slot": ("int", 3),
        "ecc": ("bool", True),
        "driverVersion": ("version", "1.2.3"),
    }
    assert str(compiled.devices[0].capacity["memory"].value) == "80Gi"
    assert compiled.where.node_name == "n0"
    assert compile_device_class(devices.device_class()).name == "gpu"


@pytest.mark.parametrize("text", ["gpu:8", "gpu.example.com", "gpu.example.com:0", "gpu.example.com:8,model", ":8"])
def test_what_is_no_device_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_device(text)
    assert "gpu.example.com:8" in (refused.value.hint or "")


def test_a_nodes_file_gives_devices_to_the_nodes_of_a_shape(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text('nodes:\n- {count: 2, name: gpu, devices: ["gpu.example.com:8,model=H100"]}\n- {count: 1}\n')
    shapes, objects = read_fleet_file(file)
    given = Fleet(shapes=shapes, objects=objects).devices()
    assert [(node, devices.driver, devices.count) for node, devices in given] == [
        ("gpu-0", "gpu.example.com", 8),
        ("gpu-1", "gpu.example.com", 8),
    ]
    file.write_text("nodes:\n- {count: 1, devices: [gpu]}\n")
    with pytest.raises(ConfigError, match="not the name of a driver"):
        read_fleet_file(file)

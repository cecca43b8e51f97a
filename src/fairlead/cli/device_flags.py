"""Simulated devices: what `--device` says, and the slices and classes that stand for it.

    --device gpu.example.com:8,model=H100,memory=80Gi

gives every simulated node eight devices of that driver, and makes a DeviceClass named after the driver's first word
(`gpu`). What has a unit of bytes or another suffix is a capacity; whole numbers, true and false, versions and other
words are attributes of those types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.core.model.kinds import DEVICE_CLASS, RESOURCE_SLICE
from fairlead.core.model.syntax import is_label_key
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_EXAMPLE = "for example gpu.example.com:8,model=H100,memory=80Gi"
_MOST = 128
_CAPACITY = re.compile(r"\d+(\.\d+)?([kMGTPE]i?|Ki|m)")
_VERSION = re.compile(r"\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")


@dataclass(frozen=True, slots=True)
class SimulatedDevices:
    """So many equal devices on every node."""

    driver: str
    count: int
    attributes: dict[str, Any] = field(default_factory=dict)
    capacity: dict[str, str] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The first word of the driver's name, by which devices and the class are called."""
        return self.driver.partition(".")[0]

    def device_class(self) -> Doc:
        expression = f'device.driver == "{self.driver}"'
        return {
            "apiVersion": DEVICE_CLASS.api_version,
            "kind": DEVICE_CLASS.kind,
            "metadata": {"name": self.word},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }

    def slice_for(self, node: str) -> Doc:
        device: Doc = {}
        if self.attributes:
            device["attributes"] = self.attributes
        if self.capacity:
            device["capacity"] = {name: {"value": amount} for name, amount in self.capacity.items()}
        return {
            "apiVersion": RESOURCE_SLICE.api_version,
            "kind": RESOURCE_SLICE.kind,
            "metadata": {"name": f"{node}-{self.driver}"},
            "spec": {
                "driver": self.driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"{self.word}-{at}", **device} for at in range(self.count)],
            },
        }


def parse_device(text: str) -> SimulatedDevices:
    """`DRIVER:COUNT[,NAME=VALUE...]`; raises ConfigError with what is wrong."""
    head, *rest = [part.strip() for part in text.split(",")]
    driver, colon, count = head.partition(":")
    if not driver or not is_label_key(f"x/{driver}") or "." not in driver:
        raise ConfigError(f'"{driver}" in "{text}" is not the name of a driver', hint=_EXAMPLE)
    if not colon or not count.isdecimal() or not 1 <= int(count) <= _MOST:
        raise ConfigError(f'"{count}" in "{text}" is not a number of devices from 1 to {_MOST}', hint=_EXAMPLE)
    found = SimulatedDevices(driver, int(count))
    for part in rest:
        name, equals, value = part.partition("=")
        if not (name and equals and value):
            raise ConfigError(f'"{part}" in "{text}" is not NAME=VALUE', hint=_EXAMPLE)
        if _CAPACITY.fullmatch(value):
            found.capacity[name] = value
        else:
            found.attributes[name] = _attribute(value)
    return found


def _attribute(value: str) -> Doc:
    if value.isdecimal():
        return {"int": int(value)}
    if value in ("true", "false"):
        return {"bool": value == "true"}
    return {"version": value} if _VERSION.fullmatch(value) else {"string": value}

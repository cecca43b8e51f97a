"""Device objects: the GPUs, RDMA cards and FPGAs of a node, what each can give, and where it sits.

A device that is not healthy gives nothing. Partitions are groups of GPUs that work well together; the object may list
them, by the number of GPUs, each with a score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.core.model.documents import EMPTY, compiler, read_units
from fairlead.core.model.quantity import read_quantity

GPU, RDMA, FPGA = "gpu", "rdma", "fpga"
PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
PARTITION_POLICY = "node.koordinator.sh/gpu-partition-policy"
VENDOR, MODEL = "node.koordinator.sh/gpu-vendor", "node.koordinator.sh/gpu-model"
WELL_PLANNED = "node.koordinator.sh/secondary-device-well-planned"

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class VirtualFunction:
    minor: int
    bus: str


@dataclass(frozen=True, slots=True, eq=False)
class SharedDevice:
    """One device. `numa` is None if its place is not known; `functions` are its virtual functions in groups, each with
    the labels of the group."""

    minor: int
    id: str
    labels: Mapping[str, str]
    amounts: Amounts
    numa: int | None
    pcie: str
    functions: tuple[tuple[Mapping[str, str], tuple[VirtualFunction, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class GpuPartition:
    """GPUs that are given together. `bandwidth` in base units, None if it is not known."""

    minors: tuple[int, ...]
    score: int
    bandwidth: int | None = None

    @property
    def mask(self) -> int:
        return sum(1 << minor for minor in self.minors)


@dataclass(frozen=True, slots=True, eq=False)
class NodeDevices:
    """A Device object. `partitions` are by number of GPUs, as listed; None if the object has no table."""

    name: str
    by_type: Mapping[str, tuple[SharedDevice, ...]]
    partitions: Mapping[int, tuple[GpuPartition, ...]] | None = None
    honors_partitions: bool = False
    well_planned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@compiler("Device")
def compile_devices(document: Mapping[str, Any]) -> NodeDevices:
    metadata = document["metadata"]
    annotations, labels = metadata.get("annotations") or EMPTY, metadata.get("labels") or EMPTY
    by_type: dict[str, list[SharedDevice]] = {}
    for at, device in enumerate((document.get("spec") or {}).get("devices") or ()):
        by_type.setdefault(device.get("type") or "", []).append(_device(device, f"spec.devices[{at}].resources"))
    return NodeDevices(
        name=metadata["name"],
        by_type={kind: tuple(devices) for kind, devices in by_type.items()},
        partitions=_partitions(annotations.get(PARTITIONS)),
        honors_partitions=labels.get(PARTITION_POLICY) == "Honor",
        well_planned=labels.get(WELL_PLANNED) == "true",
        labels=labels,
    )


def _device(device: Mapping[str, Any], path: str) -> SharedDevice:
    topology = device.get("topology")
    groups = tuple(
        (
            group.get("labels") or EMPTY,
            tuple(VirtualFunction(vf.get("minor") or 0, vf.get("busID") or "") for vf in group.get("vfs") or ()),
        )
        for group in device.get("vfGroups") or ()
    )
    return SharedDevice(
        minor=device.get("minor") or 0,
        id=device.get("id") or "",
        labels=device.get("labels") or EMPTY,
        amounts=read_units(device.get("resources"), path) if device.get("health") else {},
        numa=None if topology is None else topology.get("nodeID") or 0,
        pcie="" if topology is None else topology.get("pcieID") or "",
        functions=groups,
    )


def _partitions(text: str | None) -> Mapping[int, tuple[GpuPartition, ...]] | None:
    if not text:
        return None
    table = json.loads(text)
    return {
        int(count): tuple(
            GpuPartition(
                tuple(one.get("minors") or ()),
                one.get("allocationScore") or 0,
                read_quantity(one["ringBusBandwidth"]).nanos // 10**9 if one.get("ringBusBandwidth") else None,
            )
            for one in partitions or ()
        )
        for count, partitions in table.items()
    }

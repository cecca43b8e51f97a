"""DeviceConfig: the names of cards and how they may be partitioned, from the ConfigMap of the device plugins.

It is the document in `device-config.yaml` of `volcano-vgpu-device-config` (or of the ConfigMap that the arguments
name). Without one, names are Volcano's own, no card is partitioned, and the only kind of Ascend card is the 310P.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.volcano.devices.mig import Geometry, Instance

_VGPU = "volcano.sh/vgpu-"


@dataclass(frozen=True, slots=True)
class NvidiaConfig:
    """The names of resources, the ways to partition each model, and how many megabytes a unit of memory is."""

    count: str = _VGPU + "number"
    memory: str = _VGPU + "memory"
    cores: str = _VGPU + "cores"
    percentage: str = ""
    memory_factor: int = 0
    geometries: tuple[tuple[tuple[str, ...], tuple[Geometry, ...]], ...] = ()

    def geometries_of(self, model: str) -> tuple[Geometry, ...] | None:
        """None for a model of which nothing is said."""
        return next((ways for names, ways in self.geometries if any(name in model for name in names)), None)


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    memory: int


@dataclass(frozen=True, slots=True)
class VnpuConfig:
    """A kind of Ascend card: the names of its resources, and the sizes of its parts, smallest first."""

    word: str
    resource: str
    memory_resource: str
    allocatable: int
    capacity: int
    templates: tuple[Template, ...] = ()

    def trimmed(self, memory: int) -> tuple[int, str]:
        """The size that an amount of memory is rounded up to, and its name; the whole card has none."""
        for template in self.templates:
            if memory <= template.memory:
                return template.memory, template.name
        return (self.allocatable if memory <= self.capacity else 0), ""


_ASCEND_310P = VnpuConfig(
    "Ascend310P",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-memory",
    allocatable=21527,
    capacity=24576,
    templates=(Template("vir01", 3072), Template("vir02", 6144), Template("vir04", 12288)),
)


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    nvidia: NvidiaConfig = field(default_factory=NvidiaConfig)
    vnpus: tuple[VnpuConfig, ...] = (_ASCEND_310P,)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> DeviceConfig:
        """What a document says and nothing else: a name that it leaves out is empty. Raises ValueError, TypeError or
        KeyError if it cannot be read."""
        vnpus = document.get("vnpus") or ()
        listed = vnpus.get("configs") or () if isinstance(vnpus, Mapping) else vnpus
        return cls(_nvidia(document.get("nvidia") or {}), tuple(_vnpu(one) for one in listed))


def _nvidia(given: Mapping[str, Any]) -> NvidiaConfig:
    return NvidiaConfig(
        count=given.get("resourceCountName") or "",
        memory=given.get("resourceMemoryName") or "",
        cores=given.get("resourceCoreName") or "",
        percentage=given.get("resourceMemoryPercentageName") or "",
        memory_factor=int(given.get("gpuMemoryFactor") or 0),
        geometries=tuple(
            (tuple(one.get("models") or ()), tuple(_geometries(one.get("allowedGeometries") or ())))
            for one in given.get("knownMigGeometries") or ()
        ),
    )


def _geometries(listed: Iterable[Mapping[str, Any]]) -> Iterable[Geometry]:
    for one in listed:
        sizes = one.get("geometries") or ()
        yield Geometry(
            one.get("group") or "",
            tuple(Instance(size["name"], int(size["memory"]), int(size["count"])) for size in sizes),
        )


def _vnpu(given: Mapping[str, Any]) -> VnpuConfig:
    templates = [Template(one["name"], int(one["memory"])) for one in given.get("templates") or ()]
    return VnpuConfig(
        word=given["commonWord"],
        resource=given["resourceName"],
        memory_resource=given.get("resourceMemoryName") or "",
        allocatable=int(given.get("memoryAllocatable") or 0),
        capacity=int(given.get("memoryCapacity") or 0),
        templates=tuple(sorted(templates, key=lambda template: template.memory)),
    )

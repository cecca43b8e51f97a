"""What a pod wants of devices: amounts per type, checked and brought to a few names, hints, and joint allocation.

GPUs can be requested whole (by the vendor's name), in percent, by memory, or several shares at once. Only some
combinations of names make sense; others are refused in the original's words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.core.model.quantity import format_quantity, read_quantity
from fairlead.core.model.reasons import SKIP, Status, unresolvable
from fairlead.core.model.selectors import selector_from_document
from fairlead.koordinator.records.cards import FPGA, GPU, RDMA

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.requirements import LabelSelector

HINTS = "scheduling.koordinator.sh/device-allocate-hint"
JOINT = "scheduling.koordinator.sh/device-joint-allocate"
PARTITION_SPEC = "scheduling.koordinator.sh/gpu-partition-spec"
CORE, MEMORY, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio"
KOORD_GPU, SHARED = "koordinator.sh/gpu", "koordinator.sh/gpu.shared"
NPU_CORE, NPU_CPU, NPU_DVPP = "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp"
_VENDORS = ("nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu")
_NAMES = {
    GPU: (*_VENDORS, KOORD_GPU, SHARED, CORE, MEMORY, RATIO, NPU_CORE, NPU_CPU, NPU_DVPP),
    RDMA: ("koordinator.sh/rdma",),
    FPGA: ("koordinator.sh/fpga",),
}
_ALL_NAMES = dict.fromkeys(name for names in _NAMES.values() for name in names).keys()
_PERCENT = frozenset({KOORD_GPU, "koordinator.sh/rdma", "koordinator.sh/fpga"})
SCOPES = {"Device": 4, "PCIe": 3, "NUMANode": 2, "Node": 1}
APPLY_FOR_ALL, AS_COUNT = "ApplyForAll", "RequestsAsCount"
SAME_PCIE = "SamePCIe"

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DeviceHint:
    """A pod's demands for one type of device."""

    selector: LabelSelector | None = None
    vf_selector: LabelSelector | None = None
    strategy: str = ""
    scope: str = ""
    exclusive: str = ""


@dataclass(frozen=True, slots=True)
class GpuDemand:
    """So many GPUs with so much of each; `shared` if they are not given whole. `honors` says that the pod insists on
    partitions, `restricted` on the first group of them, `bandwidth` on so much."""

    count: int
    each: Amounts
    shared: bool
    honors: bool = False
    restricted: bool = False
    bandwidth: int | None = None
    scope: str = ""
    templates: Mapping[str, tuple[str, ...]] | None = None
    """By vendor and model of GPUs the templates that have what is asked; None if shares are not given by template."""

    @property
    def level(self) -> int:
        return SCOPES.get(self.scope, 0)


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """Amounts by type, under the names that devices have; `joint` are the types that are allocated together, the
    primary one first."""

    amounts: Mapping[str, Amounts]
    gpu: GpuDemand | None = None
    hints: Mapping[str, DeviceHint] = field(default_factory=dict)
    joint: tuple[str, ...] = ()
    joint_scope: str = ""

    @property
    def has_selectors(self) -> bool:
        return any(hint.selector is not None for hint in self.hints.values())


def wants_devices(pod: Pod) -> bool:
    """Whether a pod requests something of a device."""
    asked = pod.shape.fit_request
    return not _ALL_NAMES.isdisjoint(asked) and any(asked.get(name) for name in _ALL_NAMES)


def demand_key(pod: Pod) -> Hashable:
    """Equal for pods whose requests for devices are equal."""
    asked = pod.shape.fit_request
    amounts = tuple((name, asked[name]) for name in _ALL_NAMES if asked.get(name))
    return amounts, *(pod.annotations.get(key, "") for key in (HINTS, JOINT, PARTITION_SPEC))


def device_request(pod: Pod) -> DeviceDemand | Status:
    """The demands of a pod; SKIP if it wants no device, a refusal if they make no sense."""
    amounts: dict[str, Amounts] = {}
    asked = pod.shape.fit_request
    for kind, names in _NAMES.items():
        own = {name: asked[name] for name in names if asked.get(name)}
        if own:
            try:
                amounts[kind] = _converted(own)
            except ValueError as error:
                return unresolvable(str(error))
    if not amounts:
        return SKIP
    try:
        return _request(amounts, *(pod.annotations.get(key, "") for key in (HINTS, JOINT, PARTITION_SPEC)))
    except ValueError as error:
        return unresolvable(str(error))


def _request(amounts: Mapping[str, Amounts], hints: str, joint: str, partition: str) -> DeviceDemand:
    hints_by_type = _hints(hints)
    spec = _read(joint, "DeviceJointAllocate")
    types = tuple(
        kind
        for kind in spec.get("deviceTypes") or ()
        if kind in amounts and (kind not in hints_by_type or hints_by_type[kind].strategy != APPLY_FOR_ALL)
    )
    gpu = _gpu(amounts[GPU], hints_by_type.get(GPU), partition) if GPU in amounts else None
    return DeviceDemand(amounts, gpu, hints_by_type, types, spec.get("requiredScope") or "")


def _read(text: str, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise ValueError(f"invalid {what} annotation, err: {error}") from None
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=512)
def _hints(text: str) -> Mapping[str, DeviceHint]:
    return {
        kind: DeviceHint(
            selector_from_document(hint["selector"]) if hint.get("selector") is not None else None,
            selector_from_document(hint["vfSelector"]) if hint.get("vfSelector") is not None else None,
            hint.get("allocateStrategy") or "",
            hint.get("requiredTopologyScope") or "",
            hint.get("exclusivePolicy") or "",
        )
        for kind, hint in _read(text, "DeviceAllocateHint").items()
        if isinstance(hint, dict)
    }


# ---- what combinations mean ----


def _converted(asked: Amounts) -> Amounts:
    """The amounts under the names that devices have; a ValueError in the original's words."""
    for name, amount in asked.items():
        if name in _PERCENT and not _is_percentage(amount):
            raise ValueError(f"invalid resource unit {name}: {format_quantity(amount, name)}")
    names = frozenset(asked)
    if len(names) == 1:
        name, amount = next(iter(asked.items()))
        if name in _VENDORS:
            return {CORE: amount * 100, RATIO: amount * 100}
        if name == KOORD_GPU:
            return {CORE: amount, RATIO: amount}
        if name in _NAMES[RDMA] or name in _NAMES[FPGA]:
            return asked
    valid = _COMBINATIONS.get(names)
    if valid is None or not valid(asked):
        raise ValueError(f"invalid resource device requests: [{' '.join(sorted(names))}]")
    return asked


def _is_percentage(amount: int) -> bool:
    return amount <= 100 or amount % 100 == 0


def _percentages(asked: Amounts) -> bool:
    return all(_is_percentage(asked[name]) for name in (CORE, RATIO) if name in asked)


def _shares(asked: Amounts) -> bool:
    count = asked[SHARED]
    return all(asked[name] % count == 0 and asked[name] // count <= 100 for name in (CORE, RATIO) if name in asked)


def _npu_share(asked: Amounts) -> bool:
    return asked[SHARED] <= 1 and asked.get(NPU_DVPP, 0) <= 100


_COMBINATIONS: Mapping[frozenset[str], Callable[[Amounts], bool]] = {
    frozenset({MEMORY}): _percentages,
    frozenset({RATIO}): _percentages,
    frozenset({CORE, MEMORY}): _percentages,
    frozenset({CORE, RATIO}): _percentages,
    frozenset({NPU_CORE, RATIO}): _percentages,
    frozenset({SHARED, MEMORY}): _shares,
    frozenset({SHARED, RATIO}): _shares,
    frozenset({SHARED, CORE, MEMORY}): _shares,
    frozenset({SHARED, CORE, RATIO}): _shares,
    frozenset({SHARED, NPU_CORE, NPU_CPU, MEMORY}): _npu_share,
    frozenset({SHARED, NPU_CORE, NPU_CPU, NPU_DVPP, MEMORY}): _npu_share,
}


def _gpu(asked: Amounts, hint: DeviceHint | None, partition: str) -> GpuDemand:
    ratio = asked.get(RATIO)
    count = asked.get(SHARED, 0)
    if not count:
        count = ratio // 100 if ratio is not None and ratio > 100 and ratio % 100 == 0 else 1
    each = {name: asked[name] // count for name in (CORE, NPU_CORE, NPU_CPU, NPU_DVPP) if name in asked}
    if ratio is not None:
        each[RATIO] = ratio // count
        shared = each[RATIO] < 100
    else:
        each[MEMORY] = asked[MEMORY] // count
        shared = True
    spec = _read(partition, "GPUPartitionSpec") if partition else None
    bandwidth = spec.get("ringBusBandwidth") if spec else None
    return GpuDemand(
        count=count,
        each=each,
        shared=shared,
        honors=spec is not None,
        restricted=spec is not None and spec.get("allocatePolicy") == "Restricted",
        bandwidth=read_quantity(bandwidth).nanos // 10**9 if bandwidth else None,
        scope=hint.scope if hint is not None else "",
    )

"""Devices as drivers publish them: ResourceSlices with their devices, and DeviceClasses that select among them.

A device is known by driver, pool and name. What selectors can read of it is one hashable `kind`, so that whatever was
found out about a device holds for all devices that are equal in it. Selectors are texts here; they are compiled outside
of the core and handed in through `CompileSelector`.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fairlead.core.model.documents import FieldError, compiler, created_at
from fairlead.core.model.quantity import Quantity, QuantityError, read_quantity
from fairlead.core.model.selectors import NodeSelector, SelectorError, parse_node_selector
from fairlead.core.model.taints import Taint, parse_taints

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Every class can be requested as an extended resource of this name."""


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


class SelectorFailed(Exception):
    """A selector came to no answer about a device; the message is the original's."""


class SelectorInvalid(Exception):
    """A text that is no selector."""


class OutOfSelectorSteps(Exception):
    """The selectors of one attempt took as many steps as they may."""


class SelectorSteps:
    """What the selectors of one attempt may still cost, in steps: equal inputs end in the same place everywhere."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class Selector(Protocol):
    def __call__(self, device: Device, steps: SelectorSteps) -> bool:
        """Whether a device matches; raises SelectorFailed, and OutOfSelectorSteps if there are too few."""
        ...


CompileSelector = Callable[[str], Selector]
"""From an expression to its Selector; raises SelectorInvalid. The implementation is fairlead.cel.selectors."""


@dataclass(frozen=True, slots=True)
class Where:
    """From which nodes something can be used: one by name, all, or those that a selector accepts. `document` is the
    selector as it was written."""

    node_name: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None
    document: Mapping[str, Any] | None = None

    def admits(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.node_name:
            return self.node_name == name
        return self.all_nodes or (self.selector is not None and self.selector.matches(labels, name))


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Which amounts of a capacity may be requested."""

    default: Quantity | None = None
    least: Quantity | None = None
    most: Quantity | None = None
    step: Quantity | None = None
    has_range: bool = False
    values: tuple[Quantity, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeviceCapacity:
    value: Quantity
    policy: RequestPolicy | None = None


Attribute = tuple[str, Any]
"""The type of a value (`int`, `bool`, `string`, `version`) and the value."""
Counters = Mapping[str, Mapping[str, int]]
"""Amounts in nanos by counter set and counter."""


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device. `shared` means that it may be allocated several times; `per_device` that `where` is its own and not
    its slice's. `kind` is all that selectors read of it, `twin` all that allocation does."""

    id: DeviceId
    attributes: Mapping[str, Attribute]
    capacity: Mapping[str, DeviceCapacity]
    counters: Counters
    where: Where
    per_device: bool
    taints: tuple[Taint, ...]
    binds_to_node: bool
    binding_conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]
    shared: bool
    kind: Hashable
    twin: Hashable

    def attribute(self, name: str) -> Attribute | None:
        """An attribute by its full name. The driver's own may be published without their domain."""
        found = self.attributes.get(name)
        if found is not None:
            return found
        domain, slash, bare = name.partition("/")
        return self.attributes.get(bare) if slash and domain == self.id.driver else None


@dataclass(frozen=True, slots=True, eq=False)
class ResourceSlice:
    """A part of a pool. `whole` is how many parts the pool has in this generation."""

    name: str
    pool: PoolId
    generation: int
    whole: int
    where: Where
    per_device: bool
    devices: tuple[Device, ...]
    counter_sets: tuple[tuple[str, Mapping[str, int]], ...]
    twin: Hashable

    @property
    def binds_late(self) -> bool:
        """Whether a device of it has conditions to be met before a pod may be bound."""
        return any(device.binding_conditions for device in self.devices)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceClass:
    """`extended` is the name of the extended resource that it serves, if any. `configs` go into allocations."""

    name: str
    selectors: tuple[str, ...]
    configs: tuple[Mapping[str, Any], ...]
    extended: str
    created: float


@compiler("ResourceSlice")
def compile_slice(document: Mapping[str, Any]) -> ResourceSlice:
    spec = document["spec"]
    pool = PoolId(spec["driver"], spec["pool"]["name"])
    per_device = bool(spec.get("perDeviceNodeSelection"))
    where = _where(spec, "spec")
    devices = tuple(
        _device(one, pool, where, per_device=per_device, path=f"spec.devices[{at}]")
        for at, one in enumerate(spec.get("devices") or ())
    )
    sets = tuple(
        (one["name"], _counters(one.get("counters"), f"spec.sharedCounters[{at}]"))
        for at, one in enumerate(spec.get("sharedCounters") or ())
    )
    return ResourceSlice(
        name=document["metadata"]["name"],
        pool=pool,
        generation=spec["pool"].get("generation") or 0,
        whole=spec["pool"].get("resourceSliceCount") or 0,
        where=where,
        per_device=per_device,
        devices=devices,
        counter_sets=sets,
        twin=(tuple(device.twin for device in devices), marshal.dumps(spec.get("sharedCounters"), 2), per_device),
    )


@compiler("DeviceClass")
def compile_device_class(document: Mapping[str, Any]) -> DeviceClass:
    spec, metadata = document.get("spec") or {}, document["metadata"]
    return DeviceClass(
        name=metadata["name"],
        selectors=tuple(one["cel"]["expression"] for one in spec.get("selectors") or ()),
        configs=tuple(spec.get("config") or ()),
        extended=spec.get("extendedResourceName") or "",
        created=created_at(metadata),
    )


def _device(one: Mapping[str, Any], pool: PoolId, where: Where, *, per_device: bool, path: str) -> Device:
    attributes = {name: _attribute(value) for name, value in (one.get("attributes") or {}).items()}
    capacity = {
        name: _capacity(value, f"{path}.capacity[{name}]") for name, value in (one.get("capacity") or {}).items()
    }
    shared = bool(one.get("allowMultipleAllocations"))
    kind = (
        pool.driver,
        shared,
        tuple(sorted(attributes.items())),
        tuple(sorted((name, amount.value.nanos) for name, amount in capacity.items())),
    )
    rest = {name: value for name, value in one.items() if name not in ("name", "attributes")}
    return Device(
        id=DeviceId(pool.driver, pool.pool, one["name"]),
        attributes=attributes,
        capacity=capacity,
        counters={
            used["counterSet"]: _counters(used.get("counters"), f"{path}.consumesCounters[{at}]")
            for at, used in enumerate(one.get("consumesCounters") or ())
        },
        where=_where(one, path) if per_device else where,
        per_device=per_device,
        taints=parse_taints(one.get("taints")),
        binds_to_node=bool(one.get("bindsToNode")),
        binding_conditions=tuple(one.get("bindingConditions") or ()),
        failure_conditions=tuple(one.get("bindingFailureConditions") or ()),
        shared=shared,
        kind=kind,
        twin=(kind, marshal.dumps(_sorted(rest), 2)),
    )


def _sorted(value: Any) -> Any:
    """The same value with maps as sorted pairs, so that equal ones have one encoding."""
    if isinstance(value, Mapping):
        return tuple((key, _sorted(value[key])) for key in sorted(value))
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _attribute(value: Mapping[str, Any]) -> Attribute:
    for kind in ("int", "bool", "string", "version"):
        if value.get(kind) is not None:
            return kind, value[kind]
    return "", None


def _capacity(document: Mapping[str, Any], path: str) -> DeviceCapacity:
    policy = document.get("requestPolicy")
    amount = _quantity(document.get("value"), f"{path}.value")
    if policy is None:
        return DeviceCapacity(amount)
    limits = policy.get("validRange")
    values = policy.get("validValues")

    def read(holder: Mapping[str, Any] | None, name: str) -> Quantity | None:
        found = (holder or {}).get(name)
        return None if found is None else _quantity(found, f"{path}.requestPolicy.{name}")

    return DeviceCapacity(
        amount,
        RequestPolicy(
            default=read(policy, "default"),
            least=read(limits, "min"),
            most=read(limits, "max"),
            step=read(limits, "step"),
            has_range=limits is not None,
            values=None if values is None else tuple(_quantity(v, f"{path}.requestPolicy") for v in values),
        ),
    )


def _counters(document: Mapping[str, Any] | None, path: str) -> dict[str, int]:
    return {
        name: _quantity(counter.get("value"), f"{path}.counters[{name}]").nanos
        for name, counter in (document or {}).items()
    }


def _quantity(value: Any, path: str) -> Quantity:
    try:
        return read_quantity(value)
    except QuantityError as error:
        raise FieldError(path, str(error)) from None


def _where(holder: Mapping[str, Any], path: str) -> Where:
    document = holder.get("nodeSelector")
    try:
        selector = None if document is None else parse_node_selector(document, strict=True)
    except SelectorError as error:
        raise FieldError(f"{path}.nodeSelector", str(error)) from None
    return Where(holder.get("nodeName") or "", bool(holder.get("allNodes")), selector, document)

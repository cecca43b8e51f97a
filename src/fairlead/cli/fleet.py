"""The simulated nodes of a cluster, from what the command line says: how many, in which zones, of which shapes.

    --nodes 20 --zones 3 --shape 5:cpu=64,memory=256Gi,nvidia.com/gpu=8 --shape cpu=8,memory=32Gi

A shape with a count gives that many nodes; those without share what is left of `--nodes`. Nodes are called node-0,
node-1 and so on, or after the `name` of their shape: the number alone decides zone and name, so that requesting more of
them later only adds. A file can say the same (`fleet_file.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from fairlead.cluster.admission.names import dns_label
from fairlead.cluster.kubelets.simulated_nodes import simulated_node
from fairlead.core.model.quantity import is_extended, parse_quantity
from fairlead.core.model.syntax import is_label_key, label_value_complaints
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.cli.device_flags import SimulatedDevices
    from fairlead.core.model.flow import Doc

DEFAULT_NODES = 10
REGION = "local"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
NATIVE = ("cpu", "memory", "pods", "ephemeral-storage")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a node offers and how it is marked. `count` None: as many as are left. Nodes of a shape with a `name` are
    called after it, name-0, name-1 and so on."""

    resources: dict[str, str] = field(default_factory=dict)
    count: int | None = None
    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Doc, ...] = ()
    devices: tuple[SimulatedDevices, ...] = ()

    def __post_init__(self) -> None:
        for resource, amount in self.resources.items():
            _check_resource(resource, amount)
        if self.name and dns_label(self.name):
            raise ConfigError(
                f'"{self.name}" cannot begin a node name',
                hint="lower case letters, digits and -, for example gpu-large",
            )
        for key, value in self.labels.items():
            if not is_label_key(key) or label_value_complaints(value):
                raise ConfigError(f'"{key}={value}" is not a label', hint="for example label.team=ml")
        for taint in self.taints:
            _check_taint(taint)


def parse_shape(text: str) -> NodeShape:
    """`5:cpu=64,memory=256Gi,name=gpu,type=p4d.24xlarge,label.team=ml,taint.gpu=yes:NoSchedule`; raises ConfigError
    with what is wrong."""
    head, colon, tail = text.partition(":")
    if not colon or "=" in head:
        return NodeShape(**_parts(text))
    if not head.isdecimal() or int(head) == 0:
        raise ConfigError(f'"{head}" in "{text}" is not a number of nodes', hint="for example 5:cpu=64,memory=256Gi")
    return NodeShape(count=int(head), **_parts(tail))


def _parts(text: str) -> dict[str, Any]:
    """Resources, name, labels and taints of a shape, each named once."""
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    taints: list[Doc] = []
    name, named = "", set[str]()
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not (key and equals and value):
            raise ConfigError(f'"{part}" is not a resource', hint="for example cpu=8,memory=32Gi,pods=110")
        if key in named:
            raise ConfigError(f'{key} is given twice in "{text}"', hint="once each, for example cpu=8,memory=32Gi")
        named.add(key)
        if key == "name":
            name = value
        elif key == "type":
            labels[INSTANCE_TYPE] = value
        elif key.startswith("label."):
            labels[key.removeprefix("label.")] = value
        elif key.startswith("taint."):
            taints.append(_taint(key.removeprefix("taint."), value))
        else:
            resources[key] = value
    return {"resources": resources, "name": name, "labels": labels, "taints": tuple(taints)}


def _taint(key: str, text: str) -> Doc:
    value, _, effect = text.rpartition(":")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _check_taint(taint: Doc) -> None:
    if taint.get("effect") not in EFFECTS:
        hint = f"one of {', '.join(EFFECTS)}, for example taint.gpu=yes:NoSchedule"
        raise ConfigError(f'"{taint.get("effect")}" is not the effect of a taint', hint=hint)
    if not is_label_key(str(taint.get("key", ""))) or label_value_complaints(str(taint.get("value", ""))):
        raise ConfigError(f'"{taint.get("key")}={taint.get("value", "")}" is not a taint')


def _check_resource(name: str, amount: str) -> None:
    if not (name in NATIVE or name.startswith("hugepages-") or is_extended(name)):
        hint = f"extended resources have a domain, for example nvidia.com/{name if name.isalnum() else 'gpu'}"
        raise ConfigError(f'"{name}" is not a resource of nodes', hint=hint)
    try:
        negative = parse_quantity(amount).nanos < 0
    except ValueError:
        raise ConfigError(f'"{amount}" is not a quantity of {name}', hint="for example 8, 500m, 32Gi") from None
    if negative:
        raise ConfigError(f"{name}={amount} must not be negative", hint="0 or more, for example 8")


def parse_zones(text: str) -> tuple[str, ...]:
    """A number of zones, or their names separated by commas."""
    if not text.isdecimal():
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        for name in names:
            if label_value_complaints(name):
                raise ConfigError(f'"{name}" is not the name of a zone', hint="a number of zones, or names as in a,b,c")
        return names
    if int(text) > len(ascii_lowercase):
        return tuple(f"zone-{number}" for number in range(int(text)))
    return tuple(f"zone-{letter}" for letter in ascii_lowercase[: int(text)])


@dataclass(frozen=True, slots=True)
class Fleet:
    """`nodes` None: what the counted shapes add up to, or a handful."""

    nodes: int | None = None
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    shapes: Sequence[NodeShape] = ()
    objects: Sequence[Doc] = ()
    """Nodes that a file spells out; they come on top."""

    def __post_init__(self) -> None:
        counted = self._counted
        if self.nodes is not None and self.nodes < counted:
            raise ConfigError(f"the shapes count {counted} nodes, more than --nodes {self.nodes}")
        if self.nodes is not None and self.nodes > counted and self.shapes and not self._shared:
            raise ConfigError(
                f"the shapes count {counted} nodes, fewer than --nodes {self.nodes}",
                hint="leave the count of one shape away, then it takes the rest",
            )

    def __len__(self) -> int:
        return self._made + len(self.objects)

    @property
    def _made(self) -> int:
        """How many nodes are made from shapes."""
        if self.nodes is not None:
            return self.nodes
        if self._shared or not (self.shapes or self.objects):
            return max(DEFAULT_NODES, self._counted)
        return self._counted

    @property
    def _counted(self) -> int:
        return sum(shape.count or 0 for shape in self.shapes)

    @property
    def _shared(self) -> list[NodeShape]:
        return [shape for shape in self.shapes if shape.count is None]

    def documents(self, *, now: float) -> list[Doc]:
        """All nodes, ready from the start."""
        return [*(self._node(number, *one, now) for number, one in enumerate(self._named())), *self.objects]

    def devices(self) -> list[tuple[str, SimulatedDevices]]:
        """The devices that shapes give their nodes, each with the node's name."""
        return [(name, devices) for name, shape in self._named() for devices in shape.devices]

    def _named(self) -> list[tuple[str, NodeShape]]:
        """The nodes that are made from shapes, by name."""
        of_name: defaultdict[str, Iterator[int]] = defaultdict(count)
        return [
            (f"{shape.name}-{next(of_name[shape.name])}" if shape.name else f"node-{number}", shape)
            for number, shape in enumerate(self._one_shape_each())
        ]

    def _one_shape_each(self) -> list[NodeShape]:
        each = [shape for shape in self.shapes for _ in range(shape.count or 0)]
        shared = self._shared or [NodeShape()]
        return each + [shared[number % len(shared)] for number in range(self._made - len(each))]

    def _node(self, number: int, name: str, shape: NodeShape, now: float) -> Doc:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"} | shape.resources
        zone = self.zones[number % len(self.zones)] if self.zones else ""
        return simulated_node(
            name,
            cpu=resources.pop("cpu"),
            memory=resources.pop("memory"),
            pods=resources.pop("pods"),
            zone=zone,
            region=REGION if zone else "",
            extra=resources,
            now=now,
            labels=shape.labels,
            taints=shape.taints,
        )

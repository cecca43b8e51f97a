"""The simulated nodes of a cluster, from what the command line says: how many, in which zones, of which shapes.

    --nodes 20 --zones 3 --shape 5:cpu=64,memory=256Gi,nvidia.com/gpu=8 --shape cpu=8,memory=32Gi

A shape with a count gives that many nodes; those without share what is left of `--nodes`. Nodes are called node-0,
node-1 and so on: the number alone decides zone and name, so that asking for more of them later only adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import TYPE_CHECKING

from fairlead.controllers.nodes.simulated_nodes import simulated_node
from fairlead.errors import ConfigError
from fairlead.model.quantity import parse_quantity

if TYPE_CHECKING:
    from fairlead.model.flow import Doc

DEFAULT_NODES = 10
REGION = "local"


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a node offers. `count` None: as many as are left."""

    resources: dict[str, str] = field(default_factory=dict)
    count: int | None = None


def parse_shape(text: str) -> NodeShape:
    """`5:cpu=64,memory=256Gi`; raises ConfigError with what is wrong."""
    head, colon, tail = text.partition(":")
    if not colon:
        return NodeShape(_resources(text))
    if not head.isdecimal() or int(head) == 0:
        raise ConfigError(f'"{head}" in "{text}" is not a number of nodes', hint="for example 5:cpu=64,memory=256Gi")
    return NodeShape(_resources(tail), int(head))


def _resources(text: str) -> dict[str, str]:
    resources: dict[str, str] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        if not (name and equals and amount):
            raise ConfigError(f'"{part}" is not a resource', hint="for example cpu=8,memory=32Gi,pods=110")
        try:
            parse_quantity(amount)
        except ValueError:
            raise ConfigError(f'"{amount}" is not a quantity of {name}', hint="for example 8, 500m, 32Gi") from None
        resources[name] = amount
    return resources


def parse_zones(text: str) -> tuple[str, ...]:
    """A number of zones, or their names separated by commas."""
    if not text.isdecimal():
        return tuple(name.strip() for name in text.split(",") if name.strip())
    if int(text) > len(ascii_lowercase):
        return tuple(f"zone-{number}" for number in range(int(text)))
    return tuple(f"zone-{letter}" for letter in ascii_lowercase[: int(text)])


@dataclass(frozen=True, slots=True)
class Fleet:
    """`nodes` None: what the counted shapes add up to, or a handful."""

    nodes: int | None = None
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    shapes: Sequence[NodeShape] = ()

    def __post_init__(self) -> None:
        counted = self._counted
        if self.nodes is not None and self.nodes < counted:
            raise ConfigError(f"the shapes count {counted} nodes, more than --nodes {self.nodes}")
        if self.nodes is not None and self.nodes > counted and self.shapes and not self._shared:
            raise ConfigError(f"the shapes count {counted} nodes, fewer than --nodes {self.nodes}",
                              hint="leave the count of one shape away, then it takes the rest")  # fmt: skip

    def __len__(self) -> int:
        if self.nodes is not None:
            return self.nodes
        return self._counted + (0 if self.shapes and not self._shared else max(0, DEFAULT_NODES - self._counted))

    @property
    def _counted(self) -> int:
        return sum(shape.count or 0 for shape in self.shapes)

    @property
    def _shared(self) -> list[NodeShape]:
        return [shape for shape in self.shapes if shape.count is None]

    def documents(self, *, now: float) -> list[Doc]:
        """All nodes, ready from the start."""
        return [self._node(number, shape, now) for number, shape in enumerate(self._one_shape_each())]

    def _one_shape_each(self) -> list[NodeShape]:
        each = [shape for shape in self.shapes for _ in range(shape.count or 0)]
        shared = self._shared or [NodeShape()]
        return each + [shared[number % len(shared)] for number in range(len(self) - len(each))]

    def _node(self, number: int, shape: NodeShape, now: float) -> Doc:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"} | shape.resources
        zone = self.zones[number % len(self.zones)] if self.zones else ""
        return simulated_node(
            f"node-{number}",
            cpu=resources.pop("cpu"), memory=resources.pop("memory"), pods=resources.pop("pods"),
            zone=zone, region=REGION if zone else "", extra=resources, now=now,
        )  # fmt: skip

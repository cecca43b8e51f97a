"""Environment: the variables that an expression sees, and what is known of their types and sizes before it runs.

Selectors of devices and the rules of CustomResourceDefinitions share one language and differ in this: a selector sees
a device, a rule the value where it stands. Functions and overloads are the same for both (`overloads.txt`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.cel import types as t
from fairlead.cel.sizes import CostRange, size_in_device
from fairlead.cel.types import Type, parse_type

SizeOf = Callable[[Sequence[str]], CostRange | None]


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    variables: Mapping[str, Type]
    size_of: SizeOf
    """The most characters, entries or elements of what a path leads to; None if nothing is known of it."""
    fields: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    """The fields of each object type."""
    bindings: bool = False
    """Whether there is the macro `cel.bind`, which Kubernetes has for selectors of devices alone."""


DEVICE = Type("kubernetes.DRADevice")
DEVICES = Environment(
    variables={"device": DEVICE},
    size_of=size_in_device,
    fields={
        DEVICE.name: {
            "driver": t.STRING,
            "attributes": parse_type("map(string, map(string, any))"),
            "capacity": parse_type("map(string, map(string, kubernetes.Quantity))"),
            "allowMultipleAllocations": t.BOOL,
        }
    },
    bindings=True,
)
"""What a selector of devices sees."""

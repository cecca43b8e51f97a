"""Amounts: Volcano's resource vectors, with its own arithmetic and its own ideas of "less or equal".

A vector has cpu in milli, memory in bytes, `pods` and volumes in ones, and any other scalar that is named in milli, all
as float64.
Amounts that differ by less than EPSILON are equal where the original says so, and only there: every comparison below is
one of the original's variants, because users' shares depend on which one is asked. What a missing name means is part of
the comparison: zero, or no limit at all.

A vector without any scalar is what the original calls a nil map; a few operations treat it apart, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from sys import float_info

from fairlead.core.model.quantity import is_scalar

EPSILON = 0.1
UNLIMITED = float_info.max
PODS = "pods"
ATTACHABLE = "attachable-volumes-"
"""What the names of resources begin with that are volumes."""


class Missing(Enum):
    """What a name stands for where it is missing."""

    ZERO = "Zero"
    INFINITY = "Infinity"


ZERO = Missing.ZERO
INFINITY = Missing.INFINITY


def within(left: float, right: float) -> bool:
    """Less or equal, give or take EPSILON."""
    return left < right or abs(left - right) < EPSILON


def share(part: float, whole: float) -> float:
    """part / whole, where some of nothing is all of it."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def per_unit(resource: str) -> int:
    """How many of Volcano's units are in one of ours: scalars are counted in thousandths there."""
    return 1 if resource in ("cpu", "memory", PODS) or resource.startswith(ATTACHABLE) else 1000


def is_counted(resource: str) -> bool:
    """Whether Volcano counts a resource at all."""
    if resource.startswith("count/"):
        return False
    return resource in ("cpu", "memory", PODS, "ephemeral-storage") or is_scalar(resource)


def _in_words(amount: float) -> str:
    if amount == UNLIMITED:
        return "maxFloat"
    return "maxInt" if amount == float(2**63 - 1) else f"{amount:.2f}"


class Amounts:
    """A resource vector. Mutable: `add`, `subtract`, ... change it, the operators make new ones."""

    __slots__ = ("cpu", "memory", "scalars")

    def __init__(self, cpu: float = 0.0, memory: float = 0.0, scalars: Mapping[str, float] | None = None) -> None:
        self.cpu = cpu
        self.memory = memory
        self.scalars: dict[str, float] = dict(scalars) if scalars else {}

    @classmethod
    def of(cls, units: Mapping[str, int] | None) -> Amounts:
        """From base units, as a ResourceList is converted."""
        made = cls()
        for resource, amount in (units or {}).items():
            if is_counted(resource):
                made.set(resource, float(amount) * per_unit(resource))
        return made

    def to_units(self) -> dict[str, int]:
        """Back to base units, as queue status is written; scalars are rounded up."""
        units = {"cpu": int(self.cpu), "memory": int(self.memory)}
        for name, amount in self.scalars.items():
            units[name] = -int(-amount // per_unit(name))
        return units

    def copy(self) -> Amounts:
        made = Amounts(self.cpu, self.memory)
        made.scalars = self.scalars.copy()
        return made

    # ---- reading ----

    def get(self, resource: str) -> float:
        if resource == "cpu":
            return self.cpu
        return self.memory if resource == "memory" else self.scalars.get(resource, 0.0)

    def set(self, resource: str, amount: float) -> None:
        if resource == "cpu":
            self.cpu = amount
        elif resource == "memory":
            self.memory = amount
        else:
            self.scalars[resource] = amount

    def items(self) -> Iterator[tuple[str, float]]:
        """Every dimension there is, cpu and memory first, zeros included."""
        yield "cpu", self.cpu
        yield "memory", self.memory
        yield from self.scalars.items()

    def names(self) -> list[str]:
        """ResourceNames: dimensions with a noticeable amount."""
        return [name for name, amount in self.items() if amount >= EPSILON]

    @property
    def empty(self) -> bool:
        """IsEmpty: nothing noticeable but `pods`."""
        return (
            self.cpu < EPSILON
            and self.memory < EPSILON
            and all(amount < EPSILON for name, amount in self.scalars.items() if name != PODS)
        )

    @property
    def nothing(self) -> bool:
        """Whether adding it changes nothing: no amount, and no scalar is named."""
        return not (self.cpu or self.memory or self.scalars)

    def __eq__(self, other: object) -> bool:
        """Exactly equal, names included; `equal` is the tolerant one."""
        if not isinstance(other, Amounts):
            return NotImplemented
        return self.cpu == other.cpu and self.memory == other.memory and self.scalars == other.scalars

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"Amounts({dict(self.items())})"

    def __str__(self) -> str:
        """As the original's messages have it: `cpu 2250.00, memory 512.00, pods 103.00`."""
        named = [("cpu", self.cpu), ("memory", self.memory), *sorted(self.scalars.items())]
        return ", ".join(f"{name} {_in_words(amount)}" for name, amount in named)

    # ---- changing ----

    def add(self, other: Amounts) -> Amounts:
        self.cpu += other.cpu
        self.memory += other.memory
        scalars = self.scalars
        for name, amount in other.scalars.items():
            scalars[name] = scalars.get(name, 0.0) + amount
        return self

    def subtract(self, other: Amounts) -> Amounts:
        """Take away, below zero if it must be. Without any scalar here, scalars are not subtracted."""
        self.cpu -= other.cpu
        self.memory -= other.memory
        scalars = self.scalars
        if scalars:
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0.0) - amount
        return self

    def multiply(self, factor: float) -> Amounts:
        self.cpu *= factor
        self.memory *= factor
        for name in self.scalars:
            self.scalars[name] *= factor
        return self

    def cap(self, other: Amounts, missing: Missing) -> Amounts:
        """MinDimensionResource: in place, the smaller of each of our own names; what the other does not name is zero
        or leaves ours alone."""
        self.cpu = min(self.cpu, other.cpu)
        self.memory = min(self.memory, other.memory)
        for name, amount in self.scalars.items():
            if name in other.scalars:
                self.scalars[name] = min(amount, other.scalars[name])
            elif missing is ZERO:
                self.scalars[name] = 0.0
        return self

    def __add__(self, other: Amounts) -> Amounts:
        return self.copy().add(other)

    def __sub__(self, other: Amounts) -> Amounts:
        return self.copy().subtract(other)

    def __mul__(self, factor: float) -> Amounts:
        return self.copy().multiply(factor)

    # ---- comparing ----

    def less_equal(self, other: Amounts, missing: Missing = ZERO) -> bool:
        """LessEqual: every dimension of ours, and with INFINITY no name that only the other has."""
        if not (within(self.cpu, other.cpu) and within(self.memory, other.memory)):
            return False
        if missing is INFINITY and any(name not in self.scalars for name in other.scalars):
            return False
        return all(within(left, right) for _, left, right in self._scalars_against(other, missing))

    def exceeding_requested(self, other: Amounts, request: Amounts) -> list[str]:
        """LessEqualWithDimensionAndResourcesName: the names in which we are above the other, without tolerance. Only
        what is requested counts, and never `pods`; without any scalar here, scalars do not count either."""
        found = []
        if request.cpu > 0 and self.cpu > other.cpu:
            found.append("cpu")
        if request.memory > 0 and self.memory > other.memory:
            found.append("memory")
        own, theirs = self.scalars, other.scalars
        if own:
            for name, asked in request.scalars.items():
                if asked > 0 and name != PODS and own.get(name, 0.0) > theirs.get(name, 0.0):
                    found.append(name)
        return found

    def less(self, other: Amounts, missing: Missing = ZERO) -> bool:
        """Less: strictly, in every dimension."""
        if not (self.cpu < other.cpu and self.memory < other.memory):
            return False
        if missing is INFINITY and any(name not in self.scalars for name in other.scalars):
            return False
        return all(left < right for _, left, right in self._scalars_against(other, missing))

    def less_partly(self, other: Amounts, missing: Missing = ZERO) -> bool:
        """LessPartly: in some dimension."""
        return self._partly(other, missing, lambda left, right: left < right)

    def within_some_requested(self, other: Amounts, request: Amounts, *, ignore_zeros: bool = False) -> list[str]:
        """LessEqualPartlyWithDimension[ZeroFiltered]: the requested names (not `pods`) in which we are not above the
        other; those where neither has anything can be left out."""
        found = self._requested(other, request, within)
        if not ignore_zeros:
            return list(found)
        return [name for name in found if not (self.get(name) < EPSILON and other.get(name) < EPSILON)]

    def above_some_requested(self, other: Amounts, request: Amounts) -> list[str]:
        """GreaterPartlyWithDimension: the requested names (not `pods`) in which we are strictly above."""
        return list(self._requested(other, request, lambda left, right: left > right))

    def above_some_relevant(self, other: Amounts, request: Amounts) -> list[str]:
        """GreaterPartlyWithRelevantDimensions: the same, where the other defines the dimension."""
        return [
            name
            for name in self.above_some_requested(other, request)
            if (other.get(name) >= EPSILON if name in ("cpu", "memory") else name in other.scalars)
        ]

    def equal(self, other: Amounts) -> bool:
        """Equal, give or take EPSILON, in cpu, memory and our own scalars."""
        return (
            abs(self.cpu - other.cpu) < EPSILON
            and abs(self.memory - other.memory) < EPSILON
            and all(abs(left - other.scalars.get(name, 0.0)) < EPSILON for name, left in self.scalars.items())
        )

    # ---- deriving ----

    def exceeded_part(self, other: Amounts | None) -> Amounts:
        """ExceededPart: what we have more than the other."""
        return self.copy() if other is None else self.difference(other)[0]

    def difference(self, other: Amounts) -> tuple[Amounts, Amounts]:
        """Diff: what we have more, and what the other has more, over the names of both."""
        more, less = Amounts(), Amounts()
        for name in dict.fromkeys(["cpu", "memory", *self.scalars, *other.scalars]):
            gap = self.get(name) - other.get(name)
            (more if gap > 0 else less).set(name, abs(gap))
        return more, less

    def _scalars_against(self, other: Amounts, missing: Missing) -> Iterator[tuple[str, float, float]]:
        for name, left in self.scalars.items():
            if name in other.scalars:
                yield name, left, other.scalars[name]
            elif missing is ZERO:
                yield name, left, 0.0

    def _requested(self, other: Amounts, request: Amounts, holds: Callable[[float, float], bool]) -> Iterator[str]:
        for name, asked in request.items():
            if asked > 0 and name != PODS and holds(self.get(name), other.get(name)):
                yield name

    def _partly(self, other: Amounts, missing: Missing, holds: Callable[[float, float], bool]) -> bool:
        if holds(self.cpu, other.cpu) or holds(self.memory, other.memory):
            return True
        if missing is ZERO and any(name not in self.scalars for name in other.scalars):
            return True
        if missing is INFINITY and any(name not in other.scalars for name in self.scalars):
            return True
        return any(holds(left, right) for _, left, right in self._scalars_against(other, missing))


def smaller(left: Amounts, right: Amounts) -> Amounts:
    """helpers.Min: scalars only if both have any; of our names."""
    made = Amounts(min(left.cpu, right.cpu), min(left.memory, right.memory))
    if left.scalars and right.scalars:
        made.scalars = {name: min(amount, right.scalars.get(name, 0.0)) for name, amount in left.scalars.items()}
    return made


def larger(left: Amounts, right: Amounts) -> Amounts:
    """helpers.Max: over the names of both; negative scalars are dropped."""
    made = Amounts(max(left.cpu, right.cpu), max(left.memory, right.memory))
    for name in dict.fromkeys([*left.scalars, *right.scalars]):
        amount = max(left.scalars.get(name, 0.0), right.scalars.get(name, 0.0))
        if amount >= 0:
            made.scalars[name] = amount
    return made


def total_of(amounts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for each in amounts:
        total.add(each)
    return total


def common_names(left: Amounts, right: Amounts, *, ignore_pods: bool = False) -> list[str]:
    """Intersection: the names in which both have something noticeable."""
    theirs = set(right.names())
    return [name for name in left.names() if name in theirs and not (ignore_pods and name == PODS)]

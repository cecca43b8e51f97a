"""Requirements on labels and their conjunction, the LabelSelector, in one canonical form.

`=` and `==` are IN with one value, `!=` is NOT_IN, values and requirements are sorted and distinct. So selectors that
say the same in other words are equal, hash equal and share whatever is remembered about them. `matches` answers for
one mapping; the state layer walks `requirements` to answer for columns.

Invariant: a Requirement made by `requirement` is valid as the original understands it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from fairlead.core.model.syntax import joined, label_key_complaints, label_value_complaints, parse_int64, quoted


class SelectorError(ValueError):
    """A selector that cannot be used; the message is the original's."""


class Op(Enum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(NamedTuple):
    """One condition on one key."""

    key: str
    op: Op
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Whether a value of the key, None for its absence, meets the condition."""
        match self.op:
            case Op.IN:
                return value in self.values
            case Op.NOT_IN:
                return value not in self.values
            case Op.EXISTS:
                return value is not None
            case Op.DOES_NOT_EXIST:
                return value is None
        number = None if value is None else parse_int64(value)
        bound = self.bound
        if number is None or bound is None:
            return False
        return number > bound if self.op is Op.GT else number < bound

    @property
    def bound(self) -> int | None:
        """The number that GT and LT compare with."""
        return parse_int64(self.values[0]) if len(self.values) == 1 else None

    def __str__(self) -> str:
        match self.op:
            case Op.EXISTS:
                return self.key
            case Op.DOES_NOT_EXIST:
                return "!" + self.key
            case Op.GT | Op.LT:
                return f"{self.key}{'>' if self.op is Op.GT else '<'}{self.values[0]}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.op is Op.IN else '!='}{self.values[0]}"
        return f"{self.key} {self.op.value.lower()} ({','.join(self.values)})"


@dataclass(frozen=True, slots=True, eq=False)
class LabelSelector:
    """A conjunction of requirements; without any it matches everything, unless it is the one that matches nothing."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether this selects everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 - a plain loop is half the cost of all()
            if not requirement.accepts(labels.get(requirement.key)):
                return False
        return True

    def plus(self, requirements: Iterable[Requirement]) -> LabelSelector:
        """This and further requirements; nothing stays nothing."""
        return self if self.nothing else conjunction((*self.requirements, *requirements))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, LabelSelector)
            and self.requirements == other.requirements
            and self.nothing == other.nothing
        )

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))

    def __str__(self) -> str:
        return "<nothing>" if self.nothing else ",".join(map(str, self.requirements))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


def conjunction(requirements: Iterable[Requirement]) -> LabelSelector:
    """The selector of requirements that are known to be valid."""
    return _interned(canonical(requirements))


def canonical(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Requirements in the one order, each once."""
    return tuple(sorted(set(requirements), key=_canonical_order))


@lru_cache(maxsize=16384)
def _interned(requirements: tuple[Requirement, ...]) -> LabelSelector:
    return LabelSelector(requirements) if requirements else EVERYTHING


def _canonical_order(requirement: Requirement) -> tuple[str, str, tuple[str, ...]]:
    return requirement.key, requirement.op.value, requirement.values


def requirement(key: str, op: Op, values: Sequence[str], path: str = "") -> Requirement:
    """A validated requirement in canonical form; `path` is where it stands, for the error."""
    complaints = _complaints(key, op, values, path + "." if path else "")
    if complaints:
        raise SelectorError(joined(complaints))
    return Requirement(key, op, tuple(sorted(set(values))))


def _complaints(key: str, op: Op, values: Sequence[str], path: str) -> list[str]:
    complaints = []
    if wrong := label_key_complaints(key):
        complaints.append(f"{path}key: Invalid value: {quoted(key)}: {'; '.join(wrong)}")
    if wrong_count := _count_complaint(op, len(values)):
        shown = json.dumps(list(values), separators=(",", ":")) if values else "null"
        complaints.append(f"{path}values: Invalid value: {shown}: {wrong_count}")
    if op in (Op.GT, Op.LT):
        complaints += [
            f"{path}values[{i}]: Invalid value: {quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(values)
            if parse_int64(value) is None
        ]
    for i, value in enumerate(values):
        if wrong := label_value_complaints(value):
            complaints.append(f"{path}values[{i}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    return complaints


def _count_complaint(op: Op, count: int) -> str:
    if op in (Op.IN, Op.NOT_IN) and count == 0:
        return "for 'in', 'notin' operators, values set can't be empty"
    if op in (Op.EXISTS, Op.DOES_NOT_EXIST) and count != 0:
        return "values set must be empty for exists and does not exist"
    if op in (Op.GT, Op.LT) and count != 1:
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return ""

"""Types of expressions before they run, and which of them may stand for which.

A type is a name with parameters. `dyn` and `any` may be everything. The names of type parameters begin with `$`: those
of an overload (`$A`), and the fresh ones that a checker puts in their place for one call (`$0`), of which a Bindings
remembers what they turned out to be.
"""

from __future__ import annotations

from typing import NamedTuple

_MESSAGES = {
    "null": "null_type", "any": "google.protobuf.Any", "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}  # fmt: skip


class Type(NamedTuple):
    name: str
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        name = f"_var{self.name[1:]}" if self.is_parameter else self.name
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    @property
    def full_name(self) -> str:
        """The name with those of well-known messages, in which the API server speaks of a result."""
        name = _MESSAGES.get(self.name, self.name)
        return f"{name}({', '.join(param.full_name for param in self.params)})" if self.params else name

    @property
    def is_parameter(self) -> bool:
        return self.name.startswith("$")

    @property
    def is_anything(self) -> bool:
        return self.name in ("dyn", "any")

    @property
    def is_optional(self) -> bool:
        return self.name == "optional_type"


DYN, ANY, ERROR, NULL = Type("dyn"), Type("any"), Type("!error!"), Type("null")
BOOL, INT, UINT, DOUBLE, STRING, BYTES = (Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes"))
SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_PLAIN = frozenset({"bool", "bytes", "double", "int", "string", "uint", "list", "map", "type", "null"})
"""Types that null cannot stand for."""


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def parse_type(text: str) -> Type:
    """The type that a text like `map(string, list(A))` names. A single capital is a parameter."""
    name, _, inner = text.partition("(")
    if not inner:
        return Type(f"${name}" if len(name) == 1 and name.isupper() else name)
    return Type(name, tuple(map(parse_type, split_types(inner[:-1]))))


def split_types(text: str) -> list[str]:
    """The parts between commas that are in no parentheses."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found if part.strip()]


class Bindings:
    """What type parameters stand for. `fits` and `all_fit` change nothing if the answer is no."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}
        self._fresh = 0

    def fresh(self) -> Type:
        self._fresh += 1
        return Type(f"${self._fresh - 1}")

    def fits(self, one: Type, other: Type) -> bool:
        """Whether a value of the one type may stand where the other is wanted."""
        return self.all_fit([one], [other])

    def all_fit(self, ones: list[Type], others: list[Type]) -> bool:
        before = dict(self._known)
        if len(ones) == len(others) and all(self._fit(one, other) for one, other in zip(ones, others, strict=True)):
            return True
        self._known = before
        return False

    def resolved(self, of: Type, *, final: bool = False) -> Type:
        """A type with everything in it that is known of its parameters; in the end, unknown ones are `dyn`."""
        known = self._known.get(of)
        if known is not None:
            return self.resolved(known, final=final)
        if of.is_parameter:
            return DYN if final else of
        return Type(of.name, tuple([self.resolved(param, final=final) for param in of.params]))

    def _fit(self, one: Type, other: Type) -> bool:
        if other.is_parameter:
            fits, known = self._may_be(other, one)
            if fits or known:
                return fits
        if one.is_parameter:
            return self._may_be(one, other)[0]
        if one.is_anything or other.is_anything or ERROR in (one, other):
            return True
        if NULL in (one, other):
            return one == other or (other if one == NULL else one).name not in _PLAIN
        if one.name == other.name == "type":
            return True
        if one.name != other.name or len(one.params) != len(other.params):
            return False
        return all(self._fit(mine, theirs) for mine, theirs in zip(one.params, other.params, strict=True))

    def _may_be(self, parameter: Type, found: Type) -> tuple[bool, bool]:
        """Whether a parameter may stand for a type, and whether it stood for something before."""
        if parameter == found:
            return True, True
        known = self._known.get(parameter)
        if known is not None:
            if known == found:
                return True, True
            if not self._fit(found, known):
                return False, True
            wider = found if _is_wider(found, known) else known
            if not self._occurs(parameter, wider):
                self._known[parameter] = wider
            return True, True
        if self._occurs(parameter, found):
            return False, False
        self._known[parameter] = found
        return True, False

    def _occurs(self, parameter: Type, within: Type) -> bool:
        if parameter == within:
            return True
        if within.is_parameter:
            known = self._known.get(within)
            return known is not None and self._occurs(parameter, known)
        return any(self._occurs(parameter, param) for param in within.params)


def wider(one: Type, other: Type) -> Type:
    """The more general of two types that fit each other."""
    return one if _is_wider(one, other) else other


def _is_wider(one: Type, other: Type) -> bool:
    """Whether a type is the other, or says less."""
    if one.is_anything or one.is_parameter:
        return True
    if other.is_anything or other.is_parameter or one.name != other.name or len(one.params) != len(other.params):
        return False
    return one.name == "type" or all(map(_is_wider, one.params, other.params))

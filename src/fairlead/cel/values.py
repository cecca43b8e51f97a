"""Values that Python has no type for, and the names of all types.

int, float, bool, str, bytes, None, list and dict are CEL's own types; quantities are the model's. A `Uint` is an int
that only mixes with its like. Errors are exceptions that carry cel-go's text, because users and recordings know it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import total_ordering
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any
from urllib.parse import SplitResult

from fairlead.core.model.quantity import Quantity


class CelError(Exception):
    """An expression came to no value, in the words of cel-go."""


def succeeds(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    """The function that says whether a text can be parsed."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return check


NO_OVERLOAD = "no such overload"
STEPS = "@steps"
"""Under this name the variables of an evaluation hold its Steps."""


class Uint(int):
    """An unsigned number."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional value."""

    there: bool
    value: Any = None


NOTHING = Maybe(False)


@dataclass(frozen=True, slots=True)
class TypeName:
    """The value of `type(x)`."""

    name: str


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int


class DefaultMap(dict[str, Any]):
    """A map in which every key can be looked up: what is not there reads as an empty map."""


class ObjectValue(dict[str, Any]):
    """An object of a schema: its fields by the names that expressions use. `raw` is the object as it was written, in
    which `known` are the names that the schema has; `faults` are complaints about fields that came to no value."""

    __slots__ = ("faults", "known", "raw")

    def __init__(self, fields: dict[str, Any], raw: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.raw, self.known = raw, known
        self.faults: dict[str, str] = {}


class SetList(list[Any]):
    """A list of which the order does not count (`x-kubernetes-list-type: set`)."""


class KeyedList(list[Any]):
    """A list whose elements are distinguished by the fields `keys` (`x-kubernetes-list-type: map`)."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: Any) -> str:
        return repr([item.get(key) for key in self.keys]) if isinstance(item, Mapping) else ""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A range of addresses, as `cidr` makes it."""

    address: IPv4Address | IPv6Address
    range: IPv4Network | IPv6Network


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version 2. Build metadata does not count in comparisons."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()

    def _key(self) -> tuple[Any, ...]:
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())


_PRE_PART = re.compile(r"[0-9A-Za-z-]+")


def parse_version(text: str) -> Version:
    """A strict semantic version; the complaints are those of the library that Kubernetes uses."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, _, build = parts[2].partition("+")
    patch_text, dash, pre_text = rest.partition("-")
    patch = _number(patch_text, "patch")
    if "+" in parts[2]:
        for part in build.split("."):
            if not part:
                raise CelError("Build meta data is empty")
            if not _PRE_PART.fullmatch(part):
                raise CelError(f'Invalid character(s) found in build meta data "{part}"')
    pre = tuple(pre_text.split(".")) if dash else ()
    for part in pre:
        if not part:
            raise CelError("Prerelease is empty")
        if part.isdigit() and len(part) > 1 and part[0] == "0":
            raise CelError(f'Numeric PreRelease version must not contain leading zeroes "{part}"')
        if not _PRE_PART.fullmatch(part):
            raise CelError(f'Invalid character(s) found in prerelease "{part}"')
    return Version(major, minor, patch, pre)


def _number(text: str, which: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise CelError(f'Invalid character(s) found in {which} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise CelError(f'{which.capitalize()} number must not contain leading zeroes "{text}"')
    return int(text)


def normalised_version(text: str) -> str:
    """A loose spelling made strict: `v2.0` is 2.0.0."""
    text = text.strip().removeprefix("v")
    parts = text.split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            trimmed = part.lstrip("0")
            parts[at] = trimmed if trimmed and trimmed[0].isdigit() else "0" + trimmed
    if len(parts) < 3 and not any(mark in parts[-1] for mark in "+-"):
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"), (Uint, "uint"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"),
    (list, "list"), (Mapping, "map"), (Maybe, "optional_type"), (Quantity, "kubernetes.Quantity"),
    (Version, "kubernetes.Semver"), (IPv4Address, "net.IP"), (IPv6Address, "net.IP"), (AddressRange, "net.CIDR"),
    (SplitResult, "kubernetes.URL"), (Duration, "google.protobuf.Duration"), (datetime, "google.protobuf.Timestamp"),
    (TypeName, "type"),
)  # fmt: skip
_KNOWN: dict[type, str] = {}


def type_name(value: Any) -> str:
    """The name of a value's type, as error texts and `type` have it."""
    if value is None:
        return "null_type"
    found = _KNOWN.get(type(value))
    if found is None:
        found = next((name for kind, name in _NAMES if isinstance(value, kind)), "kubernetes.NamedFormat")
        _KNOWN[type(value)] = found
    return found


NUMBERS = frozenset({"int", "uint", "double"})

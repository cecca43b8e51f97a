"""What a call costs: by the function and the overload that are called, and the sizes of what they are called with.

The rules are the API server's, which has them for the functions that it adds, then cel-go's for the standard ones;
a function that nobody has a rule for costs one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.cel.sizes import (
    MOST,
    NEW_LIST,
    NOTHING,
    ONE,
    PER_CHARACTER,
    PER_CHARACTER_OF_REGEX,
    UNKNOWN,
    CostRange,
)
from fairlead.cel.sizes import exactly as exact

if TYPE_CHECKING:
    from fairlead.cel.types import Type

_LONGEST_NAME_REGEX, _LONGEST_FORMAT = 128, 64
_ADDRESS = CostRange(4, 16)
"""Bytes of an address."""


class Items(NamedTuple):
    """One of the elements of an operand: its type, and its size if known."""

    type: Type
    size: CostRange | None

    @property
    def size_or_any(self) -> CostRange:
        return UNKNOWN if self.size is None else self.size


class Operand(NamedTuple):
    """What a call is made with: its type, its size if known, one of its elements if it has some, and its value if it
    is a literal."""

    type: Type
    size: CostRange | None
    items: Items | None
    literal: Any = None

    @property
    def size_or_any(self) -> CostRange:
        return UNKNOWN if self.size is None else self.size


class CallCost(NamedTuple):
    """The cost of a call with that of its arguments, and the size of its result if it is known."""

    cost: CostRange
    size: CostRange | None = None


Rule = Callable[[Operand | None, Sequence[Operand]], CallCost | None]


def call_cost(
    function: str, overload: str, target: Operand | None, args: Sequence[Operand], costs: Sequence[CostRange]
) -> CallCost:
    """The cost of one overload. (That of a condition depends on more than its arguments' sizes: see cost.py.)"""
    if overload in ("logical_and", "logical_or"):
        return CallCost(CostRange(costs[0].least, costs[0].plus(costs[1]).most))
    paid = NOTHING
    for cost in costs:
        paid = paid.plus(cost)
    found: CallCost | None = None
    for rules, name in ((_BY_OVERLOAD, overload), (_BY_FUNCTION, function), (_STANDARD, overload)):
        rule = rules.get(name)
        found = rule(target, args) if rule is not None else None
        if found is not None:
            break
    if found is None:
        found = CallCost(ONE)
    return CallCost(found.cost.plus(paid), found.size)


def _read(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    """The argument is read once."""
    return CallCost(args[0].size_or_any.scaled(PER_CHARACTER)) if args else None


def _read_twice(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return CallCost(args[0].size_or_any.scaled(2 * PER_CHARACTER)) if args else None


def _address(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return CallCost(ONE) if target is not None else _read(target, args)


def _url(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    size = args[0].size_or_any
    return CallCost(size.scaled(PER_CHARACTER), size)


def _same_length(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    size = UNKNOWN if target is None else target.size_or_any
    return None if target is None else CallCost(size.scaled(PER_CHARACTER), size)


def _through_list(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    """Each element is looked at, and each character of elements that are texts; or each character of a text."""
    if target is None:
        return None
    item = target.items
    if item is None:
        return CallCost(target.size_or_any.scaled(PER_CHARACTER))
    each = ONE
    if item.type.name in ("string", "bytes"):
        each = each.plus(item.size_or_any.scaled(PER_CHARACTER))
    return CallCost(target.size_or_any.times(each))


def _replace(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = target.size_or_any, args[0].size_or_any, args[1].size_or_any
    if not old.least:
        most = min(MOST, min(MOST, min(MOST, size.most + 1) * new.most) + size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = min(MOST, -(-size.most // old.least) * new.most)
    if not old.most:
        least = min(MOST, (size.least + 1) * new.least + size.least)
    elif old.most <= new.least:
        least = size.least
    else:
        least = min(MOST, -(-size.least // old.most) * new.least)
    return CallCost(size.scaled(2 * PER_CHARACTER), CostRange(least, most))


def _split(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    size = target.size_or_any
    limit = args[1].literal if len(args) > 1 and type(args[1].literal) is int else size.most
    return CallCost(size.scaled(2 * PER_CHARACTER), CostRange(0, limit % 2**64))


def _join(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None:
        return None
    count, item = target.size_or_any, target.items
    size = NOTHING if item is None else count.times(item.size_or_any)
    if args:
        between = CostRange(max(0, count.least - 1), max(0, count.most - 1))
        size = size.plus(args[0].size_or_any.times(between))
    return CallCost(size.scaled(PER_CHARACTER), size)


def _searched(text: CostRange, regex: CostRange) -> CostRange:
    return text.plus(ONE).scaled(PER_CHARACTER).times(regex.scaled(PER_CHARACTER_OF_REGEX))


def _find(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or not args:
        return None
    size = target.size_or_any
    return CallCost(_searched(size, args[0].size_or_any), CostRange(0, size.most))


def _matches(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or len(args) != 1:
        return None
    return CallCost(_searched(target.size_or_any, args[0].size_or_any))


def _contains(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or len(args) != 1:
        return None
    part = args[0].size_or_any.scaled(PER_CHARACTER)
    return CallCost(target.size_or_any.scaled(PER_CHARACTER).times(part))


def _in_network(more: CostRange, *, text: bool) -> Rule:
    compared = _ADDRESS.plus(_ADDRESS).scaled(PER_CHARACTER).plus(more)

    def rule(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
        return CallCost(compared.plus(args[0].size_or_any.scaled(PER_CHARACTER)) if text else compared)

    return rule


def _validate(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if not args:
        return None
    read = args[0].size_or_any.scaled(PER_CHARACTER)
    return CallCost(read.scaled(_LONGEST_NAME_REGEX * PER_CHARACTER_OF_REGEX))


def _equal_objects(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    """Comparing objects of the API server's own types."""
    if len(args) != 2 or args[0].type != args[1].type:
        return None
    match args[0].type.name:
        case "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver":
            return CallCost(ONE)
        case "kubernetes.NamedFormat":
            return CallCost(CostRange(1, _LONGEST_FORMAT).scaled(PER_CHARACTER))
        case "kubernetes.URL":
            most = args[1].size.most if args[1].size is not None else 1
            return CallCost(CostRange(1, most).scaled(PER_CHARACTER))
    return None


def _compared(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    most = min(args[0].size_or_any.most, args[1].size_or_any.most)
    return CallCost(CostRange(min(1, most), most).scaled(PER_CHARACTER))


def _added(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    size = args[0].size_or_any.plus(args[1].size_or_any)
    return CallCost(size.scaled(PER_CHARACTER), size)


def _joined_lists(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return CallCost(ONE, args[0].size_or_any.plus(args[1].size_or_any))


def _in_list(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return CallCost(args[1].size_or_any.scaled(1))


def _formatted(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return None if target is None else CallCost(target.size_or_any.scaled(PER_CHARACTER))


def _to_bytes(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    size = args[0].size_or_any
    return CallCost(size.scaled(PER_CHARACTER), CostRange(size.least, size.most * 4 % 2**64))


def _to_text(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    size = args[0].size_or_any
    return CallCost(size.scaled(PER_CHARACTER), CostRange(size.least // 4, size.most))


def _quoted(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    size = args[0].size_or_any
    return CallCost(size.scaled(PER_CHARACTER), CostRange((size.least + 2) % 2**64, (size.most * 2 + 2) % 2**64))


def _sets(factor: float) -> Rule:
    def rule(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
        return CallCost(args[0].size_or_any.times(args[1].size_or_any).scaled(factor).plus(ONE))

    return rule


def _new_list(size: CostRange, factor: float = 1.0) -> CallCost:
    return CallCost(size.scaled(factor).plus(ONE).plus(exact(NEW_LIST)), size)


def _number(operand: Operand, otherwise: int) -> int:
    return max(0, operand.literal) if type(operand.literal) is int else otherwise


def _slice(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    if target is None or len(args) != 2:
        return None
    end = _number(args[1], target.size_or_any.most)
    return _new_list(exact((end - _number(args[0], 0)) % 2**64))


def _range(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return _new_list(exact(_number(args[0], MOST) % 2**64))


def _reverse(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return None if target is None else _new_list(target.size_or_any)


def _flatten(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    depth = _number(args[0], MOST) if args else 1
    return None if target is None else _new_list(target.size_or_any, float(depth))


def _squared(factor: float, *, by_keys: bool = False) -> Rule:
    def rule(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
        compared = args[0] if by_keys and args else target
        if compared is None:
            return None
        size = compared.size_or_any
        return _new_list(size.times(size), factor)

    return rule


def _nominal(target: Operand | None, args: Sequence[Operand]) -> CallCost | None:
    return CallCost(ONE)


_SORTED_KINDS = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip
_BY_OVERLOAD: Mapping[str, Rule] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _squared(2.0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{f"list_{kind}_sort": _squared(2.0 + PER_CHARACTER * (kind in ("string", "bytes"))) for kind in _SORTED_KINDS},
    **{
        f"list_{kind}_sortByAssociatedKeys": _squared(2.0 + PER_CHARACTER * (kind in ("string", "bytes")), by_keys=True)
        for kind in _SORTED_KINDS
    },
    "cidr_contains_ip_string": _in_network(NOTHING, text=True),
    "cidr_contains_ip_ip": _in_network(NOTHING, text=False),
    "cidr_contains_cidr_string": _in_network(_ADDRESS.scaled(PER_CHARACTER).plus(ONE), text=True),
    "cidr_contains_cidr": _in_network(_ADDRESS.scaled(PER_CHARACTER).plus(ONE), text=False),
}
_BY_FUNCTION: Mapping[str, Rule] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _through_list),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_length),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _read),
    "url": _url, "ip": _address, "ip.isCanonical": _read_twice, "replace": _replace, "split": _split, "join": _join,
    "find": _find, "findAll": _find, "validate": _validate, "format.named": _nominal, "_==_": _equal_objects,
}  # fmt: skip
_COMPARING = ("less", "greater", "less_equals", "greater_equals")
_STANDARD: Mapping[str, Rule] = {
    "string_format": _formatted,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quoted,
    "starts_with_string": _read,
    "ends_with_string": _read,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _added,
    "add_bytes": _added,
    "add_list": _joined_lists,
    **{f"{name}_{kind}": _compared for name in _COMPARING for kind in ("string", "bytes")},
    "equals": _compared,
    "not_equals": _compared,
}

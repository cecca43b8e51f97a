"""Literals that are looked at once the types of an expression fit: arguments that can only fail, and mixed entries.

The API server refuses durations, moments and regular expressions that are written out wrongly, and lists and maps whose
entries differ in type, attributes of devices among them: those are of the type `any`. The arguments of `format` may be
mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.cel import types as t
from fairlead.cel.checking import TypeFault
from fairlead.cel.functions import GLOBAL, bound
from fairlead.cel.loops import Loop, Present
from fairlead.cel.syntax import Call, Expression, IndexExpression, ListOf, Literal, MapOf, Select
from fairlead.cel.text_functions import clauses_of, compiled_pattern, misfit
from fairlead.cel.values import NO_OVERLOAD, CelError

if TYPE_CHECKING:
    from fairlead.cel.checking import Checked
    from fairlead.cel.types import Type


def literal_faults(checked: Checked) -> list[TypeFault]:
    """What is wrong with the literals of a tree whose types fit."""
    found: list[TypeFault] = []
    for node, mixed in _nodes(checked.tree, mixed=False):
        if isinstance(node, Call) and node.function in _ARGUMENTS and node.args:
            first = node.args[0]
            if isinstance(first, Literal) and _failure(_ARGUMENTS[node.function], first.value):
                found.append(TypeFault(f"invalid {node.function} argument", first.at))
        elif isinstance(node, Call) and node.function == "format":
            found += _format_faults(checked, node)
        elif isinstance(node, ListOf) and not mixed:
            found += _mixed_list(checked, node)
        elif isinstance(node, MapOf) and not mixed:
            found += _mixed_map(checked, node)
    return found


def program_fault(checked: Checked) -> str:
    """Why the original cannot build its program of a tree whose types and literals fit: it converts literals and
    compiles regular expressions beforehand, and one of them fails. Empty if it can."""
    for node, _ in _nodes(checked.tree, mixed=False):
        if not isinstance(node, Call) or not node.args or not isinstance(first := node.args[0], Literal):
            continue
        act = _CONVERSIONS.get(node.function) if node.target is None else _SEARCHES.get(node.function)
        if act is not None and (failure := _failure(act, first.value)):
            return f"program instantiation failed: {failure}"
    return ""


def _format_faults(checked: Checked, node: Call) -> list[TypeFault]:
    """What does not fit of arguments that are written out to a format that is."""
    if not isinstance(node.target, Literal) or not isinstance(node.target.value, str) or len(node.args) != 1:
        return []
    listed = node.args[0]
    if not isinstance(listed, ListOf):
        return []
    try:
        verbs = [verb for verb, _ in clauses_of(node.target.value) if verb != "%"]
    except CelError as error:
        return [TypeFault(str(error), node.at)]
    for verb, item in zip(verbs, listed.items, strict=False):
        kind = checked.type_of(item)
        name = "null_type" if kind == t.NULL else kind.full_name.partition("(")[0]
        if verb in "fe" and kind == t.STRING:  # which may stand for what is no number
            continue
        if not kind.is_anything and (wrong := misfit(verb, name)):
            return [TypeFault(wrong, item.at)]
    if len(verbs) > len(listed.items):
        return [TypeFault(f"index {len(listed.items)} out of range", node.at)]
    if len(verbs) < len(listed.items):
        said = f"too many arguments supplied to string.format (expected {len(verbs)}, got {len(listed.items)})"
        return [TypeFault(said, node.at)]
    return []


def _mixed_list(checked: Checked, node: ListOf) -> Iterator[TypeFault]:
    wanted: Type | None = None
    for at, item in enumerate(node.items):
        kind = _content(checked.type_of(item), optional=at in node.optional)
        if wanted is None:
            wanted = kind
        elif kind != wanted:
            yield _mismatch(wanted, kind, item)
            return


def _mixed_map(checked: Checked, node: MapOf) -> Iterator[TypeFault]:
    wanted: tuple[Type, Type] | None = None
    for key, value, optional in node.entries:
        kinds = checked.type_of(key), _content(checked.type_of(value), optional=optional)
        if wanted is None:
            wanted = kinds
            continue
        for entry, kind, first in zip((key, value), kinds, wanted, strict=True):
            if kind != first:
                yield _mismatch(first, kind, entry)


def _content(kind: Type, *, optional: bool) -> Type:
    return kind.params[0] if optional and kind.params else kind


def _mismatch(wanted: Type, found: Type, node: Expression) -> TypeFault:
    return TypeFault(f"expected type '{wanted}' but found '{found}'", node.at)


def _nodes(node: Expression, *, mixed: bool) -> Iterator[tuple[Expression, bool]]:
    """All nodes, each with whether it is an argument of `format`, at whatever depth."""
    yield node, mixed
    for part in _parts(node):
        yield from _nodes(part, mixed=mixed or (isinstance(node, Call) and node.function == "format"))


def _parts(node: Expression) -> tuple[Expression, ...]:
    match node:
        case Select() | Present():
            return (node.operand,)
        case IndexExpression():
            return node.operand, node.key
        case ListOf():
            return node.items
        case MapOf():
            return tuple(part for key, value, _ in node.entries for part in (key, value))
        case Loop():
            return node.range, node.start, node.condition, node.step, node.result
        case Call():
            return node.args if node.target is None else (node.target, *node.args)
    return ()


def _failure(act: Callable[[Any], Any], value: Any) -> str:
    """What a function complains of; empty if it does not."""
    try:
        act(value)
    except CelError as error:
        return str(error)
    return ""


def _duration(value: Any) -> Any:
    if not isinstance(value, str):  # the original looks at the call alone, in which a number fits no overload
        raise CelError(NO_OVERLOAD)
    return _converted("duration")(value)


def _converted(name: str) -> Callable[[Any], Any]:
    act = bound(name, GLOBAL[name], 1)
    assert act is not None
    return act


_ARGUMENTS: Mapping[str, Callable[[Any], Any]] = {
    "duration": _duration, "timestamp": _converted("timestamp"), "matches": compiled_pattern,
}  # fmt: skip
_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    name: _converted(name) for name in ("bool", "bytes", "double", "int", "string", "uint")
}
_SEARCHES: Mapping[str, Callable[[Any], Any]] = {"find": compiled_pattern, "findAll": compiled_pattern}

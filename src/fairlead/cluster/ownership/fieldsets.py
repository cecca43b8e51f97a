"""Sets of fields: which parts of an object somebody owns, and how two states of an object differ.

A field is a path of steps, written as `managedFields` writes them:

    f:NAME     a member of an object          k:{"name":"web"}   the item of a keyed list
    v:"text"   a value of a set               .                  (in the nested form) the thing itself

Inside the program a set is a set of tuples; nested dicts are only its form on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from fairlead.cluster.ownership.shape import Division

if TYPE_CHECKING:
    from fairlead.cluster.ownership.shape import TypeShape
    from fairlead.core.model.flow import Doc

Path = tuple[str, ...]
Fields = frozenset[Path]
NONE: Fields = frozenset()
_ITSELF = "."
SERVERS_OWN = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    )
) | {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
"""What nobody owns."""


class FieldsDifference(NamedTuple):
    added: Fields
    modified: Fields
    removed: Fields


def item_step(item: Any, shape: TypeShape) -> str:
    """How an item of a keyed list is named."""
    found = {key: item.get(key, shape.defaults.get(key)) for key in sorted(shape.keys)}
    named = {key: value for key, value in found.items() if value is not None}
    return "k:" + orjson.dumps(named).decode()


def value_step(value: Any) -> str:
    return "v:" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def children(value: Any, shape: TypeShape) -> dict[str, tuple[Any, TypeShape]] | None:
    """The parts of a value by their steps; None if it is one piece."""
    match shape.divides(value):
        case Division.MEMBERS:
            return {f"f:{name}": (member, shape.member(name)) for name, member in value.items()}
        case Division.ITEMS:
            return {item_step(item, shape): (item, shape.item()) for item in value}
        case Division.VALUES:
            return {value_step(one): (one, shape.item()) for one in value}
    return None


def fields_of(value: Any, shape: TypeShape) -> Fields:
    """The fields that a configuration states: its leaves, and the items of its lists."""
    return frozenset(_stated(value, shape, ())) - SERVERS_OWN


def _stated(value: Any, shape: TypeShape, path: Path) -> Iterator[Path]:
    parts = children(value, shape)
    if not parts:
        if parts is None or not isinstance(value, list):  # an empty list of items states none of them
            yield path
        return
    if path and not path[-1].startswith("f:"):
        yield path
    for step, (part, inner) in parts.items():
        yield from _stated(part, inner, (*path, step))


def everything_in(value: Any, shape: TypeShape, path: Path) -> Iterator[Path]:
    """A part that came or went: itself and all that is in it."""
    yield path
    for step, (part, inner) in (children(value, shape) or {}).items():
        yield from everything_in(part, inner, (*path, step))


def compare(old: Doc, new: Doc, shape: TypeShape) -> FieldsDifference:
    added: set[Path] = set()
    modified: set[Path] = set()
    removed: set[Path] = set()
    _compare(old, new, shape, (), FieldsDifference(added, modified, removed))  # type: ignore[arg-type]
    return FieldsDifference(frozenset(added), frozenset(modified), frozenset(removed))


def _compare(old: Any, new: Any, shape: TypeShape, path: Path, found: Any) -> None:
    if old is new or old == new:
        return
    olds, news = children(old, shape), children(new, shape)
    if olds is None or news is None or type(old) is not type(new):
        if old is None and news is not None:
            # A list or object that was announced as null was there already.
            for step, (part, inner) in news.items():
                found.added.update(everything_in(part, inner, (*path, step)))
            return
        found.modified.add(path)
        return
    for step, (part, inner) in news.items():
        if step in olds:
            _compare(olds[step][0], part, inner, (*path, step), found)
        else:
            found.added.update(everything_in(part, inner, (*path, step)))
    for step, (part, inner) in olds.items():
        if step not in news:
            found.removed.update(everything_in(part, inner, (*path, step)))


def to_wire(fields: Iterable[Path]) -> Doc:
    """The nested form. A field with others inside it has `.` for itself; a field alone is an empty object."""
    tree: Doc = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node[_ITSELF] = {}
    return _without_lone_dots(tree)


def _without_lone_dots(node: Doc) -> Doc:
    if node.keys() == {_ITSELF}:
        return {}
    return {step: _without_lone_dots(inner) for step, inner in node.items()}


def from_wire(tree: Any) -> Fields:
    """The set of a nested form. Raises ValueError for what is none."""
    return frozenset(_read(tree, ()))


def _read(node: Any, path: Path) -> Iterator[Path]:
    if not isinstance(node, dict) or len(path) > 100:
        raise ValueError("fieldsV1 is not a set of fields")
    if not node and path:
        yield path
    for step, inner in node.items():
        if step == _ITSELF:
            yield path
        elif step[:2] in ("f:", "k:", "v:", "i:"):
            yield from _read(inner, (*path, step))
        else:
            raise ValueError(f"fieldsV1 has no steps like {step}")


def spoken(path: Path) -> str:
    """A path as messages write it: `.spec.containers[name="web"].image`."""
    return "".join(_spoken_step(step) for step in path)


def _spoken_step(step: str) -> str:
    sort, text = step[:2], step[2:]
    if sort == "f:":
        return f".{text}"
    if sort == "v:":
        return f"[={text}]"
    keys = orjson.loads(text)
    return "[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items()) + "]"

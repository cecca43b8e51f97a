"""Strategic merge: a merge patch that knows which lists are sets and which are maps in disguise.

Lists with a merge key are matched element by element, lists of plain values marked `merge` are united, all others are
replaced. Directives in the patch say the rest:

    $patch: replace | delete | merge       in an object, or in an element of a list
    $retainKeys: [..]                      only these members of the object stay
    $deleteFromPrimitiveList/F: [..]       take these out of the list F
    $setElementOrder/F: [..]               the order of F afterwards; what the patch does not know keeps its place

Invariant: nothing that comes from a patch keeps a directive or a null.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.typetable import FieldKind, TypeField, TypeStruct
from fairlead.errors import BadRequest

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


class PatchFailed(BadRequest):
    """The original answers these with a 500 without a reason, though the mistake is the client's."""


def merge_strategically(struct: TypeStruct | None, doc: Doc, patch: Doc) -> Doc:
    """The document with the patch merged in; both stay as they are."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: _clean(value) for key, value in patch.items() if value is not None and not key.startswith("$")}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchFailed(f"unknown patch type: {directive} in map: {go_text(patch)}")
    merged = _retained(doc, patch)
    for key, value in patch.items():
        if key.startswith("$"):
            _apply_list_directive(struct, merged, patch, key)
        elif value is None:
            merged.pop(key, None)
        elif key in merged:
            merged[key] = _merge_value(_field(struct, key), merged[key], value, patch.get(_ORDER + key))
        else:
            if isinstance(value, list) and (field := _field(struct, key)):
                _check_order(value, patch.get(_ORDER + key), field.merge_key)
            merged[key] = _fresh(value)
    return merged


def _retained(doc: Doc, patch: Doc) -> Doc:
    keep = patch.get(_RETAIN)
    if keep is None:
        return dict(doc)
    if not isinstance(keep, list) or any(key not in keep for key in patch if not key.startswith("$")):
        raise BadRequest("patch list value does not contain all the keys of $retainKeys")
    return {key: value for key, value in doc.items() if key in keep}


def _apply_list_directive(struct: TypeStruct | None, merged: Doc, patch: Doc, key: str) -> None:
    """The directives beside a list that the patch itself does not mention."""
    if key.startswith(_DELETE):
        name = key.removeprefix(_DELETE)
        if not isinstance(patch[key], list | None) or not isinstance(merged.get(name), list | None):
            raise PatchFailed(f"invalid {key}: {go_text(patch)}")
        unwanted = _Places(patch[key] or [])
        kept = [value for value in merged.get(name) or [] if value not in unwanted]
        merged[name] = _ordered(kept, kept, patch.get(_ORDER + name), "")
    elif key.startswith(_ORDER):
        name = key.removeprefix(_ORDER)
        if name not in patch and _DELETE + name not in patch and isinstance(merged.get(name), list):
            field = _field(struct, name)
            merged[name] = _ordered(merged[name], merged[name], patch[key], field.merge_key if field else "")


def _field(struct: TypeStruct | None, key: str) -> TypeField | None:
    return struct.fields.get(key) if struct is not None else None


def _merge_value(field: TypeField | None, old: Any, new: Any, order: Any) -> Any:
    strategies = field.strategies if field is not None else ()
    if isinstance(old, dict) and isinstance(new, dict) and "replace" not in strategies:
        return merge_strategically(_struct_inside(field), old, new)
    if isinstance(new, list) and field is not None and "merge" in strategies:
        return _merge_list(field, old if isinstance(old, list) else [], new, order)
    return _clean(new)


def _struct_inside(field: TypeField | None) -> TypeStruct | None:
    if field is None:
        return None
    if field.struct is None and field.kind is FieldKind.MAP and field.item is not None:
        # Members of a map all have the item's type; a struct that answers every name with it says the same.
        return TypeStruct("", fields=_Every(field.item))
    return field.struct


class _Every(dict[str, TypeField]):
    """A mapping that knows one field by any name."""

    def __init__(self, item: TypeField) -> None:
        super().__init__()
        self._item = item

    def get(self, key: str, default: Any = None) -> Any:
        return self._item


def _merge_list(field: TypeField, old: list[Any], new: list[Any], order: Any) -> list[Any]:
    if not field.merge_key:
        _check_order(new, order, "")
        united = _united(old, new)
        return _ordered(united, old, new if order is None else order, "")
    _same_types(old, new)
    _check_order(new, order, field.merge_key)
    for element in new:
        _check_directive(element)
    if any(element.get(_PATCH) == "replace" for element in new):
        return [_clean(element) for element in new if element.get(_PATCH) != "replace"]
    merged = _without_deleted(field.merge_key, old, new)
    for element in new:
        if element.get(_PATCH) != "delete":
            _merge_element(field, merged, element)
    return _ordered(merged, old, new if order is None else order, field.merge_key)


def _united(old: list[Any], new: list[Any]) -> list[Any]:
    """The old values and those of the new ones that are not among them, each once."""
    if all(isinstance(value, str) for value in (*old, *new)):
        known = set(old)
        return [*old, *(value for value in dict.fromkeys(new) if value not in known)]
    return [*old, *(value for index, value in enumerate(new) if value not in old and value not in new[:index])]


def _check_directive(element: Doc) -> None:
    match element.get(_PATCH):
        case None | "delete" | "replace":
            return
        case "merge":
            raise PatchFailed("merging lists cannot yet be specified in the patch")
        case other:
            raise PatchFailed(f"unknown patch type: {other} in map: {go_text(element)}")


def _check_order(new: list[Any], order: Any, key: str) -> None:
    """What the patch brings must stand in the order that the patch requests."""
    if not isinstance(order, list):
        return
    brought = [one for one in new if not (isinstance(one, dict) and one.get(_PATCH) == "delete")]
    at = 0
    for wanted in order:
        while at < len(brought) and isinstance(brought[at], dict) and _PATCH in brought[at]:
            at += 1
        if at < len(brought) and _identity(brought[at], key) == _identity(wanted, key):
            at += 1
    if at < len(brought):
        raise PatchFailed(
            f"The order in patch list:\n{go_text(new)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )


def _identity(element: Any, key: str) -> Any:
    return element.get(key) if key and isinstance(element, dict) else element


def _same_types(old: list[Any], new: list[Any]) -> None:
    if any(not isinstance(element, dict) for element in (*old, *new)):
        raise PatchFailed(f"list element types are not identical: {go_text([old, new])}")


def _without_deleted(key: str, old: list[Any], new: list[Any]) -> list[Any]:
    unwanted = [_key_of(element, key) for element in new if element.get(_PATCH) == "delete"]
    return [element for element in old if element.get(key) not in unwanted]


def _key_of(element: Doc, key: str) -> Any:
    if key not in element:
        raise PatchFailed(f"map: {go_text(element)} does not contain declared merge key: {key}")
    return element[key]


def _merge_element(field: TypeField, merged: list[Any], element: Doc) -> None:
    wanted = _key_of(element, field.merge_key)
    for index, present in enumerate(merged):
        if present.get(field.merge_key) == wanted:
            merged[index] = merge_strategically(field.item.struct if field.item else None, present, element)
            return
    merged.append(_clean(element))


def _ordered(merged: list[Any], old: list[Any], order: Any, key: str) -> list[Any]:
    """Elements that the order names take that order; the others stay before what they stood before."""
    if not isinstance(order, list):
        return merged

    def identity(element: Any) -> Any:
        return _identity(element, key)

    wanted = _Places(identity(element) for element in order)
    before = _Places(identity(element) for element in old)
    named = sorted((e for e in merged if identity(e) in wanted), key=lambda e: wanted.index(identity(e)))
    others = [element for element in merged if identity(element) not in wanted]
    return _interleave(others, named, before, identity)


class _Places:
    """The first place of each value of a list, found at once for values that can be hashed."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)
        self._hashed: dict[Any, int] | None = None
        if all(isinstance(value, str) for value in self._values):
            self._hashed = {value: at for at, value in reversed(list(enumerate(self._values)))}

    def __contains__(self, value: Any) -> bool:
        if self._hashed is not None:
            return isinstance(value, str) and value in self._hashed
        return value in self._values

    def index(self, value: Any) -> int:
        return self._values.index(value) if self._hashed is None else self._hashed[value]


def _interleave(others: list[Any], named: list[Any], before: _Places, identity: Any) -> list[Any]:
    out: list[Any] = []
    left, right = deque(others), deque(named)
    while left and right:
        one, two = identity(left[0]), identity(right[0])
        first = one in before and two in before and before.index(one) < before.index(two)
        out.append(left.popleft() if first else right.popleft())
    return [*out, *left, *right]


def _fresh(value: Any) -> Any:
    """The patch's value for a member that was not there: nothing to delete from, so what deletes just goes."""
    if isinstance(value, dict):
        if value.get(_PATCH) == "delete":
            return {}
        return {key: _fresh(item) for key, item in value.items() if item is not None and not key.startswith("$")}
    if isinstance(value, list):
        return [_fresh(item) for item in value if not (isinstance(item, dict) and item.get(_PATCH) == "delete")]
    return value


def _clean(value: Any) -> Any:
    """A value taken from the patch as it is, without its directives and nulls."""
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items() if item is not None and not key.startswith("$")}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def go_text(value: Any) -> str:
    """A value as Go prints it: maps with sorted keys."""
    match value:
        case dict():
            return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(go_text, value)) + "]"
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
    return str(value)

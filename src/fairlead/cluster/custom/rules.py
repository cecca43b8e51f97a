"""The rules of a schema: types, required fields, enums, ranges, lengths, patterns, formats, lists that are sets.

Worded as the API server words them. What the server checks afterwards with expressions is in expressions.py; as there,
a document that is badly broken is not shown to expressions at all, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.cel.patterns import BadPattern, pattern
from fairlead.cluster.custom.expressions import check_expressions, has_rules
from fairlead.cluster.custom.formats import FORMATS
from fairlead.cluster.custom.structural import OF_EVERY_OBJECT

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Schema = Mapping[str, Any]
_BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_JSON_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)


def check_defined(problems: ValidationProblems, kind: Kind, doc: Doc, old: Doc | None = None) -> None:
    """Everything that the definition of a kind asks of its objects; `old` is the state that this one replaces."""
    assert kind.definition is not None
    schema = kind.definition.schema
    first = len(problems.found)
    _check_members(problems, "", schema, doc, skip=OF_EVERY_OBJECT)
    _check_lists(problems, "", schema, doc)
    if kind.definition.scale is not None:
        _check_scale(problems, kind.definition.scale, doc)
    if not has_rules(kind.definition):
        return
    if any(reason in _BLOCKING for reason, _, _ in problems.found[first:]):
        problems.add("FieldValueInvalid", "<nil>", f"Invalid value: null: {_UNCHECKED}")
    else:
        check_expressions(problems, kind.definition, doc, old)


# -- values -----------------------------------------------------------------------------------------------------------


def check_value(problems: ValidationProblems, path: str, schema: Schema, value: Any) -> None:
    if value is None:
        if not schema.get("nullable"):
            _wrong_type(problems, path, schema, "null")
        return
    right = _has_type(schema, value)
    if not right:
        _wrong_type(problems, path, schema, _JSON_NAMES[type(value)])
    if "enum" in schema and value not in schema["enum"]:
        problems.unsupported(path, value, schema["enum"])
    _check_combinations(problems, path, schema, value)
    if not right:
        return
    match value:
        case dict():
            _check_members(problems, path, schema, value)
        case list():
            _check_items(problems, path, schema, value)
        case str():
            _check_string(problems, path, schema, value)
        case bool():
            pass
        case int() | float():
            _check_number(problems, path, schema, value)


def _has_type(schema: Schema, value: Any) -> bool:
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, str) or (type(value) is int)
    match schema.get("type"):
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return type(value) is int or (isinstance(value, float) and value.is_integer())
        case "number":
            return type(value) in (int, float)
    return True


def _wrong_type(problems: ValidationProblems, path: str, schema: Schema, found: str) -> None:
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    text = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
    problems.add("FieldValueTypeInvalid", path, text)


def _check_members(
    problems: ValidationProblems, path: str, schema: Schema, value: Doc, skip: tuple[str, ...] = ()
) -> None:
    dot = f"{path}." if path else ""
    for name in schema.get("required") or ():
        if name not in value:
            problems.required(f"{dot}{name}")
    _check_count(problems, path, schema, len(value), "Properties", "properties")
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        inner = properties.get(key, others)
        if isinstance(inner, dict) and key not in skip:
            check_value(problems, f"{dot}{key}", inner, item)


def _check_items(problems: ValidationProblems, path: str, schema: Schema, value: list[Any]) -> None:
    _check_count(problems, path, schema, len(value), "Items", "items")
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            check_value(problems, f"{path}[{index}]", items, item)


def _check_count(problems: ValidationProblems, path: str, schema: Schema, count: int, what: str, word: str) -> None:
    fewest, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if fewest is not None and count < fewest:
        problems.invalid(path, count, f"{path} in body should have at least {fewest} {word}")
    if most is not None and count > most:
        problems.add("FieldValueTooMany", path, f"Too many: {count}: must have at most {most} items")


def _check_string(problems: ValidationProblems, path: str, schema: Schema, value: str) -> None:
    if len(value) < (schema.get("minLength") or 0):
        problems.invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    if schema.get("maxLength") is not None and len(value) > schema["maxLength"]:
        problems.too_long(path, schema["maxLength"])
    if schema.get("pattern") and not pattern_matches(schema["pattern"], value):
        problems.invalid(path, value, f"{path} in body should match '{schema['pattern']}'")
    known = FORMATS.get(schema.get("format", ""))
    if known is not None and not known(value):
        shown = orjson.dumps(value).decode()
        text = f"Invalid value: {shown}: {path} in body must be of type {schema['format']}: {shown}"
        problems.add("FieldValueTypeInvalid", path, text)


def pattern_matches(text: str, value: str) -> bool:
    """Whether it matches somewhere; a text that is no pattern, which an older definition may hold, matches all."""
    try:
        return pattern(text).matches(value)
    except BadPattern:
        return True


def _check_number(problems: ValidationProblems, path: str, schema: Schema, value: float) -> None:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        problems.invalid(path, value, f"{path} in body should be {word} {low}")
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        problems.invalid(path, value, f"{path} in body should be {word} {high}")
    if step and value % step:
        problems.invalid(path, value, f"{path} in body should be a multiple of {step}")


# -- combinations -----------------------------------------------------------------------------------------------------


def _check_combinations(problems: ValidationProblems, path: str, schema: Schema, value: Any) -> None:
    for part in schema.get("allOf") or ():
        check_value(problems, path, part, value)
    if (parts := schema.get("anyOf")) and not any(_holds(part, value) for part in parts):
        problems.invalid(path, value, f'"{path}" must validate at least one schema (anyOf)')
    if parts := schema.get("oneOf"):
        count = sum(_holds(part, value) for part in parts)
        if count != 1:
            found = "Found none valid" if not count else f"Found {count} valid alternatives"
            problems.invalid(path, value, f'"{path}" must validate one and only one schema (oneOf). {found}')
    if (part := schema.get("not")) and _holds(part, value):
        problems.invalid(path, value, f'"{path}" must not validate the schema (not)')


def _holds(schema: Schema, value: Any) -> bool:
    from fairlead.cluster.admission.problems import ValidationProblems

    found = ValidationProblems()
    check_value(found, "", schema, value)
    return not found.found


# -- lists that are sets or maps --------------------------------------------------------------------------------------


def _check_lists(problems: ValidationProblems, path: str, schema: Schema, value: Any) -> None:
    """No two equal values in a set, no two items with equal keys in a map."""
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            inner = properties.get(key, others)
            if isinstance(inner, dict) and isinstance(item, dict | list):
                _check_lists(problems, f"{path}.{key}" if path else key, inner, item)
    elif isinstance(value, list):
        _check_list(problems, path, schema, value)
        items = schema.get("items")
        for index, item in enumerate(value):
            if isinstance(items, dict) and isinstance(item, dict | list):
                _check_lists(problems, f"{path}[{index}]", items, item)


def _check_list(problems: ValidationProblems, path: str, schema: Schema, value: list[Any]) -> None:
    how, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if how not in ("set", "map"):
        return
    seen: set[bytes] = set()
    for index, item in enumerate(value):
        here = f"{path}[{index}]"
        if how == "map" and not isinstance(item, dict):
            problems.invalid(here, item, "must be an object for an array of list-type map")
            continue
        named = item if how == "set" else {key: item[key] for key in sorted(keys) if key in item}
        mark = orjson.dumps(named, option=orjson.OPT_SORT_KEYS)
        if mark in seen:
            problems.duplicate_as_is(here, named, "")
        seen.add(mark)


# -- scale ------------------------------------------------------------------------------------------------------------


def _check_scale(problems: ValidationProblems, scale: Mapping[str, str], doc: Doc) -> None:
    for which in ("specReplicasPath", "statusReplicasPath"):
        path = scale.get(which) or ""
        found: Any = doc
        for name in path.split(".")[1:]:
            if not isinstance(found, dict):
                return
            found = found.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and found < 0:
            problems.invalid(path, found, "should be a non-negative integer")

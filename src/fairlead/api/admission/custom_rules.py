"""The rules that a custom resource's own schema states: required fields, enums, ranges, lengths and patterns.

Worded as the API server words them for CustomResourceDefinitions. Of CEL rules (`x-kubernetes-validations`) only the
one of HyperNodes is known. Of borrowed pod templates only the required fields are looked at, as the definitions
themselves do.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.api.admission.problems import ValidationProblems
from fairlead.api.store.schema import schema_data
from fairlead.model.kinds import VC_HYPER_NODE

if TYPE_CHECKING:
    from fairlead.model.flow import Doc
    from fairlead.model.kinds import Kind

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def check_custom(problems: ValidationProblems, kind: Kind, doc: Doc) -> None:
    """Problems in the order of their paths."""
    data = schema_data()
    name = data["kinds"].get(f"{kind.api_version}/{kind.kind}")
    if name is None:
        return
    found = ValidationProblems()
    _check_object(found, "", data["types"][name], doc)
    if kind is VC_HYPER_NODE:
        _check_selectors(found, doc)
    problems.found += sorted(found.found, key=lambda problem: problem[1])


def _check_selectors(problems: ValidationProblems, hyper_node: Doc) -> None:
    """The one CEL rule among Volcano's definitions: a member is chosen in one way."""
    for index, member in enumerate((hyper_node.get("spec") or {}).get("members") or ()):
        ways = [way for way in ("exactMatch", "regexMatch", "labelMatch") if way in (member.get("selector") or {})]
        if len(ways) > 1:
            text = "Invalid value: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
            problems.add("FieldValueInvalid", f"spec.members[{index}].selector", text)


def _resolved(schema: Doc) -> tuple[Doc, bool]:
    """The schema itself or the one it refers to, and whether it was borrowed."""
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    if reference is None:
        return schema, False
    name = reference.rpartition("/")[2]
    return ({} if name == _OBJECT_META else schema_data()["types"][name]), True


def _check_value(problems: ValidationProblems, path: str, schema: Doc, value: Any, *, within: bool = False) -> None:
    """`within` a borrowed type only required fields are looked at."""
    schema, borrowed = _resolved(schema)
    borrowed = borrowed or within
    match value:
        case dict():
            _check_object(problems, path, schema, value, within=borrowed)
        case list():
            if len(value) < schema.get("minItems", 0):
                text = f"{path} in body should have at least {schema['minItems']} items"
                problems.invalid(path, len(value), text)
            for index, item in enumerate(value):
                _check_value(problems, f"{path}[{index}]", schema.get("items", {}), item, within=borrowed)
        case str() if not borrowed:
            _check_string(problems, path, schema, value)
        case bool():
            pass
        case int() | float():
            _check_number(problems, path, schema, value)


def _check_object(
    problems: ValidationProblems, path: str, schema: Doc, value: Doc, *, within: bool = False
) -> None:  # fmt: skip
    dot = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            problems.required(f"{dot}{name}")
    if len(value) < schema.get("minProperties", 0):
        problems.invalid(path, len(value), f"{path} in body should have at least {schema['minProperties']} properties")
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key, item in value.items():
        inner = properties.get(key, others)
        if isinstance(inner, dict):
            _check_value(problems, f"{dot}{key}", inner, item, within=within)


def _check_string(problems: ValidationProblems, path: str, schema: Doc, value: str) -> None:
    if "enum" in schema and value not in schema["enum"]:
        problems.unsupported(path, value, schema["enum"])
    if len(value) > schema.get("maxLength", len(value)):
        problems.too_long(path, schema["maxLength"])
    elif len(value) < schema.get("minLength", 0):
        problems.invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    elif "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        problems.invalid(path, value, f"{path} in body should match '{schema['pattern']}'")


@lru_cache(maxsize=256)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _check_number(problems: ValidationProblems, path: str, schema: Doc, value: float) -> None:
    if value < schema.get("minimum", value):
        problems.invalid(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
    if value > schema.get("maximum", value):
        problems.invalid(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")

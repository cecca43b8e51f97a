"""The rules that a custom resource's own schema states: required fields, enums, ranges, lengths and patterns.

Worded as the API server words them for CustomResourceDefinitions. CEL rules (`x-kubernetes-validations`) are not read;
the hooks of a kind state them (`KindHooks.check`). Of borrowed pod templates only the required fields are looked at,
as the definitions themselves do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.cel.patterns import pattern
from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.store.schema import schema_data

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

FurtherRules = Callable[[ValidationProblems, "Doc", "Doc | None"], None]
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def check_custom(
    problems: ValidationProblems, kind: Kind, doc: Doc, old: Doc | None = None, further: FurtherRules | None = None
) -> None:
    """Problems in the order of their paths, those that `further` rules find among them. Of an update, parts that are as
    they were in `old` are not looked at: an object that breaks a rule can still be changed elsewhere."""
    rules = _rules_of(kind)
    if rules is None:
        return
    found = ValidationProblems()
    rules.check_object(found, "", doc, old)
    if further is not None:
        further(found, doc, old)
    if found:
        problems.found += sorted(found.found, key=lambda problem: problem[1])


@cache
def _rules_of(kind: Kind) -> _Rules | None:
    data = schema_data()
    name = data["kinds"].get(f"{kind.api_version}/{kind.kind}")
    return None if name is None else _rules(data["types"][name])


def _resolved(schema: Doc) -> tuple[Doc, bool]:
    """The schema itself or the one it refers to, and whether it was borrowed."""
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    if reference is None:
        return schema, False
    name = reference.rpartition("/")[2]
    return ({} if name == _OBJECT_META else schema_data()["types"][name]), True


_DEMANDS = frozenset({
    "required", "minProperties", "minItems", "enum", "maxLength", "minLength", "pattern", "minimum", "maximum",
})  # fmt: skip
_TEXT_DEMANDS = frozenset({"enum", "maxLength", "minLength", "pattern"})


class _Rules:
    """What a schema demands of a value and of all that is inside it. References are followed once, and parts of the
    schema that demand nothing are None: most of an object is never looked at."""

    __slots__ = ("fewest_fields", "fewest_items", "fields", "items", "others", "required", "schema", "within")

    def __init__(self, schema: Doc, *, within: bool) -> None:
        """`within` a borrowed type texts are not looked at."""
        self.schema, self.within = schema, within
        self.required: tuple[str, ...] = tuple(schema.get("required", ()))
        self.fewest_fields: int = schema.get("minProperties", 0)
        self.fewest_items: int = schema.get("minItems", 0)
        self.fields: dict[str, _Rules | None] = {}
        self.others: _Rules | None = None
        self.items: _Rules | None = None

    def check(self, problems: ValidationProblems, path: str, value: Any) -> None:
        if isinstance(value, dict):
            self.check_object(problems, path, value)
        elif isinstance(value, list):
            self._check_list(problems, path, value)
        elif isinstance(value, str):
            if not self.within:
                _check_string(problems, path, self.schema, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _check_number(problems, path, self.schema, value)

    def check_object(self, problems: ValidationProblems, path: str, value: Doc, old: Doc | None = None) -> None:
        """Fields that `old` has with the same value are not looked at."""
        dot = f"{path}." if path else ""
        for name in self.required:
            if name not in value:
                problems.required(f"{dot}{name}")
        if len(value) < self.fewest_fields:
            text = f"{path} in body should have at least {self.fewest_fields} properties"
            problems.invalid(path, len(value), text)
        for key, item in value.items():
            inner = self.fields.get(key, self.others)
            if inner is not None and (old is None or old.get(key) != item):
                inner.check(problems, f"{dot}{key}", item)

    def _check_list(self, problems: ValidationProblems, path: str, value: list[Any]) -> None:
        if len(value) < self.fewest_items:
            text = f"{path} in body should have at least {self.fewest_items} items"
            problems.invalid(path, len(value), text)
        if self.items is not None:
            for index, item in enumerate(value):
                self.items.check(problems, f"{path}[{index}]", item)


_known: dict[tuple[int, bool], _Rules | None] = {}
"""By schema, of which there is one each for as long as the process lives, and whether it is within a borrowed one."""


def _rules(schema: Doc, *, within: bool = False) -> _Rules | None:
    """The rules of a schema, None if it has none. One that contains itself counts as having some."""
    schema, borrowed = _resolved(schema)
    within = within or borrowed
    key = id(schema), within
    if not schema or key in _known:
        return _known.get(key)
    rules = _known[key] = _Rules(schema, within=within)
    rules.fields = {name: _rules(inner, within=within) for name, inner in schema.get("properties", {}).items()}
    others = schema.get("additionalProperties")
    rules.others = _rules(others, within=within) if isinstance(others, dict) else None
    rules.items = _rules(schema.get("items", {}), within=within)
    own = (_DEMANDS - _TEXT_DEMANDS if within else _DEMANDS) & schema.keys()
    if not own and rules.others is None and rules.items is None and not any(rules.fields.values()):
        _known[key] = None
    return _known[key]


def _check_string(problems: ValidationProblems, path: str, schema: Doc, value: str) -> None:
    if "enum" in schema and value not in schema["enum"]:
        problems.unsupported(path, value, schema["enum"])
    if (longest := schema.get("maxLength")) is not None and len(value) > longest:
        problems.too_long(path, longest)
    elif len(value) < schema.get("minLength", 0):
        problems.invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    elif "pattern" in schema and not _matches(schema["pattern"], value):
        problems.invalid(path, value, f"{path} in body should match '{schema['pattern']}'")


@lru_cache(maxsize=4096)  # quantities and names of queues are the same in many objects
def _matches(text: str, value: str) -> bool:
    return pattern(text).matches(value)


def _check_number(problems: ValidationProblems, path: str, schema: Doc, value: float) -> None:
    if value < schema.get("minimum", value):
        problems.invalid(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
    if value > schema.get("maximum", value):
        problems.invalid(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")

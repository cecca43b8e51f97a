"""Rules written as expressions (x-kubernetes-validations), in Google's Common Expression Language.

`self` is the value where the rule stands, `oldSelf` what was there before; a rule that speaks of `oldSelf` is asked
only when there was something. Values are handed over as plain data, typed where the schema's format asks for it. The
language itself comes from a library, loaded with the first rule.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.cluster.custom.celfunctions import declarations

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

Schema = Mapping[str, Any]
_RULES = "x-kubernetes-validations"
_REASONS = {
    "FieldValueForbidden": "Forbidden", "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value", "FieldValueInvalid": "Invalid value",
}  # fmt: skip
_KEYWORDS = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_MISSING_KEY = re.compile(r'NOT_FOUND: Key not found in map : "(.*)"')
_DURATION = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_ABSENT = object()


class BadExpression(ValueError):
    """An expression that is none, in the words of the compiler."""


class _Program:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        environment = _environment()
        try:
            self._program = environment.compile(text)
        except RuntimeError as error:
            words = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
            raise BadExpression(f"compilation failed: {words}") from None

    @property
    def result(self) -> str:
        return str(self._program.return_type().name()).lower()

    def __call__(self, variables: Doc) -> tuple[Any, str]:
        """The value, or what went wrong."""
        found = self._program.eval(data=variables)
        value = found.value()
        if found.type().name() != "ERROR":
            return value, ""
        missing = _MISSING_KEY.match(str(value))
        return None, f"no such key: {missing[1]}" if missing else str(value).partition(": ")[2]


@lru_cache(maxsize=1)
def _environment() -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext.ext_math import ExtMath
    from cel_expr_python.ext.ext_optional import ExtOptional
    from cel_expr_python.ext.ext_strings import ExtStrings

    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN},
        extensions=[ExtStrings(), ExtOptional(), ExtMath()],
        functions=declarations(cel),
    )


@lru_cache(maxsize=4096)
def compiled(text: str) -> _Program:
    """The program of an expression. Raises BadExpression."""
    return _Program(text)


def has_rules(schema: Any) -> bool:
    """Whether there is a rule anywhere in the schema."""
    if isinstance(schema, dict):
        return bool(schema.get(_RULES)) or any(map(has_rules, schema.values()))
    return isinstance(schema, list) and any(map(has_rules, schema))


def rules_of(schema: Any, path: str) -> Iterator[tuple[str, Doc]]:
    """Every rule of a schema with its path in the definition."""
    if not isinstance(schema, dict):
        return
    for index, rule in enumerate(schema.get(_RULES) or ()):
        yield f"{path}.{_RULES}[{index}]", rule
    for name, inner in (schema.get("properties") or {}).items():
        yield from rules_of(inner, f"{path}.properties[{name}]")
    yield from rules_of(schema.get("items"), f"{path}.items")
    yield from rules_of(schema.get("additionalProperties"), f"{path}.additionalProperties")


# -- checking ---------------------------------------------------------------------------------------------------------


def check_expressions(problems: ValidationProblems, schema: Schema, doc: Doc, old: Doc | None) -> None:
    _check(problems, "", schema, doc, _ABSENT if old is None else old)


def _check(problems: ValidationProblems, path: str, schema: Schema, value: Any, old: Any) -> None:
    for rule in schema.get(_RULES) or ():
        _ask(problems, path, schema, rule, value, old)
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            inner = properties.get(key, others)
            if isinstance(inner, dict):
                before = old.get(key, _ABSENT) if isinstance(old, dict) else _ABSENT
                _check(problems, f"{path}.{key}" if path else key, inner, item, before)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        earlier = _by_keys(schema, old)
        for index, item in enumerate(value):
            before = earlier.get(_key_of(schema, item), _ABSENT) if earlier else _ABSENT
            _check(problems, f"{path}[{index}]", schema["items"], item, before)


def _key_of(schema: Schema, item: Any) -> str:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return repr([item.get(key) for key in keys]) if isinstance(item, dict) else ""


def _by_keys(schema: Schema, old: Any) -> dict[str, Any]:
    """The earlier items of a list whose items can be told apart; of all others nobody can say what they were."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return {}
    return {_key_of(schema, item): item for item in old}


def _ask(problems: ValidationProblems, path: str, schema: Schema, rule: Doc, value: Any, old: Any) -> None:
    text = rule.get("rule") or ""
    variables = {"self": _typed(schema, value)}
    if speaks_of_old(text):
        if rule.get("optionalOldSelf"):
            return  # optional values cannot be handed over; such rules are not asked
        if old is _ABSENT:
            return
        variables["oldSelf"] = _typed(schema, old)
    reason = rule.get("reason") or "FieldValueInvalid"
    where = path + (rule.get("fieldPath") or "") if path else (rule.get("fieldPath") or "").removeprefix(".")
    try:
        answer, trouble = compiled(text)(variables)
    except BadExpression as error:
        answer, trouble = False, str(error)
    if trouble:
        problems.add("FieldValueInvalid", where, f"Invalid value: {trouble} evaluating rule: {text}")
    elif answer is not True:
        problems.add(reason, where or "<nil>", f"{_REASONS.get(reason, 'Invalid value')}: {_words(rule, variables)}")


def speaks_of_old(text: str) -> bool:
    return re.search(r"\boldSelf\b", text) is not None


def _words(rule: Doc, variables: Doc) -> str:
    expression = rule.get("messageExpression")
    if expression:
        try:
            said, trouble = compiled(expression)(variables)
        except BadExpression:
            said, trouble = "", "unreadable"
        if not trouble and isinstance(said, str) and said.strip() and "\n" not in said:
            return said.strip()
    return rule.get("message") or f"failed rule: {rule.get('rule')}"


# -- values -----------------------------------------------------------------------------------------------------------


def escaped(name: str) -> str:
    """A field's name as expressions write it."""
    if name in _KEYWORDS:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    return name.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")


def _typed(schema: Schema, value: Any) -> Any:
    """A value with the types that its schema's formats mean."""
    match value:
        case dict():
            properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
            return {
                (escaped(key) if key in properties else key): _typed(properties.get(key) or _or_empty(others), item)
                for key, item in value.items()
            }
        case list():
            inner = _or_empty(schema.get("items"))
            return [_typed(inner, item) for item in value]
        case str():
            return _typed_text(schema.get("format"), value)
        case int() if schema.get("type") == "number" and not isinstance(value, bool):
            return float(value)
    return value


def _or_empty(schema: Any) -> Schema:
    return schema if isinstance(schema, dict) else {}


def _typed_text(wire_format: Any, value: str) -> Any:
    try:
        match wire_format:
            case "date-time" | "datetime":
                return datetime.fromisoformat(value)
            case "date":
                return datetime.fromisoformat(value + "T00:00:00+00:00")
            case "duration":
                return timedelta(seconds=sum(float(n) * _SECONDS[unit] for n, unit in _DURATION.findall(value)))
            case "byte":
                return base64.b64decode(value)
    except ValueError:
        pass
    return value

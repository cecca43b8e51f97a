"""The rules of a definition when it is created: whether they compile, and whether they may cost too much.

An expression may cost so much, times the number of places where its schema may stand in one object; and all expressions
of a definition together may. Limits of sizes in the schema (maxItems, maxProperties, maxLength) bound both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.cel.sizes import MOST
from fairlead.cel.types import BOOL, STRING
from fairlead.cluster.custom.declared import LARGEST_REQUEST, Declared, declared
from fairlead.cluster.custom.expressions import RULES, BadExpression, Compiled, compiled
from fairlead.cluster.custom.field_paths import field_path

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc

Schema = Mapping[str, Any]
_PER_EXPRESSION, _PER_DEFINITION = 10_000_000, 100_000_000
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_HINT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)
_LINE_BREAK = re.compile(r"[\n\r]")


def check_rules(problems: ValidationProblems, path: str, schema: Schema) -> None:
    """Complain of the rules of the schema of a version."""
    checks = _RuleChecks(type(problems)(), type(problems)())
    checks.check(path, schema, 1, "", root=True)
    problems.found += checks.form.found + checks.meaning.found
    checks.complain_of_total(problems, path)


class _RuleChecks:
    """`form` are complaints about how rules are written down, `meaning` those about their expressions. Expressions
    above a part with the former are not looked at."""

    def __init__(self, form: ValidationProblems, meaning: ValidationProblems) -> None:
        self.form, self.meaning = form, meaning
        self._total = 0
        self._dearest: list[tuple[int, str]] = []

    def check(self, path: str, schema: Any, times: int | None, uncorrelated: str, *, root: bool = False) -> None:
        """`times` is how often the schema may stand in an object, None if that is not bounded; `uncorrelated` the path
        of the list around it whose elements have no earlier value."""
        if not isinstance(schema, Mapping):
            return
        before = len(self.form.found)
        inner = _often(times, schema)
        self.check(f"{path}.additionalProperties", schema.get("additionalProperties"), inner, uncorrelated)
        for name, part in (schema.get("properties") or {}).items():
            self.check(f"{path}.properties[{name}]", part, inner, uncorrelated)
        outside = uncorrelated if schema.get("x-kubernetes-list-type") == "map" else uncorrelated or path
        self.check(f"{path}.items", schema.get("items"), inner, outside)
        rules = schema.get(RULES) or ()
        for index, rule in enumerate(rules):
            self._check_form(f"{path}.{RULES}[{index}]", schema, rule)
        if not rules or len(self.form.found) > before:
            return
        known = declared(schema, root=root or bool(schema.get("x-kubernetes-embedded-resource")))
        if known is None:
            said = "unable to convert structural schema to CEL declarations"
            self.meaning.internal(
                f"{path}.{RULES}",
                f"internal error: failed to construct type information for x-kubernetes-validations rules: {said}",
            )
            return
        for index, rule in enumerate(rules):
            self._check_meaning(f"{path}.{RULES}[{index}]", rule, known, times, uncorrelated)

    def _check_form(self, path: str, schema: Schema, rule: Doc) -> None:
        text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
        if not text:
            self.form.required(f"{path}.rule", "rule is not specified")
        elif message and not message.strip():
            self.form.invalid(f"{path}.message", message, "must be non-empty if specified")
        elif _LINE_BREAK.search(message.strip()):
            self.form.invalid(f"{path}.message", message, "must not contain line breaks")
        elif _LINE_BREAK.search(text) and not message.strip():
            self.form.required(f"{path}.message", "message must be specified if rule contains line breaks")
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            self.form.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None:
            self.form.not_one_of(f"{path}.reason", rule["reason"], _REASONS)
        where = rule.get("fieldPath") or ""
        if where and not where.strip():
            self.form.invalid(f"{path}.fieldPath", where, "must be non-empty if specified")
        if _LINE_BREAK.search(where):
            self.form.invalid(f"{path}.fieldPath", where, "must not contain line breaks")
        if where and field_path(schema, where) is None:
            self.form.invalid(f"{path}.fieldPath", where, "must be a valid path")

    def _check_meaning(self, path: str, rule: Doc, known: Declared, times: int | None, uncorrelated: str) -> None:
        optional = rule.get("optionalOldSelf")
        made: Compiled | None = None
        fault = ""
        try:
            made = compiled(rule["rule"], known, optional_old=bool(optional))
            if made.result != BOOL:
                made, fault = None, "cel expression must evaluate to a bool"
        except BadExpression as error:
            fault = str(error)
        cost = 0
        if made is not None:
            often = LARGEST_REQUEST // (known.least + 1) if times is None else times
            cost = min(MOST, made.cost * often)
        self._observe(f"{path}.rule", cost, "estimated rule cost")
        if made is None:
            self._bad(f"{path}.rule", rule, fault)
        elif rule.get("messageExpression"):
            self._check_message(f"{path}.messageExpression", rule, known)
        if made is not None and made.reads_old:
            if uncorrelated:
                said = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                self.meaning.invalid(f"{path}.rule", rule["rule"], said)
        elif optional is not None:
            said = "may not be set if oldSelf is not used in rule"
            self.meaning.invalid(f"{path}.optionalOldSelf", optional, said)

    def _check_message(self, path: str, rule: Doc, known: Declared) -> None:
        try:
            made = compiled(rule["messageExpression"], known, optional_old=bool(rule.get("optionalOldSelf")))
        except BadExpression as error:
            said = str(error).replace("compilation failed", "messageExpression compilation failed", 1)
            self._bad(path, rule, said.replace("program instantiation", "messageExpression instantiation", 1))
            return
        if made.result != STRING:
            self._bad(path, rule, "messageExpression must evaluate to a string")
        else:
            self._observe(path, made.cost, "estimated messageExpression cost")

    def _bad(self, path: str, rule: Doc, detail: str) -> None:
        self.meaning.add("FieldValueInvalid", path, f"Invalid value: {_as_go(rule)}: {detail}")

    def _observe(self, path: str, cost: int, what: str) -> None:
        if cost > _PER_EXPRESSION:
            self.meaning.forbidden(path, _exceeds(what, cost, _PER_EXPRESSION))
        self._total = min(MOST, self._total + cost)
        if cost >= _PER_DEFINITION // 100:
            self._dearest = sorted([*self._dearest, (cost, path)], key=lambda one: -one[0])[:4]

    def complain_of_total(self, problems: ValidationProblems, path: str) -> None:
        if self._total <= _PER_DEFINITION:
            return
        for _, where in self._dearest:
            said = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            problems.forbidden(where, said)
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        problems.forbidden(path, _exceeds(what, self._total, _PER_DEFINITION))


def _often(times: int | None, schema: Schema) -> int | None:
    """How often what is inside a schema may stand in an object, if the schema may so often."""
    limit: Any = 1
    if schema.get("type") == "array":
        limit = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties"):
        limit = schema.get("maxProperties")
    return None if times is None or limit is None else min(MOST, times * max(0, limit))


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} {_HINT}"


def _as_go(rule: Doc) -> str:
    """A rule as the API server shows it: all its fields by their names in Go."""
    fields = {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    text = orjson.dumps(fields).decode()
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text

"""Rules written as expressions (x-kubernetes-validations), in the Common Expression Language (fairlead.cel).

`self` is the value where the rule stands, `oldSelf` what was there before; a rule that reads `oldSelf` is evaluated
only if there was something. Types come from the schema, so that a misspelt field is found when the definition is
created (rule_checks.py). The rules of a definition are compiled once, with its first object; one validation may take as
many steps as the API server allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from fairlead.cel.checking import Checked
from fairlead.cel.cost import CostEstimate
from fairlead.cel.environment import Environment
from fairlead.cel.literals import literal_faults, program_fault
from fairlead.cel.loops import written_out
from fairlead.cel.program import CompileFault, Program, located
from fairlead.cel.steps import PER_CALL, ROOM, CostExceeded, Steps
from fairlead.cel.syntax import SyntaxFault, parse
from fairlead.cel.types import Type, optional_of
from fairlead.cel.values import CelError, Maybe
from fairlead.cluster.custom.declared import Declared, declared, escaped
from fairlead.cluster.custom.field_paths import field_path
from fairlead.cluster.custom.typed import Reader, reader

if TYPE_CHECKING:
    from fairlead.cluster.admission.problems import ValidationProblems
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Definition

Schema = Mapping[str, Any]
RULES = "x-kubernetes-validations"
PER_VALIDATION = 10_000_000
"""Steps that the API server allows for all rules of one object."""
_LONGEST_MESSAGE = 5 * 1024
_REASONS = {
    "FieldValueForbidden": "Forbidden", "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value", "FieldValueInvalid": "Invalid value",
}  # fmt: skip
_VARIABLES = frozenset({"self", "oldSelf"})
_ABSENT = object()


class BadExpression(ValueError):
    """A text cannot be compiled as an expression; the message is the API server's."""


class Compiled(NamedTuple):
    """An expression of a known schema."""

    program: Program
    result: Type
    reads_old: bool
    cost: int
    """The most that it may cost, by estimate."""


def compiled(text: str, known: Declared, *, optional_old: bool = False) -> Compiled:
    """The compiled form of an expression where a schema stands. Raises BadExpression."""
    old = optional_of(known.type) if optional_old else known.type
    environment = Environment({"self": known.type, "oldSelf": old}, known.size_of, known.field_types())
    try:
        checked = Checked(written_out(parse(text)), environment)
        if faults := checked.faults or literal_faults(checked):
            raise BadExpression(f"compilation failed: {located(text, faults)}")
        if fault := program_fault(checked):
            raise BadExpression(fault)
        program = Program(text, _VARIABLES)
        cost = CostEstimate(checked).most
    except SyntaxFault as fault:
        raise BadExpression(f"compilation failed: {located(text, [(str(fault), fault.at)])}") from None
    except CompileFault as fault:
        raise BadExpression(str(fault)) from None
    except RecursionError:
        raise BadExpression("compilation failed: the expression is nested too deeply") from None
    return Compiled(program, checked.type_of(checked.tree), "oldSelf" in checked.mentioned, cost)


# -- rules of a schema ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rule:
    text: str
    message: str
    reason: str
    path: str
    optional_old: bool
    expression: Compiled | None = None
    fault: str = ""
    message_expression: Compiled | None = None
    message_text: str = ""

    @property
    def named(self) -> str:
        return self.message or self.text.strip()


@dataclass(slots=True)
class _Place:
    """A part of a schema with the rules that stand there, and the parts below it that have rules."""

    type: str
    read: Reader
    rules: list[_Rule]
    fields: dict[str, tuple[str | None, _Place]] = field(default_factory=dict)
    """By name: the name that expressions use, and the part."""
    values: _Place | None = None
    items: _Place | None = None
    keys: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def _places(definition: Definition) -> _Place | None:
    return _place(definition.schema, root=True)


def _place(schema: Any, *, root: bool = False) -> _Place | None:
    """None if there is no rule in it."""
    if not isinstance(schema, Mapping):
        return None
    root = root or bool(schema.get("x-kubernetes-embedded-resource"))
    fields = {
        name: (escaped(name), found)
        for name, inner in (schema.get("properties") or {}).items()
        if (found := _place(inner)) is not None
    }
    values, items = _place(schema.get("additionalProperties")), _place(schema.get("items"))
    rules = schema.get(RULES) or ()
    if not (fields or values or items or rules):
        return None
    known = declared(schema, root=root) if rules else None
    made = [] if known is None else [_rule(schema, rule, known) for rule in rules]
    keyed = schema.get("x-kubernetes-list-type") == "map"
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if keyed else ()
    return _Place(schema.get("type", ""), reader(schema, root=root), made, fields, values, items, keys)


def _rule(schema: Schema, rule: Doc, known: Declared) -> _Rule:
    made = _Rule(
        rule.get("rule") or "",
        (rule.get("message") or "").strip(),
        rule.get("reason") or "FieldValueInvalid",
        field_path(schema, rule.get("fieldPath") or "") or "",
        bool(rule.get("optionalOldSelf")),
    )
    try:
        made.expression = compiled(made.text, known, optional_old=made.optional_old)
        if rule.get("messageExpression"):
            made.message_text = rule["messageExpression"]
            made.message_expression = compiled(made.message_text, known, optional_old=made.optional_old)
    except BadExpression as error:
        if made.expression is None:
            made.fault = str(error)
    return made


# -- checking an object -----------------------------------------------------------------------------------------------


def has_rules(definition: Definition) -> bool:
    return _places(definition) is not None


def check_expressions(problems: ValidationProblems, definition: Definition, doc: Doc, old: Doc | None) -> None:
    """The rules of a definition about one of its objects; `old` is the state that this one replaces. A rule that an
    unchanged part broke before does not count, unless it reads `oldSelf`."""
    place = _places(definition)
    if place is not None:
        pair = None if old is None else (doc, old)
        with suppress(_NoMore):
            _Validation(problems).visit(place, "", doc, old, _ABSENT, pair)


class _NoMore(Exception):
    """No further rules are to be evaluated."""


_Pair = tuple[Any, Any] | None
"""The innermost part whose earlier value is known, now and before."""


class _Validation:
    def __init__(self, problems: ValidationProblems) -> None:
        self._problems = problems
        self._left = PER_VALIDATION
        self._room = PER_VALIDATION // PER_CALL * ROOM

    def visit(self, place: _Place, path: str, value: Any, old: Any, seen: Any, pair: _Pair) -> None:
        """`seen` is the value as expressions see it, if that is known already."""
        if value is None:
            return
        if place.rules:
            if self._left <= 0:
                self._exhausted(place, path)
            if seen is _ABSENT:
                try:
                    seen = place.read(value)
                except CelError as error:
                    for rule in place.rules:
                        self._invalid(place, path, f"{error} evaluating rule: {rule.named}")
                    return
            for rule in place.rules:
                self._evaluate(place, rule, path, value, old, seen, pair)
        if isinstance(value, dict):
            self._visit_fields(place, path, value, old, seen, pair)
        elif isinstance(value, list) and place.items is not None:
            earlier = _by_keys(place, old)
            for index, item in enumerate(value):
                before = earlier.get(_key_of(place, item)) if earlier else None
                inner = (item, before) if place.keys and pair is not None else pair
                known = seen[index] if isinstance(seen, list) else _ABSENT
                self.visit(place.items, f"{path}[{index}]", item, before, known, inner)

    def _visit_fields(self, place: _Place, path: str, value: Doc, old: Any, seen: Any, pair: _Pair) -> None:
        before = old if isinstance(old, dict) else {}
        dot = f"{path}." if path else ""
        if place.values is not None:
            for key, item in value.items():
                known = seen.get(key, _ABSENT) if isinstance(seen, dict) else _ABSENT
                inner = None if pair is None else (item, before.get(key))
                self.visit(place.values, f"{path}[{key}]", item, before.get(key), known, inner)
        for name, (escaped_name, part) in place.fields.items():
            if name in value:
                known = seen.get(escaped_name, _ABSENT) if isinstance(seen, dict) else _ABSENT
                inner = None if pair is None else (value[name], before.get(name))
                self.visit(part, f"{dot}{name}", value[name], before.get(name), known, inner)

    def _evaluate(self, place: _Place, rule: _Rule, path: str, value: Any, old: Any, seen: Any, pair: _Pair) -> None:
        expression = rule.expression
        if rule.fault:
            self._invalid(place, path, f"rule compile error: {rule.fault}")
        if expression is None or (expression.reads_old and old is None and not rule.optional_old):
            return
        variables = {"self": seen}
        if expression.reads_old:
            before = None if old is None else place.read(old)
            variables["oldSelf"] = Maybe(old is not None, before) if rule.optional_old else before
        steps = Steps()
        steps.room = min(ROOM, self._room)
        self._room -= steps.room
        try:
            answer = expression.program(variables, steps)
        except CostExceeded as error:
            self._take(steps, place, path)
            said = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._invalid(place, path, f"'{error}': {said}: {rule.named}")
            raise _NoMore from None
        except CelError as error:
            self._take(steps, place, path)
            self._failed(place, rule, path, str(error))
            return
        self._take(steps, place, path)
        if answer is True:
            return
        where = f"{path}.{rule.path}" if path and rule.path else path or rule.path or "<nil>"
        unchanged = not expression.reads_old and pair is not None and pair[0] == pair[1]
        detail = self._message(place, rule, where, variables, unchanged=unchanged)
        if not unchanged:
            self._problems.add(rule.reason, where, _worded(place, rule.reason, value, detail))

    def _failed(self, place: _Place, rule: _Rule, path: str, error: str) -> None:
        if error.startswith("no such overload"):
            said = "call arguments did not match a supported operator, function or macro signature for rule"
            self._invalid(place, path, f"'{error}': {said}: {rule.named}")
        else:
            self._invalid(place, path, f"{error} evaluating rule: {rule.named}")

    def _message(self, place: _Place, rule: _Rule, where: str, variables: Doc, *, unchanged: bool) -> str:
        """What is said of a rule that does not hold."""
        otherwise = rule.message or f"failed rule: {rule.named}"
        if rule.message_expression is None:
            return otherwise
        steps, trouble, said = Steps(), "", None
        try:
            said = rule.message_expression.program({"oldSelf": None, **variables}, steps)
        except CostExceeded:
            trouble = (
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
                + _shown(rule.message_text)
            )
        except CelError:
            pass
        used = PER_CALL - steps.left
        if used > self._left:
            trouble = (
                "messageExpression evaluation failed due to running out of cost budget, no further validation"
                " rules will be run"
            )
        if trouble:
            if not unchanged:
                self._invalid(place, where, trouble)
            raise _NoMore
        self._left -= used
        said = said.strip() if isinstance(said, str) else ""
        return said if said and "\n" not in said and len(said.encode()) <= _LONGEST_MESSAGE else otherwise

    def _take(self, steps: Steps, place: _Place, path: str) -> None:
        self._room += max(0, steps.room)
        used = PER_CALL - steps.left
        if used > self._left:
            self._exhausted(place, path)
        self._left -= used

    def _exhausted(self, place: _Place, path: str) -> None:
        said = "validation failed due to running out of cost budget, no further validation rules will be run"
        self._invalid(place, path, said)
        raise _NoMore

    def _invalid(self, place: _Place, path: str, detail: str) -> None:
        text = f"Invalid value: {_shown(place.type)}: {detail}"
        self._problems.add("FieldValueInvalid", path or "<nil>", text)


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _worded(place: _Place, reason: str, value: Any, detail: str) -> str:
    """A rule that does not hold, with the value if it is a small one."""
    word = _REASONS.get(reason, "Invalid value")
    small = "" if place.type in ("object", "array") else f": {_shown(value)}"
    if reason == "FieldValueDuplicate":
        return f"{word}{small}"
    return f"{word}{'' if word in ('Forbidden', 'Required value') else small}: {detail}"


def _key_of(place: _Place, item: Any) -> str:
    return repr([item.get(key) for key in place.keys]) if isinstance(item, dict) else ""


def _by_keys(place: _Place, old: Any) -> dict[str, Any]:
    """The earlier items of a list whose items can be distinguished; of all others nobody can say what they were."""
    if not place.keys or not isinstance(old, list):
        return {}
    return {_key_of(place, item): item for item in old}

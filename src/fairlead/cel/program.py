"""Program: an expression compiled to Python functions.

Each node of the tree becomes a function of the variables; calling the outermost evaluates the expression. `&&`, `||`
and `?:` evaluate only what they need, and `&&` and `||` forget an error if the other side decides, as CEL asks.

Steps are counted while an expression runs (steps.py). What is evaluated in any case is added up when it is compiled and
taken at once; branches and bodies of loops take theirs when they run.

What cannot be compiled (unknown names, unknown functions, wrong numbers of arguments, a result that can never be a
bool) is a CompileFault, with the place in cel-go's form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

from fairlead.cel.checking import qualified
from fairlead.cel.functions import GLOBAL, METHODS, NAMESPACES, bound
from fairlead.cel.macros import expand
from fairlead.cel.operators import BINARY, UNARY, look_up, maybe_look_up
from fairlead.cel.sizes import NEW_LIST, NEW_MAP
from fairlead.cel.steps import BY_RESULT, CALLS, COMPARED, Steps, size_of, whole_size
from fairlead.cel.syntax import (
    Call,
    Expression,
    Ident,
    IndexExpression,
    ListOf,
    Literal,
    MapOf,
    Select,
    SyntaxFault,
    parse,
)
from fairlead.cel.values import NO_OVERLOAD, STEPS, CelError, Maybe, TypeName, Uint

Variables = dict[str, Any]
Run = Callable[[Variables], Any]
_Cost = Callable[[Sequence[Any], Any], int]
_UNSIZED = frozenset({int, bool, float, Uint, type(None)})
_QUALIFIED_TYPES = frozenset({"net.IP", "net.CIDR", "google.protobuf.Duration", "google.protobuf.Timestamp"})
_ATTRIBUTES = (Ident, Select, IndexExpression)
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})
_COMPARING = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_TYPES = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"}
)


class CompileFault(Exception):
    """The text cannot be compiled; the message is what the API server answers."""


class Program:
    """A compiled expression."""

    def __init__(self, text: str, variables: frozenset[str]) -> None:
        try:
            self._run = Compiler(variables).part(parse(text))
        except SyntaxFault as fault:
            raise CompileFault(f"compilation failed: {located(text, [(str(fault), fault.at)])}") from None
        except RecursionError:
            raise CompileFault("compilation failed: the expression is nested too deeply") from None

    def __call__(self, variables: Variables, steps: Steps) -> Any:
        """The value; raises CelError and CostExceeded."""
        return self._run({**variables, STEPS: steps})


def located(text: str, faults: Sequence[tuple[str, int]]) -> str:
    """Faults with their places in cel-go's form, in the order of the text."""
    shown = []
    for message, at in sorted(faults, key=lambda fault: fault[1]):
        before = text[:at]
        line, column = before.count("\n"), at - (before.rfind("\n") + 1)
        source = text.split("\n")[line] if text else ""
        shown.append(f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {source}\n | {_under(source[:column])}^")
    return "\n".join(shown)


def _under(text: str) -> str:
    """As many dots as the text is wide."""
    return "".join("\uff0e" if east_asian_width(sign) in "WF" else "." for sign in text)


class Compiler:
    """Turns nodes into functions; knows which variables there are, and counts the steps of what it has compiled."""

    def __init__(self, variables: frozenset[str]) -> None:
        self._variables = variables
        self.steps = 0

    def part(self, node: Expression, *names: str, more: int = 0) -> Run:
        """The function of a node that may not be evaluated at all, or more than once, where more variables are bound;
        `more` are steps that come with it."""
        inside = Compiler(self._variables | frozenset(names))
        run, count = inside.run(node), inside.steps + more
        if not count:
            return run

        def counted(variables: Variables) -> Any:
            variables[STEPS].take(count)
            return run(variables)

        return counted

    def run(self, node: Expression) -> Run:
        known = _constant(node)
        if known is not None:
            value = known.value
            return lambda variables: value
        match node:
            case Ident(name=name):
                return self._ident(node, name)
            case Select():
                return self._select(node)
            case IndexExpression():
                return self._index(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Call():
                return self._call(node)
        raise AssertionError(node)

    def of_holder(self, node: Expression) -> Run:
        """The function of a node of which a part is read."""
        if not isinstance(node, _ATTRIBUTES):
            self.steps += 1
        return self.run(node)

    def _ident(self, node: Expression, name: str) -> Run:
        if name in self._variables:
            self.steps += 1
            return lambda variables: variables[name]
        if name in _TYPES:
            kind = TypeName(name)
            return lambda variables: kind
        raise SyntaxFault(f"undeclared reference to '{name}' (in container '')", node.at)

    def _select(self, node: Select) -> Run:
        whole = qualified(node)
        if whole in _QUALIFIED_TYPES and whole.partition(".")[0] not in self._variables:
            kind = TypeName(whole)
            return lambda variables: kind
        operand, field = self.of_holder(node.operand), node.field
        self.steps += 1
        if node.optional:
            return lambda variables: maybe_look_up(operand(variables), field)

        def run(variables: Variables) -> Any:
            holder = operand(variables)
            if isinstance(holder, Maybe):
                return maybe_look_up(holder, field)
            if not isinstance(holder, Mapping):
                raise CelError(NO_OVERLOAD)
            return look_up(holder, field)

        return run

    def _index(self, node: IndexExpression) -> Run:
        operand, key = self.of_holder(node.operand), self.run(node.key)
        self.steps += not isinstance(node.key, _ATTRIBUTES)
        if node.optional:
            return lambda variables: maybe_look_up(operand(variables), key(variables))

        def run(variables: Variables) -> Any:
            holder = operand(variables)
            if isinstance(holder, Maybe):
                return maybe_look_up(holder, key(variables))
            return look_up(holder, key(variables))

        return run

    def _list(self, node: ListOf) -> Run:
        self.steps += NEW_LIST
        items = [(self.run(item), at in node.optional) for at, item in enumerate(node.items)]
        if not node.optional:
            return lambda variables: [item(variables) for item, _ in items]

        def run(variables: Variables) -> list[Any]:
            found = []
            for item, optional in items:
                value = item(variables)
                if not optional:
                    found.append(value)
                elif value.there:
                    found.append(value.value)
            return found

        return run

    def _map(self, node: MapOf) -> Run:
        self.steps += NEW_MAP
        entries = [(self.run(key), self.run(value), optional) for key, value, optional in node.entries]

        def run(variables: Variables) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key, value, optional in entries:
                name, content = key(variables), value(variables)
                if name in found:
                    raise CelError(f"Failed with repeated key: {name}")
                if not optional:
                    found[name] = content
                elif content.there:
                    found[name] = content.value
            return found

        return run

    # ---- calls ----

    def _call(self, node: Call) -> Run:
        if node.target is None and node.function in _LOGIC:
            first, *others = node.args
            if node.function != "_?_:_":
                return _LOGIC[node.function](self.run(first), *map(self.part, others))
            parts = [self.part(one, more=-isinstance(one, _ATTRIBUTES)) for one in others]
            return _conditional(self.run(first), *parts)
        macro = expand(self, node)
        if macro is not None:
            return macro
        if node.target is None and node.function in BINARY:
            return self._operator(node.function, *node.args)
        if node.target is None and node.function in UNARY:
            act, operand = UNARY[node.function], self.run(node.args[0])
            self.steps += 1
            return lambda variables: act(operand(variables))
        if node.target is not None and node.function in ("or", "orValue"):
            return self._fallback(node, node.target)
        return self._library(node)

    def _operator(self, name: str, one: Expression, other: Expression) -> Run:
        act, left, right = BINARY[name], self.run(one), self.run(other)
        self.steps += 1
        cost = CALLS.get(name)
        if name == "@in" and isinstance(other, ListOf) and _constant(other) is not None:
            self.steps -= 1
            return _two(act, left, right)
        if cost is None or (name in _COMPARING and any(_is_short(side) for side in (one, other))):
            return _two(act, left, right)
        of_list, adds = name == "@in", name == "_+_"

        def run(variables: Variables) -> Any:
            values = left(variables), right(variables)
            if values[1].__class__ not in _UNSIZED and (of_list or values[0].__class__ not in _UNSIZED):
                steps = variables[STEPS]
                steps.take(cost(values, None) - 1)
                if values[1].__class__ is not str:
                    steps.fill(size_of(values[0]) + size_of(values[1]) if adds else COMPARED * whole_size(values[1]))
            return act(*values)

        return run

    def _library(self, node: Call) -> Run:
        name, target = node.function, node.target
        if isinstance(target, Ident) and target.name in NAMESPACES and target.name not in self._variables:
            name, target = f"{target.name}.{name}", None
        table = GLOBAL if target is None else METHODS
        args = [*(() if target is None else (target,)), *node.args]
        if name not in table:
            raise SyntaxFault(f"undeclared reference to '{name}' (in container '')", node.at)
        act = bound(name, table[name], len(args))
        if act is None:
            raise SyntaxFault(f"found no matching overload for '{name}' applied to {len(args)} values", node.at)
        runs = [self.run(arg) for arg in args]
        cost = CALLS.get(name)
        if cost is not None:
            return _counted(act, runs, cost, by_result=name in BY_RESULT)
        self.steps += 1
        if len(runs) == 1:
            only = runs[0]
            return lambda variables: act(only(variables))
        if len(runs) == 2:
            return _two(act, runs[0], runs[1])
        return lambda variables: act(*[run(variables) for run in runs])

    def _fallback(self, node: Call, target: Expression) -> Run:
        optional, other = self.run(target), self.part(node.args[0])
        unwrap = node.function == "orValue"

        def run(variables: Variables) -> Any:
            found = optional(variables)
            if not isinstance(found, Maybe):
                raise CelError(f"{NO_OVERLOAD}: {node.function}")
            if not found.there:
                return other(variables)
            return found.value if unwrap else found

        return run


def _constant(node: Expression) -> Maybe | None:
    """The value of what needs no evaluation, for which the original takes no steps: literals, lists and maps of them,
    and their conversions."""
    match node:
        case Literal(value=value):
            return Maybe(True, value)
        case ListOf() if not node.optional:
            items = [_constant(item) for item in node.items]
            return None if None in items else Maybe(True, [item.value for item in items if item is not None])
        case MapOf():
            found: dict[Any, Any] = {}
            for key, value, optional in node.entries:
                name, content = _constant(key), _constant(value)
                if name is None or content is None or optional:
                    return None
                found[name.value] = content.value
            return Maybe(True, found)
        case Call(target=None, args=(Literal(value=value),)) if node.function in _CONVERSIONS:
            act = bound(node.function, GLOBAL[node.function], 1)
            try:
                return None if act is None else Maybe(True, act(value))
            except CelError:
                return None
    return None


def _is_short(side: Expression) -> bool:
    """Whether comparing it with anything costs a step at most."""
    return isinstance(side, Literal) and (not isinstance(side.value, str | bytes) or len(side.value) <= 10)


def _counted(act: Callable[..., Any], runs: Sequence[Run], cost: _Cost, *, by_result: bool) -> Run:
    def run(variables: Variables) -> Any:
        values = [run(variables) for run in runs]
        steps = variables[STEPS]
        if not by_result:
            steps.take(_known_cost(cost, values))
        result = act(*values)
        if by_result:
            steps.take(cost(values, result))
        if isinstance(result, str | list):
            steps.fill(len(result))
        return result

    return run


def _known_cost(cost: _Cost, values: Sequence[Any]) -> int:
    try:
        return cost(values, None)
    except (AttributeError, TypeError):  # of values that the function will not take
        return 1


def _two(act: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    return lambda variables: act(left(variables), right(variables))


def _either(left: Run, right: Run, *, decides: bool) -> Run:
    """`||` if true decides, `&&` if false does."""

    def run(variables: Variables) -> bool:
        error: CelError | None = None
        for side in (left, right):
            try:
                value = side(variables)
            except CelError as raised:
                error = error or raised
                continue
            if value is decides:
                return bool(decides)
            if not isinstance(value, bool):
                error = error or CelError(NO_OVERLOAD)
        if error is not None:
            raise error
        return not decides

    return run


def _conditional(condition: Run, yes: Run, no: Run) -> Run:
    def run(variables: Variables) -> Any:
        value = condition(variables)
        if not isinstance(value, bool):
            raise CelError(NO_OVERLOAD)
        return yes(variables) if value else no(variables)

    return run


_LOGIC: dict[str, Callable[..., Run]] = {
    "_&&_": lambda left, right: _either(left, right, decides=False),
    "_||_": lambda left, right: _either(left, right, decides=True),
    "_?_:_": _conditional,
}

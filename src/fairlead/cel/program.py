"""Program: an expression compiled to Python functions.

Each node of the tree becomes a function of the variables; calling the outermost evaluates the expression. `&&`, `||`
and `?:` evaluate only what they need, and `&&` and `||` forget an error if the other side decides, as CEL asks.

What cannot be compiled (unknown names, unknown functions, wrong numbers of arguments, a result that can never be a
bool) is a CompileFault, with the place in cel-go's form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead.cel.functions import GLOBAL, METHODS, NAMESPACES, bound
from fairlead.cel.macros import COST_LIMIT, expand
from fairlead.cel.operators import BINARY, UNARY, look_up, maybe_look_up
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
from fairlead.cel.values import NO_OVERLOAD, CelError, Maybe, TypeName, type_name

Variables = dict[str, Any]
Run = Callable[[Variables], Any]
MAX_LENGTH = 10 * 1024
_TYPES = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"})


class CompileFault(Exception):
    """The text cannot be compiled; the message is what the API server answers."""


class Program:
    """A compiled expression."""

    def __init__(self, text: str, variables: frozenset[str]) -> None:
        try:
            tree = parse(text)
            self._run = Compiler(variables).run(tree)
        except SyntaxFault as fault:
            raise CompileFault(f"compilation failed: {located(text, [(str(fault), fault.at)])}") from None
        except RecursionError:
            raise CompileFault("compilation failed: the expression is nested too deeply") from None
        kind = _static_kind(tree)
        if kind not in ("", "bool"):
            raise CompileFault(f"must evaluate to bool or the unknown type, not {kind}")

    def __call__(self, variables: Variables) -> Any:
        """The value; raises CelError."""
        return self._run({**variables, "@budget": [COST_LIMIT]})


def located(text: str, faults: Sequence[tuple[str, int]]) -> str:
    """Faults with their places in cel-go's form, in the order of the text."""
    shown = []
    for message, at in sorted(faults, key=lambda fault: fault[1]):
        before = text[:at]
        line, column = before.count("\n"), at - (before.rfind("\n") + 1)
        source = text.split("\n")[line] if text else ""
        shown.append(f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {source}\n | {'.' * column}^")
    return "\n".join(shown)


def _static_kind(tree: Expression) -> str:
    """The type of a result that needs no evaluation to be known; empty if it does."""
    match tree:
        case Literal(value=value):
            return type_name(value)
        case ListOf():
            return "list(dyn)"
        case MapOf():
            return "map(dyn, dyn)"
        case Call(function="size"):
            return "int"
    return ""


class Compiler:
    """Turns nodes into functions; knows which variables there are."""

    def __init__(self, variables: frozenset[str]) -> None:
        self._variables = variables

    def within(self, *names: str) -> Compiler:
        """The same where more variables are bound."""
        return Compiler(self._variables | frozenset(names))

    def run(self, node: Expression) -> Run:
        match node:
            case Literal(value=value):
                return lambda variables: value
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

    def _ident(self, node: Expression, name: str) -> Run:
        if name in self._variables:
            return lambda variables: variables[name]
        if name in _TYPES:
            kind = TypeName(name)
            return lambda variables: kind
        raise SyntaxFault(f"undeclared reference to '{name}' (in container '')", node.at)

    def _select(self, node: Select) -> Run:
        operand, field = self.run(node.operand), node.field
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
        operand, key = self.run(node.operand), self.run(node.key)
        if node.optional:
            return lambda variables: maybe_look_up(operand(variables), key(variables))

        def run(variables: Variables) -> Any:
            holder = operand(variables)
            if isinstance(holder, Maybe):
                return maybe_look_up(holder, key(variables))
            return look_up(holder, key(variables))

        return run

    def _list(self, node: ListOf) -> Run:
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
            return _LOGIC[node.function](*map(self.run, node.args))
        macro = expand(self, node)
        if macro is not None:
            return macro
        if node.target is None and node.function in BINARY:
            return _two(BINARY[node.function], self.run(node.args[0]), self.run(node.args[1]))
        if node.target is None and node.function in UNARY:
            act, operand = UNARY[node.function], self.run(node.args[0])
            return lambda variables: act(operand(variables))
        if node.target is not None and node.function in ("or", "orValue"):
            return self._fallback(node, node.target)
        return self._library(node)

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
        if len(runs) == 1:
            only = runs[0]
            return lambda variables: act(only(variables))
        if len(runs) == 2:
            return _two(act, runs[0], runs[1])
        return lambda variables: act(*[run(variables) for run in runs])

    def _fallback(self, node: Call, target: Expression) -> Run:
        optional, other = self.run(target), self.run(node.args[0])
        unwrap = node.function == "orValue"

        def run(variables: Variables) -> Any:
            found = optional(variables)
            if not isinstance(found, Maybe):
                raise CelError(f"{NO_OVERLOAD}: {node.function}")
            if not found.there:
                return other(variables)
            return found.value if unwrap else found

        return run


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

"""Macros written out: a tree in which every macro is what cel-go expands it to.

The evaluator runs macros directly (macros.py). Types and costs are defined for what they expand to, so the checker and
the estimate read this form. A loop has a range, one or two variables, an accumulator with its beginning, a condition
to go on, a step and a result; `cel.bind` is a loop over nothing, as in the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.cel.syntax import Call, Expression, Ident, IndexExpression, ListOf, Literal, MapOf, Select, SyntaxFault

RESULT = "@result"
_UNUSED = "#unused"
_SORTED = "@__sortBy_input__"


@dataclass(frozen=True, slots=True)
class Loop(Expression):
    names: tuple[str, ...]
    range: Expression
    accumulator: str
    start: Expression
    condition: Expression
    step: Expression
    result: Expression

    @property
    def binds(self) -> bool:
        """Whether it is a `cel.bind`: then its body is the result."""
        return self.names == (_UNUSED,)


@dataclass(frozen=True, slots=True)
class Present(Expression):
    """`has(operand.field)`."""

    operand: Expression
    field: str


def written_out(node: Expression, *, bindings: bool = False) -> Expression:
    """The tree without macros; `bindings` if `cel.bind` is one of them."""
    return _Writer(bindings=bindings).tree(node)


class _Writer:
    def __init__(self, *, bindings: bool) -> None:
        self._bindings = bindings

    def tree(self, node: Expression) -> Expression:
        match node:
            case Select():
                return Select(node.at, self.tree(node.operand), node.field, node.optional)
            case IndexExpression():
                return IndexExpression(node.at, self.tree(node.operand), self.tree(node.key), node.optional)
            case ListOf():
                return ListOf(node.at, tuple(map(self.tree, node.items)), node.optional)
            case MapOf():
                entries = [(self.tree(key), self.tree(value), optional) for key, value, optional in node.entries]
                return MapOf(node.at, tuple(entries))
            case Call():
                return self._call(node)
        return node

    def _call(self, call: Call) -> Expression:
        inner = call.args[0] if call.args else None
        if call.function == "has" and call.target is None and inner is not None and len(call.args) == 1:
            if not isinstance(inner, Select):
                raise SyntaxFault("invalid argument to has() macro", inner.at)
            return Present(call.at, self.tree(inner.operand), inner.field)
        target = None if call.target is None else self.tree(call.target)
        args = tuple(map(self.tree, call.args))
        if target is not None and args:
            named = isinstance(inner, Ident)
            if self._bindings and named and call.function == "bind" and target == Ident(target.at, "cel"):
                if len(args) == 3:
                    return _bind(call.at, call.args[0].name, args[1], args[2])  # type: ignore[attr-defined]
            elif call.function in ("optMap", "optFlatMap") and named and len(args) == 2:
                return _of_optional(call, target, args, self.tree(call.target or target))
            elif (found := _loop(call, target, args)) is not None:
                return found
        return Call(call.at, call.function, target, args)


def _bind(at: int, name: str, value: Expression, body: Expression) -> Expression:
    return Loop(at, (_UNUSED,), ListOf(at, ()), name, value, Literal(at, False), Ident(at, name), body)


def _loop(call: Call, target: Expression, args: Sequence[Expression]) -> Expression | None:
    at, function = call.at, call.function
    if function == "sortBy" and len(args) == 2:
        keys = _loop(Call(at, "map", None, call.args), Ident(at, _SORTED), args)
        assert keys is not None
        return _bind(at, _SORTED, target, Call(at, "@sortByAssociatedKeys", Ident(at, _SORTED), (keys,)))
    names = _names(function, args)
    if names is None:
        return None
    rest = args[len(names) :]
    accumulated = Ident(at, RESULT)
    yes, no = Literal(at, True), Literal(at, False)

    def loop(start: Expression, condition: Expression, step: Expression, result: Expression = accumulated) -> Loop:
        return Loop(at, names, target, RESULT, start, condition, step, result)

    def kept(step: Expression) -> Expression:
        """The step where a filter before it says yes."""
        return step if len(rest) == 1 else Call(at, "_?_:_", None, (rest[0], step, accumulated))

    match function:
        case "all":
            return loop(yes, _going_on(at, accumulated), Call(at, "_&&_", None, (accumulated, rest[0])))
        case "exists":
            going = _going_on(at, Call(at, "!_", None, (accumulated,)))
            return loop(no, going, Call(at, "_||_", None, (accumulated, rest[0])))
        case "exists_one" | "existsOne":
            more = Call(at, "_+_", None, (accumulated, Literal(at, 1)))
            step = Call(at, "_?_:_", None, (rest[0], more, accumulated))
            return loop(Literal(at, 0), yes, step, Call(at, "_==_", None, (accumulated, Literal(at, 1))))
        case "filter":
            step = Call(at, "_+_", None, (accumulated, ListOf(at, (args[0],))))
            return loop(ListOf(at, ()), yes, Call(at, "_?_:_", None, (rest[0], step, accumulated)))
        case "map" | "transformList":
            return loop(ListOf(at, ()), yes, kept(Call(at, "_+_", None, (accumulated, ListOf(at, (rest[-1],))))))
        case "transformMap":
            insert = Call(at, "cel.@mapInsert", None, (accumulated, args[0], rest[-1]))
            return loop(MapOf(at, ()), yes, kept(insert))
    return loop(MapOf(at, ()), yes, kept(Call(at, "cel.@mapInsert", None, (accumulated, rest[-1]))))


def _names(function: str, args: Sequence[Expression]) -> tuple[str, ...] | None:
    """The variables of a loop; None if the call is none."""
    counts = {
        "all": {2: 1, 3: 2},
        "exists": {2: 1, 3: 2},
        "exists_one": {2: 1},
        "existsOne": {3: 2},
        "filter": {2: 1},
        "map": {2: 1, 3: 1},
        "transformList": {3: 2, 4: 2},
        "transformMap": {3: 2, 4: 2},
        "transformMapEntry": {3: 2, 4: 2},
    }
    count = counts.get(function, {}).get(len(args), 0)
    for arg in args[:count]:
        if not isinstance(arg, Ident):
            one = "argument is not an identifier" if function in ("map", "filter") else "argument must be a simple name"
            raise SyntaxFault(one, arg.at)
    return tuple(arg.name for arg in args[:count] if isinstance(arg, Ident)) or None


def _going_on(at: int, value: Expression) -> Expression:
    return Call(at, "@not_strictly_false", None, (value,))


def _of_optional(call: Call, target: Expression, args: Sequence[Expression], again: Expression) -> Expression:
    """`again` is the target once more, as other nodes: a node stands in a tree once."""
    at, name = call.at, args[0]
    assert isinstance(name, Ident)
    bound = _bind(at, name.name, Call(at, "value", again, ()), args[1])
    if call.function == "optMap":
        bound = Call(at, "optional.of", None, (bound,))
    return Call(at, "_?_:_", None, (Call(at, "hasValue", target, ()), bound, Call(at, "optional.none", None, ())))

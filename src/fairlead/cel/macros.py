"""Macros: calls whose arguments are not evaluated as they stand, because they bind variables or ask for presence.

A macro becomes a Python function of the variables at hand (see program.py). Loops over a map see its keys, or keys and
values if two variables are named. `all` and `exists` forget an error if another element decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairlead.cel.syntax import Call, Expression, Ident, IndexExpression, Select, SyntaxFault
from fairlead.cel.text_functions import sort_by
from fairlead.cel.values import NO_OVERLOAD, CelError, DefaultMap, Maybe

if TYPE_CHECKING:
    from fairlead.cel.program import Compiler, Variables

Run = Callable[["Variables"], Any]
_LOOPS = frozenset({
    "all", "exists", "exists_one", "existsOne", "filter", "map", "transformList", "transformMap", "transformMapEntry",
    "sortBy", "optMap", "optFlatMap",
})  # fmt: skip
_ONE_OR_TWO = frozenset({"all", "exists", "existsOne", "exists_one"})
COST_LIMIT = 1_000_000
"""Rounds of loops in one evaluation: about what the original allows in its own units."""


def expand(compiler: Compiler, call: Call) -> Run | None:
    """The function of a macro; None if the call is none."""
    if call.function == "has" and call.target is None and len(call.args) == 1:
        return _has(compiler, call)
    if call.function == "bind" and isinstance(call.target, Ident) and call.target.name == "cel" and len(call.args) == 3:
        return _bind(compiler, call)
    if call.target is not None and call.function in _LOOPS and len(call.args) >= 2:
        return _loop(compiler, call, call.target)
    return None


def _name(node: Expression) -> str:
    if not isinstance(node, Ident):
        raise SyntaxFault("argument must be a simple name", node.at)
    return node.name


def _has(compiler: Compiler, call: Call) -> Run:
    inner = call.args[0]
    if isinstance(inner, IndexExpression):
        raise SyntaxFault("invalid argument to has() macro", inner.at)
    if not isinstance(inner, Select):
        raise SyntaxFault("invalid argument to has() macro", inner.at)
    operand, field = compiler.run(inner.operand), inner.field

    def run(variables: Variables) -> bool:
        holder = operand(variables)
        if isinstance(holder, Maybe):
            return holder.there and isinstance(holder.value, Mapping) and field in holder.value
        if isinstance(holder, Mapping):
            return field in holder or isinstance(holder, DefaultMap)
        raise CelError(f"no such key: {field}")

    return run


def _bind(compiler: Compiler, call: Call) -> Run:
    name, value = _name(call.args[0]), compiler.run(call.args[1])
    body = compiler.within(name).run(call.args[2])
    return lambda variables: body({**variables, name: value(variables)})


def _loop(compiler: Compiler, call: Call, target: Expression) -> Run:
    function, args = call.function, call.args
    if function in ("optMap", "optFlatMap"):
        return _optional(compiler, call, target)
    two = (len(args) >= 3 and function in ("all", "exists", "existsOne", "exists_one")) or function.startswith(
        "transform"
    )
    names = (_name(args[0]), _name(args[1])) if two else (_name(args[0]),)
    inside = compiler.within(*names)
    steps = [inside.run(arg) for arg in args[len(names) :]]
    source = compiler.run(target)
    act = _ACTIONS[function]
    if not 1 <= len(steps) <= (2 if function in ("map", "transformList", "transformMap", "transformMapEntry") else 1):
        raise SyntaxFault(f"found no matching overload for '{function}'", call.at)

    def run(variables: Variables) -> Any:
        return act(_rounds(source(variables), names, variables), steps)

    return run


def _rounds(
    container: Any, names: tuple[str, ...], variables: Variables
) -> Iterator[tuple[tuple[Any, ...], Variables]]:
    """For each element, what the names stand for and the variables with them."""
    if isinstance(container, Mapping):
        rounds = [(key, container[key]) for key in sorted(container, key=str)]
    elif isinstance(container, list):
        rounds = list(enumerate(container)) if len(names) == 2 else [(item, None) for item in container]
    else:
        raise CelError(NO_OVERLOAD)
    budget = variables["@budget"]
    for pair in rounds:
        budget[0] -= 1
        if budget[0] < 0:
            raise CelError("operation cancelled: actual cost limit exceeded")
        values = pair[: len(names)]
        yield values, {**variables, **dict(zip(names, values, strict=True))}


Rounds = Iterator[tuple[tuple[Any, ...], "Variables"]]
Steps = list[Run]


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    return value


def _decided(rounds: Rounds, steps: Steps, *, by: bool) -> bool:
    """Whether some element says `by`. An error counts only if no element does."""
    error: CelError | None = None
    for _, variables in rounds:
        try:
            if _boolean(steps[0](variables)) is by:
                return by
        except CelError as raised:
            error = error or raised
    if error is not None:
        raise error
    return not by


def _one(rounds: Rounds, steps: Steps) -> bool:
    return sum(_boolean(steps[0](variables)) for _, variables in rounds) == 1


def _filtered(rounds: Rounds, steps: Steps) -> list[Any]:
    return [values[0] for values, variables in rounds if _boolean(steps[0](variables))]


def _mapped(rounds: Rounds, steps: Steps) -> list[Any]:
    return [
        steps[-1](variables) for _, variables in rounds if len(steps) == 1 or _boolean(steps[0](variables))
    ]  # fmt: skip


def _mapped_values(rounds: Rounds, steps: Steps) -> dict[Any, Any]:
    return {
        values[0]: steps[-1](variables)
        for values, variables in rounds
        if len(steps) == 1 or _boolean(steps[0](variables))
    }


def _mapped_entries(rounds: Rounds, steps: Steps) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for entry in _mapped(rounds, steps):
        for key, value in entry.items():
            if key in found:
                raise CelError(f"insert failed: key {key} already exists")
            found[key] = value
    return found


def _sorted_by(rounds: Rounds, steps: Steps) -> list[Any]:
    pairs = [(values[0], steps[0](variables)) for values, variables in rounds]
    return sort_by([item for item, _ in pairs], [key for _, key in pairs])


_ACTIONS: dict[str, Callable[[Rounds, Steps], Any]] = {
    "all": lambda rounds, steps: _decided(rounds, steps, by=False),
    "exists": lambda rounds, steps: _decided(rounds, steps, by=True),
    "exists_one": _one, "existsOne": _one, "filter": _filtered, "map": _mapped, "transformList": _mapped,
    "transformMap": _mapped_values, "transformMapEntry": _mapped_entries, "sortBy": _sorted_by,
}  # fmt: skip


def _optional(compiler: Compiler, call: Call, target: Expression) -> Run:
    name, source = _name(call.args[0]), compiler.run(target)
    body = compiler.within(name).run(call.args[1])
    flat = call.function == "optFlatMap"

    def run(variables: Variables) -> Maybe:
        optional = source(variables)
        if not isinstance(optional, Maybe):
            raise CelError(NO_OVERLOAD)
        if not optional.there:
            return optional
        value = body({**variables, name: optional.value})
        return value if flat else Maybe(True, value)

    return run

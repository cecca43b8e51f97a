"""Macros: calls whose arguments are not evaluated as they stand, because they bind variables or request presence.

A macro becomes a Python function of the variables at hand (see program.py). Loops over a map see its keys, or keys and
values if two variables are named. `all` and `exists` forget an error if another element decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlead.cel.operators import spelled
from fairlead.cel.steps import Steps, squared
from fairlead.cel.syntax import Call, Expression, Ident, IndexExpression, Select, SyntaxFault
from fairlead.cel.text_functions import sort_by
from fairlead.cel.values import NO_OVERLOAD, STEPS, CelError, DefaultMap, Maybe

if TYPE_CHECKING:
    from fairlead.cel.program import Compiler, Variables

Run = Callable[["Variables"], Any]
_LOOPS = frozenset({
    "all", "exists", "exists_one", "existsOne", "filter", "map", "transformList", "transformMap", "transformMapEntry",
    "sortBy", "optMap", "optFlatMap",
})  # fmt: skip
_ONE_OR_TWO = frozenset({"all", "exists", "existsOne", "exists_one"})


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
    operand, field = compiler.of_holder(inner.operand), inner.field

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
    body = compiler.part(call.args[2], name)
    return lambda variables: body({**variables, name: value(variables)})


def _loop(compiler: Compiler, call: Call, target: Expression) -> Run:
    function, args = call.function, call.args
    if function in ("optMap", "optFlatMap"):
        return _optional(compiler, call, target)
    two = (len(args) >= 3 and function in ("all", "exists", "existsOne", "exists_one")) or function.startswith(
        "transform"
    )
    names = (_name(args[0]), _name(args[1])) if two else (_name(args[0]),)
    most = 2 if function in ("map", "transformList", "transformMap", "transformMapEntry") else 1
    if not 1 <= len(args) - len(names) <= most:
        raise SyntaxFault(f"found no matching overload for '{function}'", call.at)
    source = compiler.run(target)
    compiler.steps += _ONCE.get(function, 1)
    bodies = [compiler.part(arg, *names, more=_EACH.get(function, 0)) for arg in args[len(names) :]]
    act = _ACTIONS[function]

    def run(variables: Variables) -> Any:
        return act(_rounds(source(variables), names, variables), bodies, variables[STEPS])

    return run


def _rounds(
    container: Any, names: tuple[str, ...], variables: Variables
) -> Iterator[tuple[tuple[Any, ...], Variables]]:
    """For each element, what the names stand for and the variables with them, which are good until the next."""
    if isinstance(container, Mapping):
        rounds = [(key, container[key]) for key in sorted(container, key=str)]
    elif isinstance(container, list):
        rounds = list(enumerate(container)) if len(names) == 2 else [(item, None) for item in container]
    else:
        raise CelError(NO_OVERLOAD)
    inside = dict(variables)
    for pair in rounds:
        values = pair[: len(names)]
        inside.update(zip(names, values, strict=True))
        yield values, inside


Rounds = Iterator[tuple[tuple[Any, ...], "Variables"]]
Bodies = list[Run]


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    return value


def _decided(rounds: Rounds, bodies: Bodies, steps: Steps, *, by: bool) -> bool:
    """Whether some element says `by`. An error counts only if no element does."""
    error: CelError | None = None
    for _, variables in rounds:
        try:
            if _boolean(bodies[0](variables)) is by:
                if next(rounds, None) is not None:
                    steps.take(2 + by)  # the question whether to go on
                return by
        except CelError as raised:
            error = error or raised
    if error is not None:
        raise error
    return not by


def _one(rounds: Rounds, bodies: Bodies, steps: Steps) -> bool:
    count = 0
    for _, variables in rounds:
        if _boolean(bodies[0](variables)):
            steps.take(2)
            count += 1
    return count == 1


def _filtered(rounds: Rounds, bodies: Bodies, steps: Steps) -> list[Any]:
    found = []
    for values, variables in rounds:
        if _boolean(bodies[0](variables)):
            steps.take(13)
            found.append(values[0])
    return found


def _mapped(rounds: Rounds, bodies: Bodies, steps: Steps) -> list[Any]:
    return [value for _, value in _values(rounds, bodies, steps, 12)]


def _values(rounds: Rounds, bodies: Bodies, steps: Steps, each: int) -> Iterator[tuple[Any, Any]]:
    for values, variables in rounds:
        if len(bodies) == 1 or _boolean(bodies[0](variables)):
            steps.take(each)
            yield values[0], bodies[-1](variables)


def _mapped_values(rounds: Rounds, bodies: Bodies, steps: Steps) -> dict[Any, Any]:
    return dict(_values(rounds, bodies, steps, 3))


def _mapped_entries(rounds: Rounds, bodies: Bodies, steps: Steps) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for _, entry in _values(rounds, bodies, steps, 2):
        for key, value in entry.items():
            if key in found:
                raise CelError(f"insert failed: key {spelled(key)} already exists")
            found[key] = value
    return found


def _sorted_by(rounds: Rounds, bodies: Bodies, steps: Steps) -> list[Any]:
    pairs = []
    for values, variables in rounds:
        steps.take(12)
        pairs.append((values[0], bodies[0](variables)))
    steps.take(squared([key for _, key in pairs]))
    return sort_by([item for item, _ in pairs], [key for _, key in pairs])


_ACTIONS: dict[str, Callable[[Rounds, Bodies, Steps], Any]] = {
    "all": partial(_decided, by=False), "exists": partial(_decided, by=True), "exists_one": _one, "existsOne": _one,
    "filter": _filtered, "map": _mapped, "transformList": _mapped, "transformMap": _mapped_values,
    "transformMapEntry": _mapped_entries, "sortBy": _sorted_by,
}  # fmt: skip
_ONCE: dict[str, int] = {"exists_one": 2, "existsOne": 2, "sortBy": 3}
"""Steps of a loop that do not depend on its rounds, as those of what it is written out to (loops.py); else one."""
_EACH: dict[str, int] = {"all": 3, "exists": 4}
"""Steps of each round, besides what the loop's body takes. The other loops take them for elements that they keep."""


def _optional(compiler: Compiler, call: Call, target: Expression) -> Run:
    before = compiler.steps
    name, source = _name(call.args[0]), compiler.run(target)
    flat = call.function == "optFlatMap"
    # The original asks whether there is a value, and then for the value, from the start each time.
    body = compiler.part(call.args[1], name, more=compiler.steps - before + (1 if flat else 2))
    compiler.steps += 1

    def run(variables: Variables) -> Maybe:
        optional = source(variables)
        if not isinstance(optional, Maybe):
            raise CelError(NO_OVERLOAD)
        if not optional.there:
            return optional
        value = body({**variables, name: optional.value})
        return value if flat else Maybe(True, value)

    return run

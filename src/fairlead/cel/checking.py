"""The types of an expression, found before it runs: what can never fit is refused with cel-go's words.

Functions are looked up in `overloads.txt`: name, identifier, parameters and result of each overload that the API server
has for selectors and rules. All overloads that the arguments fit are kept, because the estimate of the
cost (cost.py) reads each of them. What variables there are, and the fields of their types, says an Environment.
Attributes of devices are of the type `any` and fit everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from fairlead.cel import types as t
from fairlead.cel.loops import Loop, Present
from fairlead.cel.syntax import Call, Expression, Ident, IndexExpression, ListOf, Literal, MapOf, Select
from fairlead.cel.types import Type, optional_of, parse_type, split_types
from fairlead.cel.values import type_name

if TYPE_CHECKING:
    from fairlead.cel.environment import Environment

NAMES: Mapping[str, Type] = {
    **{name: Type("type", (Type(name),)) for name in ("bool", "bytes", "double", "int", "string", "uint", "type")},
    "optional_type": parse_type("type(optional_type(A))"),
    "list": parse_type("type(list(A))"),
    "map": parse_type("type(map(A, B))"),
    "null_type": parse_type("type(null)"),
    **{name: Type("type", (Type(name),)) for name in ("net.IP", "net.CIDR")},
    "google.protobuf.Duration": parse_type("type(duration)"),
    "google.protobuf.Timestamp": parse_type("type(timestamp)"),
}
_WITHOUT_FIELDS = frozenset({"kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "kubernetes.NamedFormat"})
"""Types of the API server that are objects and have no fields."""


class Signature(NamedTuple):
    id: str
    member: bool
    params: tuple[Type, ...]
    result: Type


class TypeFault(NamedTuple):
    """What does not fit, and where."""

    message: str
    at: int


@cache
def signatures() -> dict[str, list[Signature]]:
    """The overloads of each function, in the order in which they are tried."""
    found: dict[str, list[Signature]] = {}
    for line in (files("fairlead.cel") / "overloads.txt").read_text().splitlines():
        name, identifier, rest = line.split(" ", 2)
        params, _, result = rest.rpartition(" -> ")
        taken = tuple(map(parse_type, split_types(params.lstrip(".")[1:-1])))
        found.setdefault(name, []).append(Signature(identifier, rest.startswith("."), taken, parse_type(result)))
    return found


class Checked:
    """A tree and what was found out: `types` and `overloads` by the identity of its nodes, and the `faults`."""

    def __init__(self, tree: Expression, environment: Environment) -> None:
        self.tree = tree
        self.environment = environment
        self.mentioned: set[str] = set()
        """The variables of the environment that the tree reads."""
        self.faults: list[TypeFault] = []
        self.overloads: dict[int, list[str]] = {}
        self.functions: dict[int, str] = {}
        """The whole names of functions that are called with a namespace before them (`sets.contains`)."""
        self._types: dict[int, Type] = {}
        self._bindings = t.Bindings()
        self._scopes: list[dict[str, Type]] = [{**NAMES, **environment.variables}]
        self._check(tree)

    def type_of(self, node: Expression) -> Type:
        return self._bindings.resolved(self._types.get(id(node), t.DYN), final=True)

    # ---- nodes ----

    def _check(self, node: Expression) -> Type:
        found = self._found(node)
        self._types[id(node)] = found
        return found

    def _found(self, node: Expression) -> Type:
        match node:
            case Literal(value=value):
                return t.NULL if value is None else Type(type_name(value))
            case Ident(name=name):
                return self._named(name, node.at)
            case Present():
                self._field(node.at, self._check(node.operand), node.field)
                return t.BOOL
            case Select():
                return self._select(node)
            case IndexExpression():
                types = [self._check(node.operand), self._check(node.key)]
                return self._call(node, "_[?_]" if node.optional else "_[_]", types, member=False)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Loop():
                return self._loop(node)
            case Call():
                return self._function(node)
        raise AssertionError(node)

    def _named(self, name: str, at: int) -> Type:
        for scope in reversed(self._scopes):
            if name in scope:
                if scope is self._scopes[0] and name in self.environment.variables:
                    self.mentioned.add(name)
                return scope[name]
        return self._fault(f"undeclared reference to '{name}' (in container '')", at)

    def _select(self, node: Select) -> Type:
        whole = qualified(node)
        if whole in NAMES and not node.optional:
            return NAMES[whole]
        found = self._field(node.at, self._check(node.operand), node.field)
        return optional_of(found) if node.optional and not found.is_optional else found

    def _field(self, at: int, holder: Type, field: str) -> Type:
        holder = self._bindings.resolved(holder)
        inner = holder.params[0] if holder.is_optional else holder
        found = t.DYN
        if inner.name == "map":
            found = inner.params[1]
        elif inner.name in self.environment.fields:
            known = self.environment.fields[inner.name].get(field)
            found = known if known is not None else self._fault(f"undefined field '{field}'", at)
        elif inner.name in _WITHOUT_FIELDS:
            found = self._fault(f"unexpected failed resolution of '{inner.name}'", at)
        elif inner.is_parameter:
            self._bindings.fits(t.DYN, inner)
        elif not inner.is_anything and inner != t.ERROR:
            self._fault(f"type '{inner}' does not support field selection", at)
        found = self._bindings.resolved(found)
        return optional_of(found) if holder.is_optional else found

    def _list(self, node: ListOf) -> Type:
        joined: Type | None = None
        for at, item in enumerate(node.items):
            joined = self._joined(joined, self._entry(item, optional=at in node.optional))
        return t.list_of(self._bindings.fresh() if joined is None else joined)

    def _map(self, node: MapOf) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._joined(keys, self._check(key))
            values = self._joined(values, self._entry(value, optional=optional))
        if keys is None or values is None:
            return t.map_of(self._bindings.fresh(), self._bindings.fresh())
        return t.map_of(keys, values)

    def _entry(self, node: Expression, *, optional: bool) -> Type:
        found = self._check(node)
        if not optional or found.is_anything:
            return found
        if found.is_optional:
            return found.params[0]
        self._fault(f"expected type '{optional_of(found)}' but found '{found}'", node.at)
        return found

    def _joined(self, before: Type | None, now: Type) -> Type:
        """The type of entries, if they are mixed `dyn`: literals.py complains of that."""
        if before is None:
            return now
        return t.wider(before, now) if self._bindings.fits(before, now) else t.DYN

    def _loop(self, loop: Loop) -> Type:
        over, start = self._check(loop.range), self._check(loop.start)
        over = self._bindings.resolved(over)
        self._scopes.append({loop.accumulator: start})
        self._scopes.append(dict(zip(loop.names, self._variables(loop, over), strict=False)))
        self._wanted(loop.condition, t.BOOL)
        self._wanted(loop.step, start)
        self._scopes.pop()
        found = self._check(loop.result)
        self._scopes.pop()
        return self._bindings.resolved(found)

    def _variables(self, loop: Loop, over: Type) -> tuple[Type, ...]:
        two = len(loop.names) == 2
        if over.name == "list":
            return (t.INT, over.params[0]) if two else over.params
        if over.name == "map":
            return over.params
        if (over.is_anything and over != t.ANY) or over == t.ERROR or over.is_parameter:
            self._bindings.fits(t.DYN, over)
            return t.DYN, t.DYN
        wrong = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._fault(wrong, loop.range.at)
        return t.ERROR, t.ERROR

    def _wanted(self, node: Expression, wanted: Type) -> None:
        found = self._check(node)
        if not self._bindings.fits(wanted, found):
            self._mismatch(wanted, found, node.at)

    # ---- calls ----

    def _function(self, call: Call) -> Type:
        types = [self._check(arg) for arg in call.args]
        name = call.function
        if call.target is not None:
            prefix = qualified(call.target)
            whole = f"{prefix}.{name}" if prefix else ""
            if whole not in signatures():
                types.insert(0, self._check(call.target))
                return self._call(call, name, types, member=True)
            self.functions[id(call)] = name = whole
        return self._call(call, name, types, member=False)

    def _call(self, node: Expression, name: str, types: list[Type], *, member: bool) -> Type:
        overloads = signatures().get(name)
        if overloads is None:
            return self._fault(f"undeclared reference to '{name}' (in container '')", node.at)
        if name in ("_&&_", "_||_") and isinstance(node, Call):
            return self._logic(node, overloads[0].id, types)
        result: Type | None = None
        for overload in overloads:
            if overload.member is not member:
                continue
            params, returned = self._instance(overload)
            if self._bindings.all_fit(types, params):
                self.overloads.setdefault(id(node), []).append(overload.id)
                found = self._bindings.resolved(returned)
                result = found if result is None or result == found else t.DYN
        if result is None:
            shown = [str(self._bindings.resolved(one, final=True)) for one in types]
            listed = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            return self._fault(f"found no matching overload for '{name}' applied to '{listed}'", node.at)
        return result

    def _logic(self, call: Call, overload: str, types: list[Type]) -> Type:
        wrong = [
            self._mismatch(t.BOOL, found, arg.at)
            for arg, found in zip(call.args, types, strict=True)
            if not self._bindings.fits(found, t.BOOL)
        ]
        self.overloads[id(call)] = [] if wrong else [overload]
        return t.ERROR if wrong else t.BOOL

    def _instance(self, overload: Signature) -> tuple[list[Type], Type]:
        """The parameters and the result of an overload with fresh type parameters."""
        fresh: dict[Type, Type] = {}

        def made(of: Type) -> Type:
            if of.is_parameter:
                if of not in fresh:
                    fresh[of] = self._bindings.fresh()
                return fresh[of]
            return Type(of.name, tuple(map(made, of.params)))

        return [made(one) for one in overload.params], made(overload.result)

    # ---- faults ----

    def _mismatch(self, wanted: Type, found: Type, at: int) -> Type:
        wanted, found = self._bindings.resolved(wanted), self._bindings.resolved(found)
        return self._fault(f"expected type '{wanted}' but found '{found}'", at)

    def _fault(self, message: str, at: int) -> Type:
        self.faults.append(TypeFault(message, at))
        return t.ERROR


def qualified(node: Expression) -> str:
    """The dotted name that an expression may be; empty if it is none."""
    match node:
        case Ident(name=name):
            return name
        case Select(optional=False) if prefix := qualified(node.operand):
            return f"{prefix}.{node.field}"
    return ""

"""An estimate of what an expression may cost at most, in the units of the API server, which refuses what costs too
much.

The estimate follows cel-go's: reading a name or a field costs one, a call one or what its arguments' sizes make of it,
a loop its step as often as its range may have elements. Sizes come from literals, from calls, and for what variables
hold from the environment, which has what the API or a schema allows; whatever has no known size may have any, so
comparing two such values is out of the question. Calls whose cost depends on sizes are in call_costs.py.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead.cel.call_costs import CallCost, Items, Operand, call_cost
from fairlead.cel.checking import NAMES, Checked, qualified
from fairlead.cel.loops import RESULT, Loop, Present
from fairlead.cel.sizes import MOST, NEW_LIST, NEW_MAP, NOTHING, ONE, CostRange, exactly
from fairlead.cel.syntax import Call, Expression, Ident, IndexExpression, ListOf, Literal, MapOf, Select
from fairlead.cel.types import SCALARS, Type


class Entries(NamedTuple):
    """The sizes of the keys and values of a container."""

    kind: str
    keys: CostRange
    values: CostRange


class _Local(NamedTuple):
    """A variable of a loop: the path of what it stands for, its size and that of its entries, if known."""

    path: tuple[str, ...]
    size: CostRange | None = None
    entries: Entries | None = None


class CostEstimate:
    """The cost of a checked tree."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._size_of = checked.environment.size_of
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, CostRange] = {}
        self._entries: dict[int, Entries] = {}
        self._locals: dict[str, list[_Local]] = {}
        self.most = self._cost(checked.tree).most

    # ---- nodes ----

    def _cost(self, node: Expression) -> CostRange:
        match node:
            case Literal():
                return NOTHING
            case Ident(name=name):
                local = self._local_of(node)
                self._paths[id(node)] = (name,) if local is None else local.path
                return ONE
            case Present():
                return self._cost(node.operand)
            case Select():
                return self._select(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Loop():
                return self._bind(node) if node.binds else self._loop(node)
            case IndexExpression():
                name = "_[?_]" if node.optional else "_[_]"
                return self._call(node, name, None, (node.operand, node.key))
            case Call():
                whole = self._checked.functions.get(id(node))
                return self._call(node, whole or node.function, None if whole else node.target, node.args)
        raise AssertionError(node)

    def _select(self, node: Select) -> CostRange:
        whole = qualified(node)
        if whole in NAMES:
            self._paths[id(node)] = (whole,)
            return ONE
        cost = self._cost(node.operand)
        if node.optional:
            return cost.plus(ONE)
        kind = self._type(node.operand)
        if kind.name == "map" or kind.name in self._checked.environment.fields:
            cost = cost.plus(ONE)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost

    def _list(self, node: ListOf) -> CostRange:
        cost, values = exactly(NEW_LIST), CostRange(MOST if node.items else 0, 0)
        for item in node.items:
            cost = cost.plus(self._cost(item))
            values = values.or_else(self._size_or_any(item))
        self._entries[id(node)] = Entries("list", ONE, values)
        return cost

    def _map(self, node: MapOf) -> CostRange:
        cost = exactly(NEW_MAP)
        keys = values = CostRange(MOST if node.entries else 0, 0)
        for key, value, _ in node.entries:
            cost = cost.plus(self._cost(key)).plus(self._cost(value))
            keys, values = keys.or_else(self._size_or_any(key)), values.or_else(self._size_or_any(value))
        self._entries[id(node)] = Entries("map", keys, values)
        return cost

    def _loop(self, loop: Loop) -> CostRange:
        cost = self._cost(loop.range).plus(self._cost(loop.start))
        self._push(loop.accumulator, self._local(loop.start))
        for name, local in zip(loop.names, self._iterated(loop), strict=True):
            self._push(name, local)
        each = self._cost(loop.condition).plus(self._cost(loop.step))
        for name in loop.names:
            self._locals[name].pop()
        cost = cost.plus(self._cost(loop.result))
        self._locals[loop.accumulator].pop()
        rounds = self._size_or_any(loop.range)
        if isinstance(loop.start, Literal):
            self._set_size(loop, self._size(loop.start))
        elif isinstance(loop.start, ListOf | MapOf):
            self._set_size(loop, rounds)
            self._set_entries(loop, self._entries_of(loop.step))
        return cost.plus(rounds.times(each))

    def _iterated(self, loop: Loop) -> list[_Local]:
        entries, path = self._entries_of(loop.range), self._path(loop.range)
        kind = entries.kind if entries is not None else self._type(loop.range).name
        keys, values = (entries.keys, entries.values) if entries is not None else (None, None)
        in_list = kind == "list"
        key = _Local((*path, "@indices" if in_list else "@keys"), keys)
        value = _Local((*path, "@items" if in_list else "@values"), values)
        if len(loop.names) == 2:
            # In the original both paths grow from one slice: where that has room, the second overwrites the first.
            return [_Local(value.path, keys) if len(path) & (len(path) - 1) else key, value]
        return [value if in_list else key]

    def _bind(self, loop: Loop) -> CostRange:
        cost = self._cost(loop.range).plus(self._cost(loop.start))
        self._push(loop.accumulator, self._local(loop.start))
        cost = cost.plus(self._cost(loop.result))
        self._locals[loop.accumulator].pop()  # so a body that is the variable itself has no known size
        self._set_size(loop, self._size(loop.result))
        self._set_entries(loop, self._entries_of(loop.result))
        return cost

    # ---- calls ----

    def _call(
        self, node: Expression, function: str, target: Expression | None, args: tuple[Expression, ...]
    ) -> CostRange:
        if function == "dyn":
            cost = self._cost(args[0]).plus(ONE)
            self._set_size(node, self._size(args[0]))
            self._set_entries(node, self._entries_of(args[0]))
            return cost
        costs = [self._cost(arg) for arg in args]
        operands = [self._operand(arg) for arg in args]
        overloads = self._checked.overloads.get(id(node), [])
        if not overloads:
            return NOTHING
        own = NOTHING if target is None else self._cost(target)
        receiver = None if target is None else self._operand(target)
        called, size = CostRange(MOST, 0), None
        for overload in overloads:
            found = call_cost(function, overload, receiver, operands, costs)
            if overload == "conditional":
                found = self._conditional(node, args, operands, costs)
            elif overload in ("add_string", "add_bytes", "add_list"):
                self._set_entries(node, _common(self._entries_of(args[0]), self._entries_of(args[1])))
            called = called.or_else(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.or_else(found.size)
            if overload in ("index_list", "index_map"):
                entries = self._entries_of(args[0])
                size = entries.values if entries is not None else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(args[0]), step)
            if size is None:
                size = self._size(node)
        self._set_size(node, size)
        return own.plus(called)

    def _conditional(
        self, node: Expression, args: tuple[Expression, ...], operands: list[Operand], costs: list[CostRange]
    ) -> CallCost:
        self._set_entries(node, _common(self._entries_of(args[1]), self._entries_of(args[2])))
        size = operands[1].size_or_any.or_else(operands[2].size_or_any)
        return CallCost(costs[0].plus(costs[1].or_else(costs[2])), size)

    def _operand(self, node: Expression) -> Operand:
        path = self._path(node)
        literal = node.value if isinstance(node, Literal) else None
        if path[:1] == (RESULT,):
            path = ()
        kind = self._type(node)
        items = Items(kind.params[0], self._size_of((*path, "@items")) if path else None) if kind.params else None
        return Operand(kind, self._size(node), items, literal)

    # ---- what is known ----

    def _type(self, node: Expression) -> Type:
        return self._checked.type_of(node)

    def _local_of(self, node: Expression) -> _Local | None:
        found = self._locals.get(node.name) if isinstance(node, Ident) else None
        return found[-1] if found else None

    def _local(self, value: Expression) -> _Local:
        return _Local(self._path(value), self._size(value), self._entries_of(value))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _path(self, node: Expression) -> tuple[str, ...]:
        local = self._local_of(node)
        return local.path if local is not None else self._paths.get(id(node), ())

    def _size_or_any(self, node: Expression) -> CostRange:
        found = self._size(node)
        return CostRange(0, MOST) if found is None else found

    def _size(self, node: Expression) -> CostRange | None:
        found = self._sizes.get(id(node)) or _written(node)
        if found is not None:
            return found
        found = self._size_of(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if _is_scalar(self._type(node)):
            return ONE
        local = self._local_of(node)
        return local.size if local is not None else None

    def _set_size(self, node: Expression, size: CostRange | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _entries_of(self, node: Expression) -> Entries | None:
        found = self._entries.get(id(node))
        if found is not None:
            return found
        local = self._local_of(node)
        return local.entries if local is not None else None

    def _set_entries(self, node: Expression, entries: Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries


def _common(one: Entries | None, other: Entries | None) -> Entries | None:
    if one is None or other is None:
        return None
    return Entries(one.kind, one.keys.or_else(other.keys), one.values.or_else(other.values))


def _written(node: Expression) -> CostRange | None:
    """The size that stands in the text."""
    match node:
        case Literal(value=str() | bytes() as value):
            return exactly(len(value))
        case Literal():
            return ONE
        case ListOf():
            return exactly(len(node.items))
        case MapOf():
            return exactly(len(node.entries))
    return None


def _is_scalar(kind: Type) -> bool:
    return kind.name in SCALARS or (kind.is_optional and _is_scalar(kind.params[0]))

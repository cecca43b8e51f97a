"""Who changes the state of a Cluster: the methods of core/state, and nobody else.

A plugin or a driver that left something on a Cluster would leave it for somebody else to find. What is kept about a
cluster is an index of its owner (`Cluster.index`), and what plugins ask for is in Effects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.sources import Source, all_sources, at_least, imported

STATE = "core/state/"
RECORDS = {"NodeTable": "table", "Gang": "gang", "PodState": "pod_state"}
"""Classes of core/state that others hold without a Cluster beside them, with what an instance is called."""
CHANGING = {
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "fill", "insert",
    "intersection_update", "pop", "popitem", "popleft", "put", "remove", "resize", "reverse", "setdefault", "sort",
    "subtract", "update",
}  # fmt: skip
"""Methods of containers and arrays that change them."""
READING = {"get", "items", "values"}
"""Methods of containers whose answer has what belongs to the Cluster in it."""


def test_only_core_state_changes_what_belongs_to_a_cluster() -> None:
    looked_at = at_least(900, [source for source in all_sources() if not source.name.startswith(STATE)])
    assert not [f"{source.name}:{line}: {text}" for source in looked_at for line, text in _changes(source)]


def test_the_rule_sees_where_core_state_changes_a_cluster() -> None:
    """What Statements and repairs do, and gangs with their members."""
    sources = at_least(15, [source for source in all_sources() if source.name.startswith(STATE)])
    assert sum(1 for source in sources for _ in _changes(source)) >= 10


@pytest.mark.parametrize(
    "text",
    [
        "cluster.to_write = []",
        "cluster.applied += 1",
        "cluster.applied: int = 1",
        "del cluster.pods[uid]",
        "self._cluster.finished[uid] = pod",
        "one, cycle.cluster.refused = 1, []",
        "cycle.cluster.refused.append('x')",
        "setattr(cluster, 'x', 1)",
        "def f():\n    finished = cycle.cluster.finished\n    finished.clear()",
        "def f():\n    table, rows = self._cluster.table, []\n    table.capacity += 1",
        "def f():\n    for pod_state in cluster.pods.values():\n        pod_state.row = 1",
        "def f():\n    for uid, state in cluster.pods.items():\n        state.row = 1",
        "def f():\n    state = cluster.pods.get(uid)\n    state.pod.labels['a'] = 'b'",
        "def f():\n    if (state := cluster.pods.get(uid)):\n        state.row = 1",
        "def f():\n    column = cluster.table.requested['cpu']\n    column -= 1",
        "cluster.table.pods[row].sort()",
        "from fairlead.core.state.table import NodeTable\nself._table.alive[row] = False",
        "from fairlead.core.state.gangs import Gang\ngang.members.pop(uid)",
    ],
)
def test_a_change_is_found(text: str) -> None:
    assert list(_changes_in(ast.parse(text), _instances_in(text)))


@pytest.mark.parametrize(
    "text",
    [
        "cluster = Cluster()",
        "self._cluster = cluster",
        "cluster.vacate(pod, row)",
        "cluster.index(Network, Network).put(tree)",
        "cluster.table.static.touch(row)",
        "waiting = dict(cluster.pods)",
        "def f():\n    pods = list(cluster.pods.values())\n    pods.sort()",
        "def f():\n    free = cluster.table.allocatable['cpu'] - 1\n    free[row] = 0",
        "gang.spec = None",
    ],
)
def test_what_changes_no_state_is_not_found(text: str) -> None:
    assert not list(_changes_in(ast.parse(text), _instances_in(text)))


def _changes(source: Source) -> Iterator[tuple[int, str]]:
    names = {name for _, name in imported(source)}
    return _changes_in(source.tree, {called for made, called in RECORDS.items() if made in names})


def _instances_in(text: str) -> set[str]:
    return {called for made, called in RECORDS.items() if f"import {made}" in text}


def _changes_in(tree: ast.Module, instances: set[str]) -> Iterator[tuple[int, str]]:
    """Lines that change a Cluster, or an instance of a class of core/state, and what stands there."""
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    seen: set[int] = set()
    for scope in (*scopes, tree):
        parts = _Parts(scope, instances)
        for node in ast.walk(scope):
            if isinstance(node, ast.stmt | ast.expr) and id(node) not in seen and parts.are_changed_by(node):
                seen.add(id(node))
                yield node.lineno, ast.unparse(node)[:100]


class _Parts:
    """What belongs to a Cluster in one function: attributes of it, and local names for them."""

    def __init__(self, scope: ast.AST, instances: set[str]) -> None:
        self._instances = {"cluster", *instances}
        self._names: set[str] = set()
        before = -1
        while before < len(self._names):  # a name may stand for part of another
            before = len(self._names)
            for node in ast.walk(scope):
                for target, value in _bound(node):
                    if isinstance(target, ast.Name) and self._has(value):
                        self._names.add(target.id)

    def are_changed_by(self, node: ast.AST) -> bool:
        in_place = isinstance(node, ast.AugAssign)
        if any(self._has(target) and (in_place or not isinstance(target, ast.Name)) for target in _written(node)):
            return True
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            return self._is_instance(node.args[0])
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in CHANGING:
            return False
        return self._has(node.func.value)

    def _has(self, node: ast.expr) -> bool:
        """Whether an expression is a part of a Cluster: an attribute of it, or an item or attribute of a part."""
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Attribute):
            return self._is_instance(node.value) or self._has(node.value)
        if isinstance(node, ast.Subscript):
            return self._has(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING:
            return self._has(node.func.value)
        return False

    def _is_instance(self, node: ast.expr) -> bool:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        return name.lstrip("_") in self._instances


def _bound(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets of assignments and loops, each with what is bound to it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value
    elif isinstance(node, ast.NamedExpr):
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.comprehension):
        for target in node.target.elts if isinstance(node.target, ast.Tuple) else (node.target,):
            yield target, node.iter


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement writes to or deletes."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple | ast.List) else (target,)

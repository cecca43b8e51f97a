"""The text that makes a row: the function of `benchmarks` that yields it, and all of that package which it uses.

Two commits do the same work for a row only where this text is the same. Imports, module paths of fairlead, docstrings
and comments are no part of it, so that moving modules leaves it as it is. Neither are functions that the row does not
use, so that a new row beside it does too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = "benchmarks"
PRODUCT = "fairlead"
_PATH = re.compile(rf"{PRODUCT}(\.\w+)+(?P<member>:\w+)?")
_LOOSE = "module level"


def text_of_row(tree: Path, module: str, function: str) -> dict[str, list[str]]:
    """The normalised text of each definition that a bench uses, by name: of two modules where both define the name."""
    if function not in _read(tree / PACKAGE, module).definitions:
        raise LookupError(f"{tree}: {module} defines no {function}")
    texts: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(module, function)]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        source = _read(tree / PACKAGE, place[0])
        for statement in source.definitions.get(place[1], ()):
            waiting += _used(statement, place[0], source)
            if text := _normalised(statement):
                texts.setdefault(place[1], []).append(text)
        waiting.append((place[0], _LOOSE))
    return {name: sorted(found) for name, found in sorted(texts.items())}


def changes_between(base: dict[str, list[str]], here: dict[str, list[str]]) -> list[str]:
    """The names of definitions that are not the same in both texts."""
    return sorted(name for name in base.keys() | here.keys() if base.get(name) != here.get(name))


@dataclass(frozen=True, slots=True)
class _Source:
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    """Statements by the name that they define; those that define none are `_LOOSE`."""
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """What each imported name of the package is: a module, and a name in it or nothing."""


@cache
def _read(package: Path, module: str) -> _Source:
    source = _Source()
    tree = ast.parse((package / f"{module.removeprefix(PACKAGE + '.')}.py").read_text(encoding="utf-8"))
    for statement in tree.body:
        for name in _defined(statement):
            source.definitions.setdefault(name, []).append(statement)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None or node.module.split(".")[0] != PACKAGE:
            continue
        for alias in node.names:
            place = (f"{PACKAGE}.{alias.name}", "") if node.module == PACKAGE else (node.module, alias.name)
            source.imported[alias.asname or alias.name] = place
    return source


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Assign():
            names = [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            return names or [_LOOSE]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return [_LOOSE]


def _used(statement: ast.stmt, module: str, source: _Source) -> Iterator[tuple[str, str]]:
    """The definitions of the package that a statement mentions."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name) if name in source.definitions:
                yield module, name
            case ast.Name(id=name) if name in source.imported and source.imported[name][1]:
                yield source.imported[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in source.imported:
                if not source.imported[name][1]:
                    yield source.imported[name][0], attribute


def _normalised(statement: ast.stmt) -> str:
    module = ast.parse(ast.unparse(statement))  # a copy, which is changed
    _Plain().visit(module)
    return ast.unparse(ast.fix_missing_locations(module))


class _Plain(ast.NodeTransformer):
    """Removes imports, docstrings and where in fairlead something is."""

    def visit(self, node: ast.AST) -> ast.AST | None:
        """A node without them, or nothing where nothing is left of an `if`."""
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node):
            return None
        found: ast.AST | None = super().visit(node)
        if found is None or not hasattr(found, "body") or found.body != [] or isinstance(found, ast.Module):
            return found
        if isinstance(found, ast.If) and not found.orelse:
            return None
        found.body = [ast.Pass()]
        return found

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        path = _PATH.fullmatch(node.value) if isinstance(node.value, str) else None
        return ast.Constant(PRODUCT + (path["member"] or "")) if path else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        root: ast.AST = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id == PRODUCT:
            return ast.Name(node.attr, node.ctx)
        return self.generic_visit(node)


def _is_text(node: ast.AST) -> bool:
    """Whether this is a docstring, or a string after an attribute that serves as one."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

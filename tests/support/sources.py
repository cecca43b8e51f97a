"""The source files of the package, parsed once for all tests about them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import fairlead

ROOT = Path(fairlead.__file__).parent
CORE = ("model", "state", "framework", "engine", "plugins", "controllers")


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def in_core(self) -> bool:
        return self.path.relative_to(ROOT).parts[0] in CORE


@cache
def all_sources() -> tuple[Source, ...]:
    return tuple(_read(path) for path in sorted(ROOT.rglob("*.py")))


def _read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path, text, ast.parse(text))


@cache
def imported(source: Source) -> tuple[tuple[str, str], ...]:
    """(module, name) of every import, wherever it is written; the name is empty for a plain `import`."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
    return tuple(found)


def defined_names(source: Source) -> Iterator[tuple[str, int]]:
    """Modules, classes and functions with the lines where they begin."""
    yield source.path.stem, 1
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno

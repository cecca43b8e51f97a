"""The source files of the package, parsed once for all tests about them.

Every rule that looks at part of them says how many files it looked at least (`at_least`): a rule whose part was moved
away would otherwise hold because it looks at nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import fairlead

Item = TypeVar("Item")
ROOT = Path(fairlead.__file__).parent
DECIDES = ("core", "kube", "volcano", "koordinator", "gpu_share", "cluster/controllers", "cluster/kubelets")
"""What decides: synchronous, deterministic, written with NumPy and the standard library."""
READS_AND_SHOWS = (
    "kube/config/", "kube/extenders/", "kube/replay/",
    "volcano/config/", "volcano/replay/", "volcano/cli/", "volcano/vcctl/", "volcano/jobs/cli/",
    "volcano/explain/text.py", "volcano/jobs/installed_plugins.py", "volcano/jobs/ssh_keys.py", "volcano/metrics.py",
    "volcano/queues/command.py",
    "koordinator/config/", "koordinator/replay/", "koordinator/descheduling/command.py",
    "koordinator/descheduling/reading.py", "koordinator/descheduling/shapes.py", "koordinator/quotas/command.py",
    "gpu_share/factories.py",
)  # fmt: skip
"""Of the families, what reads files, prints, measures or runs commands: above what decides."""


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def decides(self) -> bool:
        return self.name.startswith(tuple(f"{part}/" for part in DECIDES)) and not self.name.startswith(READS_AND_SHOWS)


@cache
def all_sources() -> tuple[Source, ...]:
    return at_least(900, [_read(path) for path in sorted(ROOT.rglob("*.py"))])


@cache
def deciding_sources() -> tuple[Source, ...]:
    return at_least(450, [source for source in all_sources() if source.decides])


def at_least(count: int, found: Collection[Item]) -> tuple[Item, ...]:
    """What a rule looks at; fails if that is fewer files than the rule was made for."""
    assert len(found) >= count, f"the rule looked at {len(found)} files, at least {count} are expected"
    return tuple(found)


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

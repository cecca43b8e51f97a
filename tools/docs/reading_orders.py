"""Completes the reading orders of packages: the modules that the head of an `__init__` does not name by hand are listed
in its last paragraph. `make docs` runs it, and a test fails while a list is not complete.

Usage: python tools/docs/reading_orders.py
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "fairlead"
FURTHER, ALL = "Further modules", "Modules"
_WIDTH = 120


def packages() -> Iterator[Path]:
    """The `__init__` files of all packages."""
    return iter(sorted(ROOT.rglob("__init__.py")))


def modules_of(package: Path) -> list[str]:
    """The names of the modules and packages in a package."""
    found = [one.stem for one in package.parent.glob("*.py") if one != package]
    return sorted(found + [one.parent.name for one in package.parent.glob("*/__init__.py")])


def completed(head: str, modules: list[str]) -> str:
    """The docstring of a package with all of its modules: those that its text does not name are listed at the end."""
    text = re.sub(rf"\n\n({FURTHER}|{ALL}): [^.]*\.\Z", "", head.rstrip())
    left = [name for name in modules if not name.startswith("__") and not re.search(rf"(?<!\w){name}(?!\w)", text)]
    if not left:
        return text if "\n" not in text else f"{text}\n"
    word = FURTHER if "Reading order" in text else ALL
    listed = textwrap.fill(f"{word}: {', '.join(left)}.", _WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"{text}\n\n{listed}\n"


def written(package: Path) -> str:
    """The source of a package with its reading order completed."""
    source = package.read_text(encoding="utf-8")
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.Expr), f"{package} begins with a docstring"
    assert isinstance(node.value, ast.Constant)
    head = completed(str(node.value.value), modules_of(package))
    rest = source.splitlines(keepends=True)[node.end_lineno or 1 :]
    return f'"""{head}"""\n' + "".join(rest)


def main() -> None:
    for package in packages():
        package.write_text(written(package), encoding="utf-8")


if __name__ == "__main__":
    main()

"""docs/plugin-points.md has every method of a plugin with the signature that it has."""

from __future__ import annotations

import ast
from pathlib import Path

from fairlead.core.framework import plugin

PAGE = Path(__file__).parents[4] / "docs" / "plugin-points.md"


def signatures() -> list[str]:
    tree = ast.parse(Path(plugin.__file__).read_text())
    cls = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Plugin")
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    assert len(methods) > 20
    return [
        f"`{method.name}({ast.unparse(method.args).removeprefix('self').removeprefix(', ')}) -> "
        f"{ast.unparse(method.returns) if method.returns else ''}`"
        for method in methods
    ]


def test_the_page_has_every_method_with_its_signature() -> None:
    page = PAGE.read_text().replace("\\|", "|")
    assert [signature for signature in signatures() if signature not in page] == []

"""Every notebook of the examples gives what is stored in it, and uses public names only."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
PUBLIC = ("fairlead", "fairlead.lab", "fairlead.testing")


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def shown(notebook: Any) -> list[tuple[str, str]]:
    """What each output of a notebook shows: tables and words as they are, and that there is a picture."""
    found = []
    for output in (one for cell in notebook.cells for one in cell.get("outputs", ())):
        data = output.get("data", {})
        found += [("picture", "") for kind in data if kind == "image/png"]
        found += [(kind, "".join(data[kind])) for kind in ("text/html",) if kind in data]
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_again_what_is_stored_in_it(path: Path) -> None:
    stored = shown(read(path))
    assert {kind for kind, _ in stored} == {"picture", "text/html"}
    notebook = read(path)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert shown(notebook) == stored


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_uses_public_names_only(path: Path) -> None:
    code = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "code")
    imported = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.ImportFrom)]
    ours = [one for one in imported if (one.module or "").startswith("fairlead")]
    assert ours
    for one in ours:
        assert one.module in PUBLIC
        public = {*import_module(str(one.module)).__all__, *(["lab", "testing"] if one.module == "fairlead" else [])}
        assert {name.name for name in one.names} <= public
    lab = import_module("fairlead.lab")
    used = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Attribute)]
    assert {one.attr for one in used if isinstance(one.value, ast.Name) and one.value.id == "lab"} <= set(lab.__all__)

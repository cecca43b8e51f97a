"""Families are listed by name, built-in ones first; a distribution adds its own by an entry point."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fairlead.builtin_families import BUILT_IN, named_families
from fairlead.core.family import Family, families, resolve


def test_built_in_families_are_listed_in_order() -> None:
    assert [one.name for one in families()][:4] == ["kube", "volcano", "koordinator", "gpu_share"]


def test_an_entry_point_adds_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "own-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[fairlead.families]\nown = own_family:FAMILY\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert named_families() == (*BUILT_IN, "own_family:FAMILY")


def test_metadata_of_distributions_is_not_read_if_none_has_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "importlib.metadata", None)
    assert named_families() == BUILT_IN


def test_a_target_is_imported_when_it_is_resolved() -> None:
    assert resolve("fairlead.core.family:Family") is Family


def _targets(value: Any) -> Iterator[str]:
    """Every "module:name" in a record."""
    if isinstance(value, str):
        if value.startswith("fairlead.") and ":" in value:
            yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _targets(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _targets(one)


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_all_that_a_record_names_exists(family: Family) -> None:
    targets = [target for value in family for target in _targets(value)]
    assert len(targets) >= 7
    assert all(resolve(target) is not None for target in targets)


@pytest.mark.parametrize("target", BUILT_IN)
def test_a_record_imports_only_what_makes_records(target: str) -> None:
    """`fairlead --help` reads all records."""
    package = target.split(".")[1]
    spec = importlib.util.find_spec(target.partition(":")[0])
    assert spec is not None
    tree = ast.parse(Path(str(spec.origin)).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {"__future__", "collections.abc", "fairlead.core.family", f"fairlead.{package}.gates"}
    assert "fairlead.core.family" in imported
    assert imported <= allowed
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]

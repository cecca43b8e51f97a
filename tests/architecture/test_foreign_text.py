"""Text that somebody else writes is read in one place for each language, where its cost is bounded."""

from __future__ import annotations

import ast

from tests.support.sources import all_sources, imported

YAML_READERS = {"config/yaml_text.py"}
_READS_YAML = {
    "load",
    "load_all",
    "safe_load",
    "safe_load_all",
    "full_load",
    "unsafe_load",
    "compose",
    "compose_all",
    "parse",
}


def test_yaml_is_read_in_one_place() -> None:
    """Another loader would have no limit of depth, and another idea of numbers."""
    found = {
        source.name
        for source in all_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "yaml"
        and node.func.attr in _READS_YAML
    }
    assert found == YAML_READERS


PATTERN_CALLS = frozenset({"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split"})


def test_a_pattern_from_outside_is_matched_in_linear_time() -> None:
    """Python's `re` backtracks: a pattern that somebody else writes goes through fairlead.cel.patterns. Inside a
    function `re` therefore gets nothing but literal patterns."""
    found = [
        f"{source.name}:{node.lineno}"
        for source in all_sources()
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in PATTERN_CALLS
        and not isinstance(node.args[0], ast.Constant)
    ]
    assert not found


def test_nobody_but_the_module_of_patterns_imports_re2() -> None:
    users = {source.name for source in all_sources() if any(module == "re2" for module, _ in imported(source))}
    assert users == {"cel/patterns.py"}

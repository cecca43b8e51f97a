"""Directories of a family form no import cycle, so that each can be read after those that it imports.

A directory is a direct subpackage of the family: what lies deeper belongs to it. A module that lies beside the
directories counts as one of its own. Imports for type checkers count like any other, because whoever reads follows them
all the same.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairlead.core.family import families
from tests.support.sources import Source, all_sources, at_least, imported

FAMILIES = {"kube": 95, "koordinator": 100, "volcano": 195}
"""Each with how many files of it the rule looks at, at least."""
APART = {"volcano/controller_settings.py"}
"""Modules that take part in no cycle but for type checkers: settings name the types of their subjects' fields."""
Graph = dict[str, dict[str, set[str]]]


def files_of(family: str) -> tuple[Source, ...]:
    return at_least(FAMILIES[family], [one for one in all_sources() if one.name.startswith(f"{family}/")])


def imports_between(family: str, sources: tuple[Source, ...]) -> Graph:
    """For each directory the other directories of the family that it imports, with the modules that do."""
    own = {source.name.removeprefix(f"{family}/").partition("/")[0].removesuffix(".py") for source in sources}
    graph: Graph = {}
    for source in sources:
        here = source.name.removeprefix(f"{family}/").partition("/")[0].removesuffix(".py")
        for module, name in imported(source):
            there = f"{module}.{name}.".partition(f"fairlead.{family}.")[2].partition(".")[0]
            if there in own and there != here and source.name not in APART:
                graph.setdefault(here, {}).setdefault(there, set()).add(source.name)
    return graph


def cycle_in(graph: Graph) -> list[str]:
    """Directories each of which imports the next, the first one again at the end; empty if there is no cycle."""
    done: set[str] = set()

    def walk(path: list[str]) -> list[str]:
        for there in sorted(graph.get(path[-1], ())):
            if there in path:
                return [*path[path.index(there) :], there]
            if there not in done and (found := walk([*path, there])):
                return found
        done.add(path[-1])
        return []

    return next((found for start in sorted(graph) if start not in done and (found := walk([start]))), [])


def test_a_cycle_is_found() -> None:
    graph: Graph = {"a": {"b": {"a/x.py"}}, "b": {"c": {"b/x.py"}}, "c": {"b": {"c/x.py"}}}
    assert cycle_in(graph) == ["b", "c", "b"]
    del graph["c"]
    assert cycle_in(graph) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_directories_of_a_family_form_no_import_cycle(family: str) -> None:
    graph = imports_between(family, files_of(family))
    assert graph, "no directory imports another one: the rule looked at nothing"
    cycle = cycle_in(graph)
    steps = pairwise(cycle)
    assert not cycle, [f"{here} -> {there}: {', '.join(sorted(graph[here][there]))}" for here, there in steps]


def test_a_family_imports_only_those_that_it_extends() -> None:
    known = {one.name for one in families()}
    sources = at_least(400, [one for one in all_sources() if one.name.partition("/")[0] in known])
    extended = {one.name: {one.name, *one.extends} for one in families()}
    found = {
        f"{source.name}: {module}"
        for source in sources
        for module, name in imported(source)
        for there in [f"{module}.{name}.".partition("fairlead.")[2].partition(".")[0]]
        if there in known and there not in extended[source.name.partition("/")[0]]
    }
    assert not found


def test_a_family_comes_after_those_that_it_extends() -> None:
    names = [one.name for one in families()]
    assert all(names.index(other) < names.index(one.name) for one in families() for other in one.extends)
    assert {one.name: one.extends for one in families()}["volcano"] == ("kube",)


@pytest.mark.parametrize("family", ["koordinator", "volcano"])
def test_records_of_a_family_lie_below_its_subjects(family: str) -> None:
    graph = imports_between(family, files_of(family))
    assert graph.get("records", {}).keys() <= {"kinds"}
    assert sum("records" in there for there in graph.values()) >= 8

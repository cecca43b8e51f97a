"""Nobody reaches into a collaborator: in the core, an object's attributes are set by its own class.

An attribute that somebody else sets after an object was made is a knot: its class does not show what it depends on, nor
when that is there. Parts get what they need when they are made, or as arguments; what several share is made first.
Records are the exception, because to be filled in is what they are for: a class is declared one as a dataclass that is
not frozen. Whoever defines a class in a module may set its attributes there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache

from tests.support.sources import Source, all_sources, at_least

_OWN = ("self", "cls")


@dataclass(frozen=True, slots=True)
class Assignment:
    """`holder.attribute = ...`, where the holder is not `self`."""

    where: str
    holder: ast.expr
    attribute: str
    annotated: str
    """The class that the function's signature gives the holder; empty if it gives none."""


def test_an_assignment_to_an_attribute_is_found() -> None:
    tree = ast.parse(
        "class A:\n"
        "    def f(self, entry: Entry, other: B | None) -> None:\n"
        "        self.x = entry.pod = 1\n"
        "        self.part.meter = 2\n"
        "        other.count += 1\n"
        "        a, (self.y, self.part.gangs) = 3, (4, 5)\n"
    )
    found = {(ast.unparse(one.holder), one.attribute, one.annotated) for one in assignments(tree, "a.py")}
    assert found == {
        ("entry", "pod", "Entry"),
        ("self.part", "meter", ""),
        ("other", "count", "B"),
        ("self.part", "gangs", ""),
    }


def test_a_collaborator_is_not_taken_for_a_record() -> None:
    classes = {"RoundDriver": {"meter"}, "Cycle": {"meter"}, "Entry": {"pod"}}

    def passes(holder: str, attribute: str, *, annotated: str = "", own: Set[str] = frozenset()) -> bool:
        one = Assignment("", ast.parse(holder, mode="eval").body, attribute, annotated)
        return is_of({"Cycle", "Entry"}, own, one, classes)

    assert passes("cycle", "meter")
    assert passes("entry", "pod")
    assert passes("twin", "meter", annotated="Cycle")
    assert not passes("driver", "meter")
    assert not passes("one", "meter"), "nothing says that it is a Cycle"
    assert passes("one", "meter", own={"Cycle"}), "whoever defines a record may fill it in"
    assert not passes("twin", "meter", annotated="RoundDriver")
    assert not passes("self.entry", "pod"), "what an object holds is a collaborator"


def test_a_dataclass_that_is_not_frozen_is_a_record() -> None:
    tree = ast.parse(
        "@dataclass\nclass A: ...\n"
        "@dataclass(slots=True)\nclass B: ...\n"
        "@dataclass(frozen=True)\nclass C: ...\n"
        "class D: ...\n"
        "@record(frozen=True)\nclass E: ...\n"
    )
    assert set(records_of(tree)) == {"A", "B"}


def test_nobody_sets_an_attribute_of_a_collaborator() -> None:
    records = {name for source in core_sources() for name in records_of(source.tree)}
    assert {"Cycle", "Entry", "PodState"} <= records
    assert not knots(records)


def test_the_rule_sees_that_records_are_filled_in_by_others() -> None:
    assert len(knots(set())) >= 50


def knots(records: Set[str]) -> list[str]:
    """The places where an attribute of anything but a record is set by another class than its own."""
    sources = core_sources()
    classes = {name: names for source in sources for name, names in classes_of(source)}
    found = []
    for source in sources:
        own = {name for name, _ in classes_of(source)}
        for one in assignments(source.tree, source.name):
            if not is_of(records, own, one, classes):
                found.append(f"{one.where}: {ast.unparse(one.holder)}.{one.attribute}")
    return found


@cache
def core_sources() -> tuple[Source, ...]:
    parts = ("core/engine/", "core/state/", "core/framework/", "core/model/")
    return at_least(150, [source for source in all_sources() if source.name.startswith(parts)])


def is_of(records: Set[str], own: Set[str], one: Assignment, classes: Mapping[str, Set[str]]) -> bool:
    """Whether the holder is of one of the records, or of a class of the module's own: by its annotation, or because it
    is called like one that has the attribute; if it is called like no class, one of the module's own must have it. What
    an object holds as its own attribute is none of them."""
    if not isinstance(one.holder, ast.Name):
        return False
    if one.annotated:
        return one.annotated in records | own
    having = {name for name, names in classes.items() if one.attribute in names}
    called = {name for name in having if one.holder.id in _words(name)}
    return bool(called & (records | own) if called else having & own)


def records_of(tree: ast.Module) -> Iterator[str]:
    """The dataclasses of a module that are not frozen."""
    for node in ast.walk(tree):
        for mark in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            call = mark if isinstance(mark, ast.Call) else ast.Call(mark, [], [])
            frozen = any(word.arg == "frozen" and ast.unparse(word.value) == "True" for word in call.keywords)
            if ast.unparse(call.func) == "dataclass" and not frozen:
                yield node.name


def assignments(tree: ast.AST, name: str) -> Iterator[Assignment]:
    """The assignments to attributes of anything but `self`, with what the signature of their function says."""
    yield from _assignments(tree, name, {})


def _assignments(node: ast.AST, name: str, annotated: dict[str, str]) -> Iterator[Assignment]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        annotated = annotated | {one.arg: _class_in(one.annotation) for one in arguments if one.annotation is not None}
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in (flat for one in targets for flat in _flat(one)):
        if isinstance(target, ast.Attribute) and not (isinstance(target.value, ast.Name) and target.value.id in _OWN):
            known = annotated.get(target.value.id, "") if isinstance(target.value, ast.Name) else ""
            yield Assignment(f"{name}:{target.lineno}", target.value, target.attr, known)
    for child in ast.iter_child_nodes(node):
        yield from _assignments(child, name, annotated)


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _flat(element)
    else:
        yield target


def _class_in(annotation: ast.expr) -> str:
    """`Entry` of `Entry`, `Entry | None` and `"Entry"`; empty for anything else."""
    found = re.fullmatch(r"'?(\w+)'?( \| None)?", ast.unparse(annotation))
    return "" if found is None else found[1]


def _words(name: str) -> set[str]:
    """The names that a variable of a class has in this code: `pod_state`, and each of its words."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", name)]
    return {*words, "_".join(words)}


def classes_of(source: Source) -> Iterator[tuple[str, set[str]]]:
    """The classes of a module with the attributes that they declare, or set themselves."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            declared = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            stored = [
                one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
            ]
            names = {one.id for one in declared if isinstance(one, ast.Name)}
            names |= {one.attr for one in stored if isinstance(one.value, ast.Name) and one.value.id in _OWN}
            yield node.name, names

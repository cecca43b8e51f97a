"""Reading orders: the head of every package names all of its modules, those to begin with by hand and in order."""

from __future__ import annotations

from tools.docs import reading_orders as orders

from tests.support.sources import at_least


def test_a_module_that_is_not_named_is_listed() -> None:
    head = "A package.\n\nReading order: first, then `second`.\n"
    assert orders.completed(head, ["first", "second"]) == head
    listed = orders.completed(head, ["a_first", "first", "second", "third"])
    assert listed == head + "\nFurther modules: a_first, third.\n"
    assert orders.completed(listed, ["first", "second", "third"]) == head + "\nFurther modules: third.\n"
    assert orders.completed("A package.", []) == "A package."
    assert orders.completed("A package.", ["one"]) == "A package.\n\nModules: one.\n"


def test_every_package_names_its_modules() -> None:
    packages = at_least(80, [*orders.packages()])
    stale = [str(one.parent) for one in packages if orders.written(one) != one.read_text(encoding="utf-8")]
    assert not stale, "run tools/docs/reading_orders.py"

"""What keeps the code readable: names that say something, and a docstring in every module."""

from __future__ import annotations

import ast
import re

import fairlead
from tests.support.sources import all_sources, at_least, defined_names

EMPTY_WORDS = {"manager", "helper", "helpers", "util", "utils", "info", "infos", "impl", "base"}


def words(name: str) -> set[str]:
    """`NodeInfoImpl` and `node_info_impl` alike."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*", name)}


def test_words_of_a_name_are_distinguished() -> None:
    assert words("NodeInfoImpl") == {"node", "info", "impl"}
    assert words("_parse_HTTPBase") == {"parse", "http", "base"}
    assert words("base64_information") == {"base64", "information"}


def test_no_name_says_nothing() -> None:
    found = {
        f"{source.name}:{line}: {name}"
        for source in all_sources()
        for name, line in defined_names(source)
        if words(name) & EMPTY_WORDS
    }
    assert not found


def test_every_module_says_what_it_is_for() -> None:
    silent = [source.name for source in all_sources() if source.text.strip() and not ast.get_docstring(source.tree)]
    assert not silent


def test_every_package_says_what_to_read_first() -> None:
    packages = at_least(80, [source for source in all_sources() if source.path.name == "__init__.py"])
    assert not [source.name for source in packages if not ast.get_docstring(source.tree)]


def test_nothing_is_left_for_later_without_being_said() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [source.name for source in all_sources() if marks.search(source.text)]
    assert not found


def test_the_package_knows_its_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", fairlead.__version__)

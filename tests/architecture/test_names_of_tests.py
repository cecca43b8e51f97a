"""Tests are named after what they show.

A name that begins with the number of a section sends the reader to a text that is not in the repository.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.sources import at_least

TESTS = Path(__file__).parents[1]
NUMBERED = re.compile(r"def (test_(?:section_\d|\d+_\d+_)\w*|test_\w+_section_\d\w*)|[Ss]ections? \d|\N{SECTION SIGN}")


def test_numbered_sections_are_recognised() -> None:
    assert all(NUMBERED.search(text) for text in ("def test_section_2_7_a_pod", "def test_14_17_a_pod", "section 2.7"))
    assert not NUMBERED.search("def test_a_policy_has_the_defaults_of_1_22")


def test_no_test_speaks_of_sections_of_another_text() -> None:
    files = at_least(430, [path for path in TESTS.rglob("*.py") if path != Path(__file__)])
    found = [str(path.relative_to(TESTS)) for path in files if NUMBERED.search(path.read_text(encoding="utf-8"))]
    assert not found

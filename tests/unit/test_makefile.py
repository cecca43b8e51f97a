"""Targets of the Makefile that take a word: every word that is built for can be chosen, and no other."""

from __future__ import annotations

import re
from pathlib import Path

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")


def test_every_kind_of_fuzzing_can_be_chosen() -> None:
    (chosen,) = re.findall(r"^FUZZ_CHOICES := (.+)$", MAKEFILE, re.MULTILINE)
    built = {*re.findall(r"\(\$\(WHAT\),(\w+)\)", MAKEFILE), *re.findall(r"^FUZZ_([a-z]+) :=", MAKEFILE, re.MULTILINE)}
    assert set(chosen.split()) == built

"""Regular expressions of users: the verdicts, matches and complaints of Go's package, in linear time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.cel.patterns import BadPattern, pattern, pattern_fault

DATA = Path(__file__).parent / "data"
TEXTS = json.loads((DATA / "patterns.json").read_text())["texts"]
GO = [json.loads(line) for line in (DATA / "patterns-go.jsonl").read_text().splitlines()]
"""What `go run ./tools/patterns` printed with Go 1.26."""


@pytest.mark.parametrize("go", GO, ids=lambda go: go["pattern"])
def test_a_pattern_means_what_it_means_to_go(go: dict[str, Any]) -> None:
    assert pattern_fault(go["pattern"]) == go.get("error", "")
    if "error" not in go:
        compiled = pattern(go["pattern"])
        assert [compiled.matches(text) for text in TEXTS] == go["matches"]
        assert [compiled.find(text) for text in TEXTS] == go["found"]


def test_the_recordings_hold_what_is_refused_too() -> None:
    assert (len(GO), sum("error" in go for go in GO)) == (115, 46)


def test_a_hostile_pattern_ends() -> None:
    """With backtracking this took longer than the universe is old."""
    for text in ("^(a+)+$", "(a|aa)+$", "(a*)*b", "([a-z]+)*[0-9]"):
        assert not pattern(text).matches("a" * 50_000 + "!")


def test_all_matches_are_found_up_to_a_limit() -> None:
    compiled = pattern("[0-9]+")
    assert compiled.find_all("a1b22c333") == ["1", "22", "333"]
    assert compiled.find_all("a1b22c333", 2) == ["1", "22"]
    assert compiled.find_all("a1b22c333", 0) == []
    assert pattern("").find_all("ab") == ["", "", ""]


def test_a_lone_surrogate_is_a_character_like_another() -> None:
    assert pattern("^a.b$").matches("a\ud800b")
    with pytest.raises(BadPattern, match="missing closing"):
        pattern("[\ud800")

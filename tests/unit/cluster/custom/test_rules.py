"""Rules of definitions, held to what a real API server of Kubernetes 1.36 said of them (tools/cel)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.cluster.admission.problems import ValidationProblems
from fairlead.cluster.custom.definitions import check_definition, default_definition
from fairlead.cluster.custom.rules import check_defined
from fairlead.core.model.kinds import Definition, Kind
from tests.support.real.rule_answers import GROUP, definition, object_of, schema_of, tidied, unpacked

Doc = dict[str, Any]
ANSWERS = unpacked((Path(__file__).parent / "data" / "rules.jsonl").read_text().splitlines())
_SYNTAX = "Syntax error"
_PANIC = "internal error: interface conversion"
"""The original trips over an error that is handed to some functions of lists."""


def refusal(row: Doc) -> list[list[str]]:
    problems = ValidationProblems()
    check_definition(problems, default_definition(definition(schema_of(row))))
    return causes(problems)


def verdict(row: Doc, kind: Kind, value: Any, old: Any) -> list[list[str]]:
    problems = ValidationProblems()
    check_defined(problems, kind, object_of(row, value), None if old is None else object_of(row, old))
    return causes(problems)


def causes(problems: ValidationProblems) -> list[list[str]]:
    return tidied([[reason, field, message] for reason, field, message in problems.found])


def kind_of(row: Doc) -> Kind:
    made = Definition(f"tests.{GROUP}", schema_of(row))
    return Kind(GROUP, "v1", "Tests", "tests", namespaced=False, definition=made)


def in_our_words(cause: list[str]) -> list[str]:
    """What is no expression at all is refused at the same place, and described in words of our own."""
    reason, field, message = cause
    return [reason, field, _SYNTAX if _SYNTAX in message else message]


REFUSED = [row for row in ANSWERS if "refused" in row]
ACCEPTED = [row for row in ANSWERS if "verdicts" in row]


def test_there_are_enough_rules() -> None:
    assert len(ANSWERS) >= 400
    assert len(REFUSED) >= 60
    assert sum(bool(causes) for row in ACCEPTED for causes in row["verdicts"]) >= 100


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["rule"].get("rule") or "empty")
def test_what_the_api_server_refuses_is_refused_in_its_words(row: Doc) -> None:
    assert list(map(in_our_words, refusal(row))) == list(map(in_our_words, row["refused"]))


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: row["rule"].get("rule") or "empty")
def test_what_the_api_server_accepts_says_of_objects_what_it_says_there(row: Doc) -> None:
    assert refusal(row) == []
    kind = kind_of(row)
    for (value, old), expected in zip(row["values"], row["verdicts"], strict=True):
        found = verdict(row, kind, value, old)
        if _PANIC in str(expected):
            assert len(found) == len(expected)
        else:
            assert found == expected

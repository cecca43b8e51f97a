"""Every kept behaviour of Volcano is a field, a row of the document, and read by some code."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from tools.docs.parity_tables import DOCUMENT, with_tables

import fairlead
from fairlead.volcano.records.quirks import FIXED, ORIGINAL, Quirks


def test_one_constant_has_all_of_them_and_one_has_none() -> None:
    assert {getattr(ORIGINAL, one.name) for one in fields(Quirks)} == {True}
    assert {getattr(FIXED, one.name) for one in fields(Quirks)} == {False}
    assert (Quirks.of(compatible=True), Quirks.of(compatible=False)) == (ORIGINAL, FIXED)


def test_the_document_has_the_tables_that_the_fields_make() -> None:
    text = DOCUMENT.read_text()
    assert with_tables(text) == text, "run `make docs`"


def test_every_field_is_a_row_of_the_document() -> None:
    text = DOCUMENT.read_text()
    assert [one.name for one in fields(Quirks) if f"| `{one.name}` |" not in text] == []


def test_a_section_without_a_place_in_the_document_is_an_error() -> None:
    with pytest.raises(ValueError, match="<!-- quirks: Configuration -->"):
        with_tables(DOCUMENT.read_text().replace("<!-- quirks: Configuration -->", ""))


def test_every_field_is_read_by_some_code() -> None:
    root = Path(fairlead.__file__).parent
    read = "\n".join(path.read_text() for path in root.rglob("*.py") if path.name != "quirks.py")
    assert [one.name for one in fields(Quirks) if f"quirks.{one.name}" not in read] == []

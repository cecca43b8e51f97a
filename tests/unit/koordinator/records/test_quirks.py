"""Every kept behaviour of Koordinator is a field, a row of the document, and read by some code."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from tools.docs.parity_tables import KOORDINATOR_DOCUMENT, with_tables

import fairlead
from fairlead.koordinator.records.quirks import KOORDINATOR_FIXED, KOORDINATOR_ORIGINAL, KoordinatorQuirks


def test_one_constant_keeps_all_of_koordinator_and_one_nothing() -> None:
    assert {getattr(KOORDINATOR_ORIGINAL, one.name) for one in fields(KoordinatorQuirks)} == {True}
    assert {getattr(KOORDINATOR_FIXED, one.name) for one in fields(KoordinatorQuirks)} == {False}


def test_the_koordinator_document_has_the_tables_that_the_fields_make() -> None:
    text = KOORDINATOR_DOCUMENT.read_text()
    assert with_tables(text, KoordinatorQuirks, KOORDINATOR_DOCUMENT.name) == text, "run `make docs`"


def test_every_field_of_koordinator_is_read_by_some_code() -> None:
    root = Path(fairlead.__file__).parent
    read = "\n".join(path.read_text() for path in root.rglob("*.py") if path.name != "quirks.py")
    assert [one.name for one in fields(KoordinatorQuirks) if f"quirks.{one.name}" not in read] == []

"""Write the tables of the parity documents from the fields of Quirks: `make docs`, or with --check only compare.

A table stands between the lines `<!-- quirks: SECTION -->` and `<!-- end of quirks -->`. What is outside them is
written by hand and left alone.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairlead.koordinator.records.quirks import KoordinatorQuirks
from fairlead.volcano.records.quirks import Quirks, parity_table

_DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = _DOCS / "volcano-parity.md"
KOORDINATOR_DOCUMENT = _DOCS / "koordinator-parity.md"
_TABLE = re.compile(r"(<!-- quirks: (\w+(?: \w+)*) -->\n).*?(<!-- end of quirks -->)", re.DOTALL)


def with_tables(text: str, of: type[Any] = Quirks, name: str = DOCUMENT.name) -> str:
    """The document with its tables made anew. Raises ValueError if a section of the fields has no place in it."""
    sections = {one.metadata["section"] for one in fields(of)}
    places = [place[2] for place in _TABLE.finditer(text)]
    if missing := sections.difference(places):
        raise ValueError(f"docs/{name} has no line <!-- quirks: {min(missing)} -->; add one and its end")
    return _TABLE.sub(lambda place: place[1] + parity_table(place[2], of) + place[3], text)


if __name__ == "__main__":
    for document, quirks in ((DOCUMENT, Quirks), (KOORDINATOR_DOCUMENT, KoordinatorQuirks)):
        before = document.read_text()
        after = with_tables(before, quirks, document.name)
        if "--check" in sys.argv and before != after:
            sys.exit(f"docs/{document.name} differs from the fields of {quirks.__name__}: run `make docs`")
        document.write_text(after)

"""Write the tables of docs/volcano-parity.md from the fields of Quirks: `make docs`, or with --check only compare.

A table stands between the lines `<!-- quirks: SECTION -->` and `<!-- end of quirks -->`. What is outside them is
written by hand and left alone.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path

from fairlead.model.quirks import Quirks, parity_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "volcano-parity.md"
_TABLE = re.compile(r"(<!-- quirks: (\w+(?: \w+)*) -->\n).*?(<!-- end of quirks -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """The document with its tables made anew. Raises ValueError if a section of Quirks has no place in it."""
    sections = {one.metadata["section"] for one in fields(Quirks)}
    places = [place[2] for place in _TABLE.finditer(text)]
    if missing := sections.difference(places):
        raise ValueError(f"docs/volcano-parity.md has no line <!-- quirks: {min(missing)} -->; add one and its end")
    return _TABLE.sub(lambda place: place[1] + parity_table(place[2]) + place[3], text)


if __name__ == "__main__":
    before = DOCUMENT.read_text()
    after = with_tables(before)
    if "--check" in sys.argv and before != after:
        sys.exit("docs/volcano-parity.md differs from the fields of Quirks: run `make docs`")
    DOCUMENT.write_text(after)

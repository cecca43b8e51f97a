"""What commands print for people goes through one console (console/terminal.py): it reads nothing as markup."""

from __future__ import annotations

import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "fairlead"
_STANDARD_OUTPUT = re.compile(r"\bConsole\((?!stderr=True)")


def test_nothing_that_is_printed_is_read_as_markup() -> None:
    files = [file for file in SOURCES.rglob("*.py") if "rich" in file.read_text()]
    assert len(files) > 10
    own = {SOURCES / "console" / "terminal.py"}
    assert not [file for file in files if "rich.markup" in file.read_text()]
    assert not [file for file in files if file not in own and _STANDARD_OUTPUT.search(file.read_text())]

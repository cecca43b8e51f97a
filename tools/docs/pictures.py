"""Draw the pictures of README: `make pictures`.

`demo.svg` is what the last two scenes of `make demo` print; `queues.png` is a figure of the report of
examples/teams.yaml. Both are computed on virtual time, so they change only when the program does.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from fairlead.cli.demo.gang import show_gang
from fairlead.cli.demo.queues import show_queues

REPOSITORY = Path(__file__).parents[2]
PICTURES = REPOSITORY / "docs" / "pictures"
COLUMNS = 96
_WEB_FONT = re.compile(r"@font-face \{.*?\}\n\s*", re.DOTALL)
"""Rich names a font of another host; nothing of ours is loaded from there."""


def draw_demo() -> None:
    """Write the gang and the two queues as a terminal shows them."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    show_gang(console)
    console.print()
    show_queues(console)
    drawn = console.export_svg(title="make demo", theme=MONOKAI, unique_id="demo")
    (PICTURES / "demo.svg").write_text(_WEB_FONT.sub("", drawn), encoding="utf-8")


def draw_queues() -> None:
    """Write the GPUs in use by queue, of the first seed with the Volcano profile."""
    with tempfile.TemporaryDirectory() as directory:
        results, report = Path(directory) / "results", Path(directory) / "report"
        scenario = REPOSITORY / "examples" / "teams.yaml"
        for words in (["experiment", scenario, "--out", results], ["report", results, "--out", report]):
            subprocess.run([sys.executable, "-m", "fairlead", "lab", *map(str, words)], check=True)
        shutil.copy(report / "queues-volcano.png", PICTURES / "queues.png")


if __name__ == "__main__":
    draw_demo()
    draw_queues()

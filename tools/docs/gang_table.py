"""Write the table of docs/laboratory.md about two jobs that wait for each other: `make docs`.

Its figures are those of the runs of examples/two-jobs.yaml. The table stands between the lines `<!-- two jobs -->` and
`<!-- end of two jobs -->`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead import lab

if TYPE_CHECKING:
    from fairlead.lab.results.loading import LabResults

_ROOT = Path(__file__).parents[2]
DOCUMENT = _ROOT / "docs" / "laboratory.md"
SCENARIO = _ROOT / "examples" / "two-jobs.yaml"
_TABLE = re.compile(r"(<!-- two jobs -->\n).*?(<!-- end of two jobs -->)", re.DOTALL)


def table_of(results: LabResults) -> str:
    """A row for each run: how many jobs ended, when the last one did, and the GPU hours that waiting pods held."""
    lines = ["| scheduler | the scheduler knows of gangs | jobs ended | last end | GPU hours lost | deadlock |"]
    lines.append("|---|---|---|---|---|---|")
    for run in results.runs.fillna(0).to_dict("records"):
        jobs = results.jobs[(results.jobs["policy"] == run["policy"]) & (results.jobs["load"] == run["load"])]
        ended = int(jobs["ended"].notna().sum())
        last = f"{run['makespan']:.0f} s" if ended else "never"
        stuck = " and ".join(one["job"] for one in run.get("deadlock") or ()) or "none"
        lost = run.get("waiting_gpu_hours", 0.0)
        gangs = "yes" if run["load"] == "gangs" else "no"
        lines.append(f"| {run['policy']} | {gangs} | {ended} of {len(jobs)} | {last} | {lost:.2f} | {stuck} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, results: LabResults) -> str:
    """The document with its table made anew."""
    if not _TABLE.search(text):
        raise ValueError(f"docs/{DOCUMENT.name} has no line <!-- two jobs -->; add one and its end")
    return _TABLE.sub(lambda place: place[1] + "\n" + table_of(results) + "\n" + place[2], text)


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(), lab.experiment(SCENARIO)))

"""write_report: one HTML file with all figures and tables, and beside it a PNG, an SVG, a PDF and a CSV of each figure.

The page begins with what is better and by how much. Runs that are missing, and seeds that all had the same jobs, are
named before any number that they make less certain.

The HTML file needs no server and no other file: figures are inline SVG, and colours follow the reader's light or dark.
"""

from __future__ import annotations

import csv
from html import escape
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.lab.report.drawing import DARK, FAINT, GRID, LIGHT, PAPER, write_pictures
from fairlead.lab.report.figures import LabFigure, figures_of
from fairlead.lab.report.gang_waits import sentences_of
from fairlead.lab.report.metrics import metrics, paired, summary, unit_of
from fairlead.lab.report.sentences import sentences
from fairlead.lab.results.loading import missing_runs

if TYPE_CHECKING:
    import pandas as pd

    from fairlead.lab.results.loading import LabResults

_STYLE = """
:root { color-scheme: light dark; --text: #1c2126; LIGHT }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --faint: #9aa4ae; --grid: #323940; --page: #15191d; DARK } }
body { background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 820px;
  margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .3rem; }
svg { width: 100%; height: auto; margin-top: 1.6rem; stroke-linejoin: round; }
.note { color: var(--faint); font-size: .86rem; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; display: block; overflow-x: auto; }
td, th { text-align: right; padding: .18rem .6rem; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
"""


def write_report(results: LabResults, out: str | Path) -> Path:
    """Write the report of a run or an experiment into the directory `out`; returns the HTML file."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    figures = figures_of(results)
    measured = metrics(results)
    for figure in figures:
        _write_csv(figure, out / f"{figure.name}.csv")
    measured.to_csv(out / "metrics.csv", index=False)
    name = str(results.runs["scenario"].iloc[0])
    parts = [f"<h1>{escape(name)}</h1>", _overview(results, measured), _tables(results, measured)]
    parts += [write_pictures(one, out) for one in figures]
    file = out / "report.html"
    file.write_text(_page(name, "\n".join(parts)), encoding="utf-8")
    return file


def results_html(results: LabResults) -> str:
    """What a notebook shows of results: the beginning of the report."""
    measured = metrics(results)
    return _overview(results, measured) + _summary(summary(measured))


def _baseline(results: LabResults) -> str:
    policies = list(results.runs["policy"])
    return "kube" if "kube" in policies else str(policies[0])


def _overview(results: LabResults, measured: pd.DataFrame) -> str:
    """How much was played, what is missing, and a sentence for each policy."""
    parts = [f"<p>{_size(results.runs, len(results.missing))}</p>"]
    if results.missing:
        parts.append(
            f'<p class="note"><b>{escape(missing_runs(results.missing))}</b>; what follows is of the others.</p>'
        )
    parts += [f'<p class="note">{escape(one)}</p>' for one in _same_jobs(results.jobs)]
    parts += [f'<p class="note"><b>{escape(name)}</b>: {escape(text)}.</p>' for name, text in _waits(results.runs)]
    verdicts = sentences(measured, _baseline(results))
    parts += [f"<p><b>{escape(title)}</b>: {escape(text)}</p>" for title, text in verdicts]
    return "".join(parts)


def _waits(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Each run in which pods held places while their work waited, and what it says of them."""
    found = []
    for about in runs.to_dict("records"):
        given = {name: value for name, value in about.items() if isinstance(value, list) or value == value}
        name = f"{about['policy']}, {about['load']}, seed {about['seed']}"
        found += [(name, one) for one in sentences_of({str(key): value for key, value in given.items()})]
    return found


def _tables(results: LabResults, measured: pd.DataFrame) -> str:
    parts = ["<h2>Policies side by side, mean ± half of the 95 % interval over seeds</h2>", _summary(summary(measured))]
    if results.runs["policy"].nunique() > 1:
        baseline = _baseline(results)
        parts += [f"<h2>Paired differences to {escape(baseline)}</h2>", _differences(paired(measured, baseline))]
        parts += [
            '<p class="note">Bold: the interval does not contain 0. Measures without a difference are left out.</p>'
        ]
    return "\n".join(parts)


def _same_jobs(jobs: pd.DataFrame) -> list[str]:
    """Of each load whose jobs are the same with all seeds, that intervals say nothing about it."""
    found = []
    for load, each in jobs.groupby("load", sort=False):
        columns = ["job", "arrived", "duration", "pods"]
        lists = [frozenset(one[columns].itertuples(index=False, name=None)) for _, one in each.groupby("seed")]
        if len(lists) > 1 and len(set(lists)) == 1:
            found.append(
                f"The load {load} is the same with all {len(lists)} seeds, which differ in ties alone: the intervals "
                "say nothing about other loads. In a trace, order: bootstrap and jitter draw other ones."
            )
    return found


def _page(title: str, body: str) -> str:
    light = " ".join(f"--c{at}: {colour};" for at, colour in enumerate(LIGHT))
    light += f" --faint: {FAINT}; --grid: {GRID}; --page: {PAPER};"
    dark = " ".join(f"--c{at}: {colour};" for at, colour in enumerate(DARK))
    style = _STYLE.replace("LIGHT", light).replace("DARK", dark)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f'<!doctype html><html lang="en"><head>{head}<style>{style}</style></head><body>{body}</body></html>\n'


def _size(runs: pd.DataFrame, missing: int) -> str:
    counted = ((runs[column].nunique(), one, more) for column, one, more in _COUNTED)
    of = f" of {len(runs) + missing}" if missing else ""
    parts = ", ".join(f"{number} {one if number == 1 else more}" for number, one, more in counted)
    return f"{len(runs)}{of} {'run' if len(runs) + missing == 1 else 'runs'}: {parts}."


_COUNTED = (("policy", "policy", "policies"), ("load", "load", "loads"), ("seed", "seed", "seeds"))


def _summary(frame: pd.DataFrame) -> str:
    return _table(frame, "mean")


def _differences(frame: pd.DataFrame) -> str:
    some = frame.groupby(["measure", "load"])["difference"].transform(lambda each: (each != 0).any())
    frame = frame[some]
    return _table(frame, "difference", marked=frame["difference"].abs() > frame["interval"])


def _with_interval(value: float, interval: float) -> str:
    """A number with four digits, and its interval with as many places. One run has no interval, and what
    never happened, such as the end of a job, no number."""
    if not isfinite(value):
        return ""
    leading = abs(value) or (interval if isfinite(interval) else 0.0)
    places = min(6, max(0, 3 - floor(log10(leading)))) if leading else 0
    text = f"{value:,.{places}f}"
    if not isfinite(interval):
        return text
    rounded = f"{interval:,.{places}f}"
    return f"{text} ± {rounded if float(rounded.replace(',', '')) else '0'}"


def _table(frame: pd.DataFrame, value: str, marked: pd.Series[bool] | None = None) -> str:
    """One line for each measure and load, with its unit, one column for each policy. Marked values are bold."""
    policies = list(dict.fromkeys(frame["policy"]))
    bold = set() if marked is None else set(frame.index[marked])
    lines = ["<tr><th>measure</th><th>unit</th>" + "".join(f"<th>{escape(one)}</th>" for one in policies) + "</tr>"]
    many = frame["load"].nunique() > 1
    for (measure, load_name), each in frame.groupby(["measure", "load"], sort=True):
        of = {}
        for one in each.itertuples():
            text = _with_interval(getattr(one, value), one.interval)
            of[one.policy] = f"<b>{text}</b>" if one.Index in bold else text
        title = f"{measure}, {load_name}" if many else measure
        cells = "".join(f"<td>{of.get(one, '')}</td>" for one in policies)
        lines.append(f"<tr><td>{escape(title)}</td><td>{unit_of(str(measure))}</td>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _write_csv(figure: LabFigure, file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        if figure.bars:
            writer.writerow(["row", "group", "start", "end"])
            writer.writerows((bar.row, bar.group, bar.start, bar.end) for bar in figure.bars)
            return
        writer.writerow(["line", "x", "y", "low", "high"])
        for line in figure.lines:
            if line.low:
                rows = zip(line.x, line.y, line.low, line.high, strict=True)
                writer.writerows([line.label, *values] for values in rows)
            else:
                writer.writerows([line.label, x, y, "", ""] for x, y in zip(line.x, line.y, strict=True))

"""write_report: one HTML file with all figures and tables, and beside it a PNG and a CSV of each figure.

The HTML file needs no server and no other file: figures are inline SVG, and colours follow the reader's light or dark.
"""

from __future__ import annotations

import csv
from html import escape
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.lab.report.figures import LabFigure, figures_of
from fairlead.lab.report.metrics import metrics, paired, summary
from fairlead.lab.report.svg import COLOURS, groups_of, svg
from fairlead.lab.results.loading import load

if TYPE_CHECKING:
    import pandas as pd

_LIGHT = ("#1f6fb2", "#d1641e", "#2a8c4a", "#b3322e", "#7350a8", "#806052", "#c04f9a", "#5c6670")
_DARK = ("#6db3f2", "#f2a05f", "#6fd08c", "#f07b76", "#b79aec", "#c9a795", "#f08fd0", "#a9b4be")
_STYLE = """
:root { color-scheme: light dark; --text: #1c2126; --faint: #59636e; --grid: #dfe3e8; --page: #ffffff; LIGHT }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --faint: #9aa4ae; --grid: #323940; --page: #15191d; DARK } }
body { background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 820px;
  margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.05rem; margin: 2.2rem 0 .3rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 12px; } svg text.small { font-size: 10px; }
.grid { stroke: var(--grid); } .line { fill: none; stroke-width: 1.8; } .band { opacity: .18; stroke: none; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; color: var(--faint); font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 2px; margin-right: .35rem; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; display: block; overflow-x: auto; }
td, th { text-align: right; padding: .18rem .6rem; border-bottom: 1px solid var(--grid); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
"""


def write_report(directory: str | Path, out: str | Path) -> Path:
    """Write the report of a run or an experiment into the directory `out`; returns the HTML file."""
    results = load(directory, tables=("jobs", "pods", "nodes", "queues", "samples"))
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    figures = figures_of(results)
    measured = metrics(results)
    baseline = str(results.runs["policy"].iloc[0] if "kube" not in set(results.runs["policy"]) else "kube")
    for figure in figures:
        _write_csv(figure, out / f"{figure.name}.csv")
        _write_png(figure, out / f"{figure.name}.png")
    measured.to_csv(out / "metrics.csv", index=False)
    name, runs = str(results.runs["scenario"].iloc[0]), len(results.runs)
    parts = [f"<h1>{escape(name)}</h1><p>{runs} runs, {results.runs['policy'].nunique()} policies.</p>"]
    parts += [
        "<h2>Policies side by side, mean ± half of the 95 % interval over seeds</h2>",
        _summary(summary(measured)),
    ]
    if results.runs["policy"].nunique() > 1:
        parts += [f"<h2>Paired differences to {escape(baseline)}</h2>", _differences(paired(measured, baseline))]
    parts += [f"<h2>{escape(one.title)}</h2>{svg(one)}{_legend(one)}" for one in figures]
    file = out / "report.html"
    file.write_text(_page(name, "\n".join(parts)), encoding="utf-8")
    return file


def _page(title: str, body: str) -> str:
    light = " ".join(f"--c{at}: {colour};" for at, colour in enumerate(_LIGHT))
    dark = " ".join(f"--c{at}: {colour};" for at, colour in enumerate(_DARK))
    classes = "".join(
        f".line.c{at} {{ stroke: var(--c{at}); }} .band.c{at}, .bar.c{at} {{ fill: var(--c{at}); }} "
        f".legend .c{at} {{ background: var(--c{at}); }}\n"
        for at in range(COLOURS)
    )
    style = _STYLE.replace("LIGHT", light).replace("DARK", dark) + classes
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f'<!doctype html><html lang="en"><head>{head}<style>{style}</style></head><body>{body}</body></html>\n'


def _legend(figure: LabFigure) -> str:
    entries = (
        f'<span><i class="c{at % COLOURS}"></i>{escape(label or "(none)")}</span>'
        for at, label in enumerate(groups_of(figure))
    )
    return f'<div class="legend">{"".join(entries)}</div>'


def _summary(frame: pd.DataFrame) -> str:
    return _table(frame, "mean")


def _differences(frame: pd.DataFrame) -> str:
    return _table(frame, "difference")


def _with_interval(value: float, interval: float) -> str:
    """One run has no interval."""
    return f"{value:.4g} ± {interval:.2g}" if isfinite(interval) else f"{value:.4g}"


def _table(frame: pd.DataFrame, value: str) -> str:
    """One line for each measure and load, one column for each policy."""
    policies = list(dict.fromkeys(frame["policy"]))
    lines = ["<tr><th>measure</th>" + "".join(f"<th>{escape(one)}</th>" for one in policies) + "</tr>"]
    many = frame["load"].nunique() > 1
    for (measure, load_name), each in frame.groupby(["measure", "load"], sort=True):
        of = {one.policy: _with_interval(getattr(one, value), one.interval) for one in each.itertuples()}
        title = f"{measure}, {load_name}" if many else measure
        cells = "".join(f"<td>{of.get(one, '')}</td>" for one in policies)
        lines.append(f"<tr><td>{escape(title)}</td>{cells}</tr>")
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


def _write_png(figure: LabFigure, file: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(8, 4.2 if not figure.bars else 6), layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.add_subplot()
    for at, line in enumerate(figure.lines):
        axes.plot(line.x, line.y, label=line.label, color=_LIGHT[at % COLOURS])
        if line.low:
            axes.fill_between(line.x, line.low, line.high, alpha=0.18, color=_LIGHT[at % COLOURS])
    groups = groups_of(figure)
    rows = sorted({bar.row for bar in figure.bars}, reverse=True)
    for bar in figure.bars:
        axes.barh(rows.index(bar.row), bar.end - bar.start, left=bar.start, height=0.7,
                  color=_LIGHT[groups.index(bar.group) % COLOURS])  # fmt: skip
    if rows:
        axes.set_yticks(range(len(rows)), rows, fontsize=6)
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
    if figure.lines:
        axes.legend()
    picture.savefig(file, dpi=120, metadata={"Software": None})

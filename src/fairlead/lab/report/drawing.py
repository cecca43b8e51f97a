"""draw: a figure as a picture of matplotlib, from which PNG, SVG and PDF are written and the page takes its SVG.

A figure is drawn once, in the colours of a light page. Every colour stands for a variable of the page's style sheet:
`inline_svg` puts the variable in the place of the colour, so that the same drawing is right in light and in dark.
"""

from __future__ import annotations

import io
import math
import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from fairlead.lab.report.figures import LabFigure

LIGHT = ("#1f6fb2", "#d1641e", "#2a8c4a", "#b3322e", "#7350a8", "#806052", "#c04f9a", "#5c6670")
DARK = ("#6db3f2", "#f2a05f", "#6fd08c", "#f07b76", "#b79aec", "#c9a795", "#f08fd0", "#a9b4be")
PAPER, FAINT, GRID = "#ffffff", "#59636e", "#dfe3e8"
_VARIABLES = {**{colour: f"c{at}" for at, colour in enumerate(LIGHT)}, PAPER: "page", FAINT: "faint", GRID: "grid"}
_DASHES: tuple[Any, ...] = ("-", (0, (6, 3)), (0, (2, 2)), (0, (8, 3, 2, 3)))
"""Lines that lie on each other are distinguished by dashes."""
_LOOK = {
    "text.color": FAINT, "axes.labelcolor": FAINT, "axes.edgecolor": GRID, "axes.titlecolor": FAINT,
    "xtick.color": GRID, "ytick.color": GRID, "xtick.labelcolor": FAINT, "ytick.labelcolor": FAINT,
    "grid.color": GRID, "axes.grid": True, "axes.axisbelow": True, "axes.facecolor": PAPER, "figure.facecolor": PAPER,
    "axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "svg.fonttype": "none",
}  # fmt: skip
_WIDTH, _HEIGHT = 8.0, 4.2
_ROW, _LANE, _ROWS_AN_INCH = 14, 4, 72
_AROUND_BARS = 1.5  # inches for title, axis and legend
_LONGEST_NAME = 20
_PICTURES = (("png", ("Software",)), ("svg", ("Date", "Creator")), ("pdf", ("CreationDate", "Creator", "Producer")))
"""The endings, and what each format would say of when and with what it was made."""


def write_pictures(figure: LabFigure, out: Path) -> str:
    """Write the figure as PNG, SVG and PDF; returns the SVG for the page. Equal results give equal files: these name
    no time and no program."""
    import matplotlib

    with matplotlib.rc_context({**_LOOK, "svg.hashsalt": figure.name}):
        picture = _draw(figure)
        for ending, unnamed in _PICTURES:
            written = io.BytesIO()
            picture.savefig(written, format=ending, dpi=120, metadata=dict.fromkeys(unnamed))
            (out / f"{figure.name}.{ending}").write_bytes(written.getvalue())
    return inline_svg((out / f"{figure.name}.svg").read_text(encoding="utf-8"), figure)


def inline_svg(text: str, figure: LabFigure) -> str:
    """A drawing as an element of a page: with the page's variables for its colours, and with identifiers that no other
    drawing of the page has."""
    body = text[text.index(">", text.index("<svg")) + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{figure.name}-", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    return f'<svg {box[0]} role="img" aria-label="{escape(figure.title)}">{body}'


def _draw(figure: LabFigure) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    heights = {row: max(_ROW, _LANE * lanes + 3) for row, lanes in lanes_of(figure).items()}
    height = _AROUND_BARS + sum(heights.values()) / _ROWS_AN_INCH if figure.bars else _HEIGHT
    picture = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.add_subplot()
    if figure.bars:
        _draw_bars(figure, heights, axes)
        handles: list[Any] = [Patch(color=_colour(at)) for at in range(len(figure.groups))]
    else:
        _draw_lines(figure, axes)
        handles = list(axes.lines)
    end = max((*(max(line.x) for line in figure.lines), *(bar.end for bar in figure.bars)), default=1.0) or 1.0
    axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label, xlim=(0, end))
    _mark(axes.set_xticks, ticks(0.0, end))
    labels = [one or "(none)" for one in groups_of(figure)]
    picture.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return picture


def _draw_lines(figure: LabFigure, axes: Any) -> None:
    for at, line in enumerate(figure.lines):
        axes.plot(line.x, line.y, color=_colour(at), linestyle=_DASHES[at % len(_DASHES)], linewidth=1.6)
        if line.low:
            axes.fill_between(line.x, line.low, line.high, alpha=0.18, color=_colour(at), linewidth=0)
    values = [value for line in figure.lines for value in (*line.y, *line.low, *line.high)]
    low, high = bounds(min(values, default=0.0), max(values, default=1.0))
    axes.set_ylim(low, high)
    _mark(axes.set_yticks, ticks(low, high))


def _draw_bars(figure: LabFigure, heights: dict[str, int], axes: Any) -> None:
    """One row for each name, as high as its lanes need; one call for each group, as bars are many."""
    lanes, tops, below = lanes_of(figure), {}, 0
    for row, height in heights.items():
        tops[row], below = below, below + height
    for at, group in enumerate(figure.groups):
        bars = [bar for bar in figure.bars if bar.group == group]
        each = [(heights[bar.row] - 2) / lanes[bar.row] for bar in bars]
        axes.barh(
            [tops[bar.row] + 1 + height * (bar.lane + 0.5) for bar, height in zip(bars, each, strict=True)],
            [bar.end - bar.start for bar in bars],
            left=[bar.start for bar in bars],
            height=[0.85 * height for height in each],
            color=_colour(at),
        )
    middles = [tops[row] + heights[row] / 2 for row in heights]
    names = [row if len(row) <= _LONGEST_NAME else f"…{row[1 - _LONGEST_NAME :]}" for row in heights]
    axes.set_yticks(middles, names, fontsize=7)
    axes.set_ylim(below, 0)


def _mark(set_ticks: Any, values: list[float]) -> None:
    set_ticks(values, [tick_text(value) for value in values])


def _colour(number: int) -> str:
    return LIGHT[number % len(LIGHT)]


def groups_of(figure: LabFigure) -> list[str]:
    """What the legend names, in the order of the colours."""
    return list(figure.groups) if figure.bars else [line.label for line in figure.lines]


def lanes_of(figure: LabFigure) -> dict[str, int]:
    """How many lanes each row needs, one at least."""
    lanes = dict.fromkeys(figure.rows, 1)
    for bar in figure.bars:
        lanes[bar.row] = max(lanes[bar.row], bar.lane + 1)
    return lanes


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round numbers from low to high."""
    step = _step(low, high, wanted)
    return [step * at for at in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def bounds(low: float, high: float) -> tuple[float, float]:
    """Where a vertical axis begins and ends: at round numbers, and at 0 unless all values are far from it."""
    low = low if low > 0.5 * high else 0.0
    high = high if high > low else low + 1.0
    step = _step(low, high, 6)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def tick_text(value: float) -> str:
    """A number at an axis, without an exponent."""
    return f"{value:,.10g}"


def _step(low: float, high: float, wanted: int) -> float:
    span = (high - low) or 1.0
    step: float = 10.0 ** math.floor(math.log10(span / wanted))
    return step * next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= wanted)

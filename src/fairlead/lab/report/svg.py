"""svg: a figure as an SVG element that takes its colours from the page, so that it is right in light and in dark."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.lab.report.figures import FigureBar, LabFigure

WIDTH, HEIGHT = 760, 320
LEFT, RIGHT, TOP, BOTTOM = 72, 28, 14, 44
LEFT_OF_BARS = 132
COLOURS, DASHES = 8, 4
ROW, LANE = 14, 4
LONGEST_NAME = 20


def svg(figure: LabFigure) -> str:
    """The figure, without title and legend; those are the page's."""
    return _bars(figure) if figure.bars else _lines(figure)


def groups_of(figure: LabFigure) -> list[str]:
    """What the legend names, in the order of the colours."""
    return list(figure.groups) if figure.bars else [line.label for line in figure.lines]


def line_style(number: int) -> str:
    """The classes of the colour and the dashes of a line. Lines that lie on each other are distinguished by dashes."""
    return f"c{number % COLOURS} d{number % DASHES}"


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


class _Scale:
    """From values to places in the drawing."""

    def __init__(self, left: float, x_high: float, height: float, y_low: float = 0.0, y_high: float = 1.0) -> None:
        self._left, self._x_high = left, x_high
        self._bottom, self._y_low, self._y_high = height - BOTTOM, y_low, y_high

    def x(self, value: float) -> float:
        return self._left + (WIDTH - self._left - RIGHT) * value / self._x_high

    def y(self, value: float) -> float:
        return self._bottom - (self._bottom - TOP) * (value - self._y_low) / (self._y_high - self._y_low)

    def points(self, xs: object, ys: object) -> list[str]:
        return [f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True)]  # type: ignore[call-overload]


def _lines(figure: LabFigure) -> str:
    x_high = max((max(line.x) for line in figure.lines), default=1.0) or 1.0
    values = [value for line in figure.lines for value in (*line.y, *line.low, *line.high)]
    low, high = bounds(min(values, default=0.0), max(values, default=1.0))
    scale = _Scale(LEFT, x_high, HEIGHT, low, high)
    parts = [_frame(figure, x_high, HEIGHT, LEFT)]
    for value in ticks(low, high):
        y = scale.y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick_text(value)}</text>')
    for number, line in enumerate(figure.lines):
        if line.low:
            there, back = scale.points(line.x, line.high), scale.points(line.x, line.low)
            parts.append(f'<polygon class="band c{number % COLOURS}" points="{" ".join(there + back[::-1])}"/>')
    for number, line in enumerate(figure.lines):
        points = " ".join(scale.points(line.x, line.y))
        parts.append(f'<polyline class="line {line_style(number)}" points="{points}"/>')
    label = escape(figure.y_label)
    parts.append(f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{label}</text>')
    return _element(parts, HEIGHT, figure.title)


def _bars(figure: LabFigure) -> str:
    """One row for each name, as high as its lanes need."""
    lanes = lanes_of(figure)
    colour = {group: at % COLOURS for at, group in enumerate(figure.groups)}
    x_high = max(bar.end for bar in figure.bars) or 1.0
    tops: dict[str, int] = {}
    below = TOP
    for row, count in lanes.items():
        tops[row], below = below, below + row_height(count)
    height = below + BOTTOM
    scale = _Scale(LEFT_OF_BARS, x_high, height)
    parts = [_frame(figure, x_high, height, LEFT_OF_BARS)]
    for row, top in tops.items():
        name = row if len(row) <= LONGEST_NAME else f"…{row[1 - LONGEST_NAME :]}"
        middle = top + row_height(lanes[row]) / 2 + 3
        parts.append(f'<line class="grid" x1="{LEFT_OF_BARS}" x2="{WIDTH - RIGHT}" y1="{top}" y2="{top}"/>')
        parts.append(f'<text x="{LEFT_OF_BARS - 6}" y="{middle}" text-anchor="end" class="small">{escape(name)}</text>')
    parts += [_bar(bar, tops[bar.row], lanes[bar.row], colour[bar.group], scale) for bar in figure.bars]
    return _element(parts, height, figure.title)


def lanes_of(figure: LabFigure) -> dict[str, int]:
    """How many lanes each row needs, one at least."""
    lanes = dict.fromkeys(figure.rows, 1)
    for bar in figure.bars:
        lanes[bar.row] = max(lanes[bar.row], bar.lane + 1)
    return lanes


def row_height(lanes: int) -> int:
    return max(ROW, LANE * lanes + 3)


def _bar(bar: FigureBar, top: int, lanes: int, colour: int, scale: _Scale) -> str:
    x, width = scale.x(bar.start), max(0.6, scale.x(bar.end) - scale.x(bar.start))
    each = (row_height(lanes) - 2) / lanes
    y, height = top + 1.5 + each * bar.lane, max(1.0, each - 0.8)
    return f'<rect class="bar c{colour}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _frame(figure: LabFigure, x_high: float, height: int, left: int) -> str:
    bottom, scale = height - BOTTOM, _Scale(left, x_high, height)
    marks = [
        f'<line class="grid" x1="{scale.x(value):.1f}" x2="{scale.x(value):.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{scale.x(value):.1f}" y="{bottom + 16}" text-anchor="middle">{tick_text(value)}</text>'
        for value in ticks(0.0, x_high)
    ]
    middle = (left + WIDTH - RIGHT) / 2
    label = f'<text x="{middle}" y="{height - 8}" text-anchor="middle">{escape(figure.x_label)}</text>'
    return "".join(marks) + label


def _element(parts: list[str], height: int, title: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'

"""svg: a figure as an SVG element that takes its colours from the page, so that it is right in light and in dark."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.lab.report.figures import FigureBar, LabFigure

WIDTH, HEIGHT = 760, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 44
COLOURS = 8
ROW = 14


def svg(figure: LabFigure) -> str:
    """The figure, without title and legend; those are the page's."""
    return _bars(figure) if figure.bars else _lines(figure)


def groups_of(figure: LabFigure) -> list[str]:
    """What the legend names, in the order of the colours."""
    if figure.bars:
        return list(dict.fromkeys(bar.group for bar in figure.bars))
    return [line.label for line in figure.lines]


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round numbers from low to high."""
    span = (high - low) or 1.0
    step = 10 ** math.floor(math.log10(span / wanted))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= wanted)
    return [step * at for at in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


def _lines(figure: LabFigure) -> str:
    x_high = max((max(line.x) for line in figure.lines), default=1.0) or 1.0
    y_high = max((max((*line.y, *line.high)) for line in figure.lines), default=1.0) or 1.0
    parts = [_frame(figure, x_high, HEIGHT)]
    for value in ticks(0.0, y_high):
        y = _y(value, y_high)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for number, line in enumerate(figure.lines):
        colour = f"c{number % COLOURS}"
        if line.low:
            there = [f"{_x(x, x_high):.1f},{_y(y, y_high):.1f}" for x, y in zip(line.x, line.high, strict=True)]
            back = [f"{_x(x, x_high):.1f},{_y(y, y_high):.1f}" for x, y in zip(line.x, line.low, strict=True)]
            parts.append(f'<polygon class="band {colour}" points="{" ".join(there + back[::-1])}"/>')
        points = " ".join(f"{_x(x, x_high):.1f},{_y(y, y_high):.1f}" for x, y in zip(line.x, line.y, strict=True))
        parts.append(f'<polyline class="line {colour}" points="{points}"/>')
    label = escape(figure.y_label)
    parts.append(f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{label}</text>')
    return _element(parts, HEIGHT)


def _bars(figure: LabFigure) -> str:
    rows = list(dict.fromkeys(sorted(bar.row for bar in figure.bars)))
    groups = groups_of(figure)
    x_high = max(bar.end for bar in figure.bars) or 1.0
    height = TOP + BOTTOM + ROW * len(rows)
    parts = [_frame(figure, x_high, height)]
    for at, row in enumerate(rows):
        name = row if len(row) <= 9 else f"…{row[-8:]}"
        parts.append(
            f'<text x="{LEFT - 6}" y="{TOP + ROW * at + 11}" text-anchor="end" class="small">{escape(name)}</text>'
        )
    place = {row: at for at, row in enumerate(rows)}
    parts += [_bar(bar, place[bar.row], groups.index(bar.group) % COLOURS, x_high) for bar in figure.bars]
    return _element(parts, height)


def _bar(bar: FigureBar, at: int, colour: int, x_high: float) -> str:
    x, width = _x(bar.start, x_high), max(0.6, _x(bar.end, x_high) - _x(bar.start, x_high))
    return f'<rect class="bar c{colour}" x="{x:.1f}" y="{TOP + ROW * at + 1}" width="{width:.1f}" height="{ROW - 3}"/>'


def _frame(figure: LabFigure, x_high: float, height: int) -> str:
    bottom = height - BOTTOM
    marks = [
        f'<line class="grid" x1="{_x(value, x_high):.1f}" x2="{_x(value, x_high):.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{_x(value, x_high):.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>'
        for value in ticks(0.0, x_high)
    ]
    label = (
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 8}" text-anchor="middle">{escape(figure.x_label)}</text>'
    )
    return "".join(marks) + label


def _x(value: float, high: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / high


def _y(value: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / high


def _element(parts: list[str], height: int) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'

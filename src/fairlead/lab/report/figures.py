"""Figures as data: lines with bands, or bars. The same data is drawn as SVG and PNG and written as CSV."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.lab.report.intervals import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

    from fairlead.lab.results.loading import LabResults

POINTS = 120
MOST_LINES = 8
MOST_NODES, MOST_BARS = 20, 1500


@dataclass(frozen=True, slots=True)
class FigureLine:
    """A line through points; `low` and `high` are its band, if it has one."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class FigureBar:
    """A bar from `start` to `end` in a row of a Gantt chart; `group` decides its colour. Bars of a row that overlap in
    time have different lanes."""

    row: str
    group: str
    start: float
    end: float
    lane: int = 0


@dataclass(frozen=True, slots=True)
class LabFigure:
    """`rows` and `groups` are those of the bars: the rows from the top, the groups in the order of their colours."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: Sequence[FigureLine] = ()
    bars: Sequence[FigureBar] = field(default=())
    rows: Sequence[str] = ()
    groups: Sequence[str] = ()


def figures_of(results: LabResults) -> list[LabFigure]:
    """All figures that the tables give, in the order of the report."""
    first = results.runs.iloc[0]
    known = set(results.samples["measure"])
    made = [_over_time(results, *measure) for measure in _MEASURES if measure[0] in known]
    for policy in dict.fromkeys(results.runs["policy"]):
        one = results.samples[(results.samples["policy"] == policy) & (results.samples["seed"] == first["seed"])]
        one = one[one["load"] == first["load"]]
        made.append(_by_queue(one, policy))
    made.append(_wait_cdf(results.jobs))
    pods = results.pods[(results.pods["seed"] == first["seed"]) & (results.pods["load"] == first["load"])]
    jobs = results.jobs.drop_duplicates("job").set_index("job")
    nodes = _shown_nodes(pods)
    made += [_gantt(each, jobs, str(policy), nodes) for policy, each in pods.groupby("policy", sort=False)]
    return [one for one in made if one.lines or one.bars]


_MEASURES = (
    ("utilisation.cpu", "CPU in use", "share of all"), ("utilisation.gpu", "GPUs in use", "share of all"),
    ("pending", "Pods that wait", "pods"), ("fragmentation", "Fragmented GPUs", "share of all GPUs"),
    ("fragmentation.idle", "Fragmented idle GPUs", "share of idle GPUs"),
)  # fmt: skip


def _over_time(results: LabResults, measure: str, title: str, unit: str) -> LabFigure:
    samples = results.samples[(results.samples["measure"] == measure) & (results.samples["scope"] == "cluster")]
    times = np.linspace(0.0, float(samples["time"].max()), POINTS)
    lines = []
    many = results.runs["load"].nunique() > 1
    for (policy, load), each in samples.groupby(["policy", "load"], sort=False):
        curves = np.array([np.interp(times, one["time"], one["value"]) for _, one in each.groupby("seed")])
        stats = [mean_and_interval(column.tolist()) for column in curves.T]
        mean = [one[0] for one in stats]
        band = [one[1] if np.isfinite(one[1]) else 0.0 for one in stats]
        most = 1.0 if unit.startswith("share of") else np.inf
        low = [max(0.0, m - b) for m, b in zip(mean, band, strict=True)]
        high = [min(most, m + b) for m, b in zip(mean, band, strict=True)]
        lines.append(FigureLine(f"{policy}, {load}" if many else str(policy), times.tolist(), mean, low, high))
    name = measure.replace(".", "-")
    return LabFigure(name, f"{title}, mean over seeds with 95 % interval", "time, s", unit, lines)


def _by_queue(samples: pd.DataFrame, policy: str) -> LabFigure:
    """What each queue holds of the resource that is used most; no lines if jobs name no queue. A queue has samples from
    its first pod on, and held nothing before."""
    used = samples[samples["measure"].isin([f"utilisation.{name}" for name in _UNITS])].groupby("measure")["value"]
    measure = str(used.mean().idxmax()).removeprefix("utilisation.") if len(used) else "cpu"
    unit, size = _UNITS[measure]
    queues = samples[samples["scope"].str.startswith("queue:") & (samples["measure"] == measure)]
    held = queues.pivot_table(index="time", columns="scope", values="value").reindex(samples["time"].unique()).fillna(0)
    held /= size
    names = {str(scope): str(scope).removeprefix("queue:") or "(no queue)" for scope in held.columns}
    shown = list(names)[:MOST_LINES] if list(names) != ["queue:"] else []
    lines = [FigureLine(names[scope], held.index.tolist(), held[scope].tolist()) for scope in shown]
    some = f" ({MOST_LINES} of {len(names)} queues)" if len(names) > MOST_LINES else ""
    return LabFigure(f"queues-{policy}", f"In use by queue{some}, {policy}, first seed", "time, s", unit, lines)


_UNITS = {"gpu": ("GPUs", 1), "cpu": ("cores", 1), "memory": ("GiB", 1 << 30)}
"""Of each resource that is measured, the unit in which it is drawn, and how much that is. Of resources that are used
equally much the first is drawn."""


def _wait_cdf(jobs: pd.DataFrame) -> LabFigure:
    lines = []
    for policy, each in jobs.groupby("policy", sort=False):
        wait = np.sort((each["placed"] - each["arrived"]).dropna().to_numpy())
        if len(wait):
            at = np.unique(np.linspace(0, len(wait) - 1, POINTS).astype(int))
            lines.append(FigureLine(str(policy), wait[at].tolist(), ((at + 1) / len(wait)).tolist()))
    return LabFigure("waits", "Waits of jobs for their nodes, all seeds", "wait, s", "share of jobs", lines)


def _shown_nodes(pods: pd.DataFrame) -> list[str]:
    """Nodes for the Gantt charts, the same under all policies: some of those that most policies used, at equal
    distances in the order of their names, with numbers in these as numbers."""
    used = Counter(node for _, each in pods.groupby("policy") for node in each["node"].dropna().unique())
    least = sorted(used.values(), reverse=True)[:MOST_NODES][-1:]
    names = sorted((name for name, count in used.items() if [count] >= least), key=_by_number)
    at = np.unique(np.linspace(0, len(names) - 1, MOST_NODES).astype(int)) if names else ()
    return [names[one] for one in at]


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _gantt(pods: pd.DataFrame, jobs: pd.DataFrame, policy: str, nodes: Sequence[str]) -> LabFigure:
    placed = pods.dropna(subset=["placed"])
    end = float(np.nanmax([placed["ended"].max(), placed["placed"].max(), 1.0])) if len(placed) else 1.0
    shown = placed[placed["node"].isin(nodes)].sort_values(["node", "placed", "pod"]).head(MOST_BARS)
    queues = jobs["queue"] if jobs["queue"].any() else jobs["class"]
    bars: list[FigureBar] = []
    busy_until: dict[str, list[float]] = {}
    for one in shown.itertuples():
        until = end if np.isnan(one.ended) else one.ended
        lanes = busy_until.setdefault(one.node, [])
        lane = next((at for at, busy in enumerate(lanes) if busy <= one.placed), len(lanes))
        lanes[lane:] = [until, *lanes[lane + 1 :]]
        bars.append(FigureBar(one.node, str(queues.get(one.job, "")), one.placed, until, lane))
    groups = sorted({str(one) for one in queues.unique()})
    title = f"Pods on some of the nodes, {policy}, first seed"
    return LabFigure(f"gantt-{policy}", title, "time, s", "", (), bars, nodes, groups)

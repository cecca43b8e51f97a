"""Figures as data: lines with bands, or bars. The same data is drawn as SVG and PNG and written as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.lab.reference.checks import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

    from fairlead.lab.results.loading import LabResults

POINTS = 120
MOST_LINES = 8
MOST_NODES, MOST_BARS = 30, 1500


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
    """A bar from `start` to `end` in a row of a Gantt chart; `group` decides its colour."""

    row: str
    group: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class LabFigure:
    name: str
    title: str
    x_label: str
    y_label: str
    lines: Sequence[FigureLine] = ()
    bars: Sequence[FigureBar] = field(default=())


def figures_of(results: LabResults) -> list[LabFigure]:
    """All figures that the tables give, in the order of the report."""
    first = results.runs.iloc[0]
    made = [_over_time(results, name, title) for name, title in _MEASURES if name in set(results.samples["measure"])]
    for policy in dict.fromkeys(results.runs["policy"]):
        one = results.samples[(results.samples["policy"] == policy) & (results.samples["seed"] == first["seed"])]
        one = one[one["load"] == first["load"]]
        made.append(_by_queue(one, policy))
    made.append(_wait_cdf(results.jobs))
    pods = results.pods[(results.pods["seed"] == first["seed"]) & (results.pods["load"] == first["load"])]
    jobs = results.jobs.drop_duplicates("job").set_index("job")
    made += [_gantt(each, jobs, str(policy)) for policy, each in pods.groupby("policy", sort=False)]
    return [one for one in made if one.lines or one.bars]


_MEASURES = (
    ("utilisation.cpu", "CPU in use"), ("utilisation.gpu", "GPUs in use"), ("pending", "Pods that wait"),
    ("fragmentation", "Fragmented GPU, of all GPUs"), ("fragmentation.idle", "Fragmented GPU, of idle GPUs"),
)  # fmt: skip


def _over_time(results: LabResults, measure: str, title: str) -> LabFigure:
    samples = results.samples[(results.samples["measure"] == measure) & (results.samples["scope"] == "cluster")]
    times = np.linspace(0.0, float(samples["time"].max()), POINTS)
    lines = []
    many = results.runs["load"].nunique() > 1
    for (policy, load), each in samples.groupby(["policy", "load"], sort=False):
        curves = np.array([np.interp(times, one["time"], one["value"]) for _, one in each.groupby("seed")])
        stats = [mean_and_interval(column.tolist()) for column in curves.T]
        mean = [one[0] for one in stats]
        band = [one[1] if np.isfinite(one[1]) else 0.0 for one in stats]
        low = [max(0.0, m - b) for m, b in zip(mean, band, strict=True)]
        high = [m + b for m, b in zip(mean, band, strict=True)]
        lines.append(FigureLine(f"{policy}, {load}" if many else str(policy), times.tolist(), mean, low, high))
    name = measure.replace(".", "-")
    return LabFigure(name, f"{title}, mean over seeds with 95 % interval", "time, s", "", lines)


def _by_queue(samples: pd.DataFrame, policy: str) -> LabFigure:
    measure = "gpu" if "utilisation.gpu" in set(samples["measure"]) else "cpu"
    queues = samples[samples["scope"].str.startswith("queue:") & (samples["measure"] == measure)]
    lines = [
        FigureLine(str(scope).removeprefix("queue:") or "(no queue)", each["time"].tolist(), each["value"].tolist())
        for scope, each in queues.groupby("scope")
    ][:MOST_LINES]
    unit = "GPUs" if measure == "gpu" else "cores"
    return LabFigure(f"queues-{policy}", f"In use by queue, {policy}, first seed", "time, s", unit, lines)


def _wait_cdf(jobs: pd.DataFrame) -> LabFigure:
    lines = []
    for policy, each in jobs.groupby("policy", sort=False):
        wait = np.sort((each["placed"] - each["arrived"]).dropna().to_numpy())
        if len(wait):
            at = np.unique(np.linspace(0, len(wait) - 1, POINTS).astype(int))
            lines.append(FigureLine(str(policy), wait[at].tolist(), ((at + 1) / len(wait)).tolist()))
    return LabFigure("waits", "Waits of jobs for their nodes, all seeds", "wait, s", "share of jobs", lines)


def _gantt(pods: pd.DataFrame, jobs: pd.DataFrame, policy: str) -> LabFigure:
    placed = pods.dropna(subset=["placed"])
    nodes = sorted(placed["node"].dropna().unique())[:MOST_NODES]
    end = float(np.nanmax([placed["ended"].max(), placed["placed"].max(), 1.0])) if len(placed) else 1.0
    shown = placed[placed["node"].isin(nodes)].head(MOST_BARS)
    queues = jobs["queue"] if jobs["queue"].any() else jobs["class"]
    bars = [
        FigureBar(one.node, str(queues.get(one.job, "")), one.placed, end if np.isnan(one.ended) else one.ended)
        for one in shown.itertuples()
    ]
    return LabFigure(f"gantt-{policy}", f"Pods on nodes, {policy}, first seed", "time, s", "", (), bars)

"""metrics: one number for each run and measure; summary: means over seeds with intervals; paired: differences.

Intervals are of 95 %, by Student's t over the seeds. A paired difference is taken between runs of the same load and
seed, which had the same jobs, so that its interval is narrower than that of two means.

What a queue holds is counted by its dominant resource: the one of which it has the largest part of what it deserves.
Counted in cores alone, queues whose jobs ask for GPUs would have nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.lab.report.intervals import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

    from fairlead.lab.results.loading import LabResults

RUN = ["policy", "load", "seed"]
RESOURCES = ("cpu", "memory", "gpu")
_WAITED = {"GPU hours lost to gangs that wait": "waiting_gpu_hours"}


def metrics(results: LabResults) -> pd.DataFrame:
    """Columns policy, load, seed, measure and value."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for key, jobs in results.jobs.groupby(RUN, sort=True):
        named = dict(zip(RUN, key, strict=True))
        about = _of(results.runs, named).iloc[0]
        pods = _of(results.pods, named)
        samples = _while_something_happened(_of(results.samples, named), pods)
        values = _of_jobs(jobs, about) | _of_samples(samples)
        values |= {
            measure: 0.0 if np.isnan(about[name]) else about[name] for measure, name in _WAITED.items() if name in about
        }
        values |= _fairness(_shares(samples, _of(results.queues, named), jobs, pods, about))
        rows += [{**named, "measure": name, "value": float(value)} for name, value in values.items()]
    return pd.DataFrame(rows, columns=[*RUN, "measure", "value"])


def _of(frame: pd.DataFrame, named: dict[str, Any]) -> pd.DataFrame:
    return frame[
        (frame["policy"] == named["policy"]) & (frame["load"] == named["load"]) & (frame["seed"] == named["seed"])
    ]


def _of_jobs(jobs: pd.DataFrame, about: Any) -> dict[str, float]:
    wait = (jobs["placed"] - jobs["arrived"]).dropna()
    completion = (jobs["ended"] - jobs["arrived"]).dropna()
    found = {"makespan": about["makespan"], "jobs not placed": jobs["placed"].isna().sum()}
    for at in (50, 90, 99):
        found[f"wait p{at}"] = np.percentile(wait, at) if len(wait) else np.nan
        found[f"completion p{at}"] = np.percentile(completion, at) if len(completion) else np.nan
    for name, each in jobs.groupby("class"):
        waits = (each["placed"] - each["arrived"]).dropna()
        found[f"wait mean, {name}"] = waits.mean() if len(waits) else np.nan
    work, lost = (jobs["duration"] * jobs["succeeded"]).sum(), jobs["lost_seconds"].sum()
    found |= {"evictions": jobs["evicted"].sum(), "pod seconds lost": lost}
    found["goodput"] = work / (work + lost) if work + lost else np.nan
    found["finish-time fairness, worst"] = _finish_time_fairness(jobs, about)
    return found


def _finish_time_fairness(jobs: pd.DataFrame, about: Any) -> float:
    """The largest ratio of a job's completion time to what it would have taken alone on an equal share of the cluster,
    one share for each queue (or user, if there are no queues)."""
    shares = max(1, jobs["queue"].nunique() if jobs["queue"].any() else jobs["user"].nunique())
    capacity = {name: float(about[f"capacity_{name}"]) for name in RESOURCES}
    parts = [jobs[name] / (amount / shares) for name, amount in capacity.items() if amount]
    alone = jobs["duration"] * np.maximum.reduce([np.ones(len(jobs)), *(one.to_numpy() for one in parts)])
    ratio = ((jobs["ended"] - jobs["arrived"]) / alone).replace([np.inf], np.nan).dropna()
    return float(ratio.max()) if len(ratio) else float("nan")


def _while_something_happened(samples: pd.DataFrame, pods: pd.DataFrame) -> pd.DataFrame:
    """The samples until the last pod ended. A run in which only pods wait that are never placed goes on for a while,
    which says nothing about how the cluster was used."""
    if not len(pods) or pods["outcome"].isin(["running", "placed"]).any() or pods["ended"].isna().all():
        return samples
    return samples[samples["time"] <= pods["ended"].max()]


def _of_samples(samples: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    cluster = samples[samples["scope"] == "cluster"]
    for name, each in cluster.groupby("measure"):
        if name.startswith(("utilisation.", "fragmentation", "fits.")):
            found[f"{name} mean"] = each["value"].mean()
        elif name == "oldest_wait":
            found["starvation age"] = each["value"].max()
    return found


def _shares(
    samples: pd.DataFrame, queues: pd.DataFrame, jobs: pd.DataFrame, pods: pd.DataFrame, about: Any
) -> list[float]:
    """What each queue holds of what it deserves, by its dominant resource, in the mean over the run. Without queues in
    the cluster those are compared that jobs name, or else the users, and each deserves an equal part."""
    if len(queues):
        deserved = {
            str(one.queue): {name: float(getattr(one, f"deserved_{name}")) for name in RESOURCES}
            for one in queues.itertuples()
        }
        deserved = {name: amounts for name, amounts in deserved.items() if not all(map(np.isnan, amounts.values()))}
        return _held_by_queues(samples, deserved)
    by = "queue" if jobs["queue"].any() else "user"
    names = sorted(jobs[by].unique())
    equal = {name: float(about[f"capacity_{name}"]) / max(1, len(names)) for name in RESOURCES}
    if by == "queue":
        return _held_by_queues(samples, dict.fromkeys(map(str, names), equal))
    return _held_by_users(jobs, pods, equal)


def _held_by_queues(samples: pd.DataFrame, deserved: dict[str, dict[str, float]]) -> list[float]:
    times = samples["time"].unique()
    shares = []
    for queue, amounts in deserved.items():
        own = samples[samples["scope"] == f"queue:{queue}"]
        parts = [
            own[own["measure"] == name].groupby("time")["value"].last().reindex(times).fillna(0.0).to_numpy() / amount
            for name, amount in amounts.items()
            if amount > 0
        ]
        shares.append(float(np.maximum.reduce(parts).mean()) if parts and len(times) else 0.0)
    return shares


def _held_by_users(jobs: pd.DataFrame, pods: pd.DataFrame, equal: dict[str, float]) -> list[float]:
    placed = pods.dropna(subset=["placed", "ended"])
    if not len(placed):
        return [0.0] * max(1, jobs["user"].nunique())
    seconds = (placed["ended"] - placed["placed"]).groupby(placed["job"]).sum()
    held = jobs["job"].map(seconds).fillna(0.0) / jobs["pods"] / (placed["ended"].max() or 1.0)
    parts = [(held * jobs[name]).groupby(jobs["user"]).sum() / amount for name, amount in equal.items() if amount > 0]
    return [float(one) for one in np.maximum.reduce([part.to_numpy() for part in parts])]


def _fairness(shares: list[float]) -> dict[str, float]:
    """The least share, and Jain's index: 1 if all shares are equal, 1/n if one of n has everything."""
    values = np.array(shares or [0.0])
    jain = values.sum() ** 2 / (len(values) * (values**2).sum()) if values.any() else 1.0
    return {"share of deserved, least": float(values.min()), "fairness, Jain": float(jain)}


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """Mean and half of its 95 % interval over the seeds, for each policy, load and measure."""
    import pandas as pd

    rows = []
    for key, each in measured.groupby(["measure", "load", "policy"], sort=True):
        mean, interval = mean_and_interval(each["value"].dropna().tolist() or [float("nan")])
        rows.append((*key, mean, interval, len(each)))
    return pd.DataFrame(rows, columns=["measure", "load", "policy", "mean", "interval", "seeds"])


def paired(measured: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """The mean difference of each policy to the baseline, run by run, with half of its 95 % interval."""
    import pandas as pd

    wide = measured.pivot_table(index=["measure", "load", "seed"], columns="policy", values="value")
    rows = []
    for policy in (one for one in wide.columns if one != baseline):
        difference = (wide[policy] - wide[baseline]).dropna()
        for key, each in difference.groupby(level=["measure", "load"]):
            rows.append((*key, policy, *mean_and_interval(each.tolist()), len(each)))
    return pd.DataFrame(rows, columns=["measure", "load", "policy", "difference", "interval", "seeds"])


def unit_of(measure: str) -> str:
    """The unit in which a measure is given."""
    for start, unit in _UNITS:
        if measure.startswith(start):
            return unit
    return ""


_UNITS = (
    ("makespan", "s"), ("wait", "s"), ("completion", "s"), ("starvation age", "s"), ("pod seconds lost", "s"),
    ("jobs not placed", "jobs"), ("evictions", "pods"), ("fits.", "pods"), ("utilisation.", "share of all"),
    ("fragmentation.idle", "share of idle GPUs"), ("fragmentation", "share of all GPUs"), ("goodput", "share of work"),
    ("share of deserved", "share of deserved"), ("fairness, Jain", "0 to 1"), ("finish-time fairness", "times"),
    ("GPU hours", "hours"),
)  # fmt: skip

"""metrics: one number for each run and measure; summary: means over seeds with intervals; paired: differences.

Intervals are of 95 %, by Student's t over the seeds. A paired difference is taken between runs of the same load and
seed, which had the same jobs, so that its interval is narrower than that of two means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.lab.report.intervals import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

    from fairlead.lab.results.loading import LabResults

RUN = ["policy", "load", "seed"]


def metrics(results: LabResults) -> pd.DataFrame:
    """Columns policy, load, seed, measure and value."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for key, jobs in results.jobs.groupby(RUN, sort=True):
        named = dict(zip(RUN, key, strict=True))
        about = _of(results.runs, named).iloc[0]
        values = _of_jobs(jobs, about) | _of_samples(_of(results.samples, named), _of(results.queues, named))
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
    alone = jobs["duration"] * np.maximum(1.0, jobs["cpu"] / (about["capacity_cpu"] / shares))
    ratio = ((jobs["ended"] - jobs["arrived"]) / alone).replace([np.inf], np.nan).dropna()
    return float(ratio.max()) if len(ratio) else float("nan")


def _of_samples(samples: pd.DataFrame, queues: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {}
    cluster = samples[samples["scope"] == "cluster"]
    for name, each in cluster.groupby("measure"):
        if name.startswith(("utilisation.", "fragmentation", "fits.")):
            found[f"{name} mean"] = each["value"].mean()
        elif name == "oldest_wait":
            found["starvation age"] = each["value"].max()
    deserved = {f"queue:{one.queue}": one.deserved_cpu for one in queues.itertuples() if one.deserved_cpu > 0}
    held = samples[samples["scope"].isin(deserved) & (samples["measure"] == "cpu")].groupby("scope")["value"].mean()
    if len(held):
        shares = np.array([held.get(name, 0.0) / amount for name, amount in deserved.items()])
        found["share of deserved, least"] = shares.min()
        if shares.any():
            found["fairness, Jain"] = shares.sum() ** 2 / (len(shares) * (shares**2).sum())
    return found


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

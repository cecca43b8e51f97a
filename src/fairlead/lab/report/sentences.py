"""sentences: one sentence for each policy that says in what it is better than the baseline, and by how much.

Only a few measures are named, those that people compare policies by. A difference is called one if its interval over
seeds does not contain 0; with a single seed there is no interval, and the sentence says so. Times are not compared
where two policies did not place the same number of jobs: one that places only short jobs would have the best times.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from fairlead.lab.report.metrics import paired, summary, unit_of

if TYPE_CHECKING:
    import pandas as pd

NOT_PLACED = "jobs not placed"
TIMES = {
    "wait p50": "the median wait", "wait p99": "the longest waits (p99)",
    "completion p50": "the median completion time", "makespan": "the makespan",
}  # fmt: skip
LESS_IS_BETTER = {NOT_PLACED: "jobs that were not placed"} | TIMES
MORE_IS_BETTER = {
    "utilisation.cpu mean": "CPU in use", "utilisation.gpu mean": "GPUs in use", "fairness, Jain": "fairness (Jain)",
}  # fmt: skip
_NAMED = LESS_IS_BETTER | MORE_IS_BETTER


def sentences(measured: pd.DataFrame, baseline: str) -> list[tuple[str, str]]:
    """Each policy (with its load, if there are several) and its sentence, the baseline's first."""
    means, differences = summary(measured), paired(measured, baseline)
    loads, many = list(dict.fromkeys(measured["load"])), measured["load"].nunique() > 1
    policies = [baseline, *(one for one in dict.fromkeys(measured["policy"]) if one != baseline)]
    found = []
    for load in loads:
        for policy in policies:
            title = f"{policy}, {load}" if many else policy
            of_policy = _named(means, load, policy, "mean")
            if policy == baseline:
                text = _baseline(of_policy, compared=len(policies) > 1)
            else:
                text = _compared(
                    _named(differences, load, policy, "difference"), _named(means, load, baseline, "mean"), baseline
                )
            found.append((title, text))
    return [(title, text) for title, text in found if text]


def _named(frame: pd.DataFrame, load: str, policy: str, value: str) -> dict[str, tuple[float, float]]:
    some = frame[(frame["load"] == load) & (frame["policy"] == policy) & frame["measure"].isin(list(_NAMED))]
    found = {str(one.measure): (float(getattr(one, value)), float(one.interval)) for one in some.itertuples()}
    return {name: found[name] for name in _NAMED if name in found and isfinite(found[name][0])}


def _baseline(means: dict[str, tuple[float, float]], *, compared: bool) -> str:
    shown = [f"{_NAMED[name]} {number(mean)}{_unit(name)}" for name, (mean, _) in means.items()]
    begin = "the others are compared with it; " if compared else ""
    return f"{begin}{', '.join(shown)}." if shown else ""


def _compared(differences: dict[str, tuple[float, float]], base: dict[str, tuple[float, float]], baseline: str) -> str:
    others = differences.get(NOT_PLACED, (0.0, 0.0))[0] != 0
    if others:
        differences = {name: one for name, one in differences.items() if name not in TIMES}
    better, worse, unclear = list[str](), list[str](), list[str]()
    alone = any(not isfinite(interval) for _, interval in differences.values())
    for name, (difference, interval) in differences.items():
        if not difference or (isfinite(interval) and abs(difference) <= interval):
            unclear.append(_NAMED[name])
            continue
        improved = (difference < 0) == (name in LESS_IS_BETTER)
        (better if improved else worse).append(_amount(name, difference, base.get(name, (0.0, 0.0))[0]))
    parts = [f"better in {_listed(better)}"] if better else []
    parts += [f"worse in {_listed(worse)}"] if worse else []
    parts += [f"no certain difference in {_listed(unclear)}"] if unclear else []
    parts += ["waits and the makespan are of other jobs, and not compared"] if others else []
    if not parts:
        return ""
    doubt = " (one seed, so there is no interval)" if alone else ""
    return f"against {baseline} {'; '.join(parts)}{doubt}."


def _amount(name: str, difference: float, base: float) -> str:
    more = "more" if difference > 0 else "less"
    share = f", {abs(difference / base):.0%}" if base else ""
    return f"{_NAMED[name]} ({number(abs(difference))}{_unit(name)} {more}{share})"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _unit(name: str) -> str:
    return " s" if unit_of(name) == "s" else ""


def number(value: float) -> str:
    """A number with three digits, or all before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"

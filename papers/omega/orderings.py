"""The findings of the Omega paper as orderings between runs, for one report.

Each finding compares runs that differ in one thing only: how conflicts are found and resolved, how long the Service
scheduler thinks, how picky schedulers are. It holds or it does not, and the figures are shown either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.lab.omega.metrics import Metrics

_MODES = (
    ("resource-fit", "incremental"),
    ("resource-fit", "all-or-nothing"),
    ("sequence-numbers", "incremental"),
    ("sequence-numbers", "all-or-nothing"),
)
_SLACK = 1.02
"""Neighbours may change places within so much: it is one seed."""

_FULL = 0.85
"""In a cell that is fuller than this, most attempts fail for lack of room, and the modes have no order."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What should hold, whether it does, and the figures: of each run what it is and what it came to."""

    claim: str
    holds: bool
    figures: tuple[tuple[str, float], ...]


def findings(setups: Mapping[str, Mapping[str, Any]], metrics: Mapping[str, Metrics]) -> list[Finding]:
    """The findings that can be told from these runs."""
    runs = [(setups[name], metrics[name]) for name in setups if name in metrics]
    return [
        *_conflict_modes(runs),
        *_slow_service(runs),
        *_architectures(runs),
        *_locked(runs),
        *_single_path(runs),
        *_picky(runs),
    ]


Run = tuple[Mapping[str, Any], "Metrics"]


def _families(runs: Sequence[Run], *varying: str) -> Iterator[tuple[Mapping[str, Any], list[Run]]]:
    """Runs that are alike but for some fields, if there are at least two."""
    found: dict[tuple[tuple[str, str], ...], list[Run]] = {}
    for setup, metrics in runs:
        key = tuple(sorted((name, str(value)) for name, value in setup.items() if name not in varying))
        found.setdefault(key, []).append((setup, metrics))
    for family in found.values():
        if len(family) > 1:
            yield family[0][0], family


def _rising(values: Sequence[float]) -> bool:
    return all(one <= other * _SLACK + 1e-9 for one, other in pairwise(values))


def _figures(
    family: Sequence[Run], label: Callable[[Mapping[str, Any]], str], metric: str
) -> tuple[tuple[str, float], ...]:
    return tuple((label(setup), float(metrics.get(metric) or 0.0)) for setup, metrics in family)


def _conflict_modes(runs: Sequence[Run]) -> Iterator[Finding]:
    shared = [run for run in runs if run[0]["arch"] == "omega" and int(run[0]["nbatch"]) > 1]
    for setup, family in _families(shared, "conflict", "tx"):
        if any((metrics.get("cpu_util") or 0.0) > _FULL for _, metrics in family):
            continue
        ordered = sorted(family, key=lambda run: _MODES.index((run[0]["conflict"], run[0]["tx"])))
        figures = _figures(ordered, lambda one: f"{one['conflict']}, {one['tx']}", "batch.conflict_fraction")
        yield Finding(
            f"shared state, {setup['nbatch']} batch schedulers, {setup['jobs']}: conflicts are fewest by fit and "
            "incrementally, most by sequence numbers and all or nothing",
            _rising([value for _, value in figures]),
            figures,
        )


def _by_service_time(runs: Sequence[Run], arch: str) -> Iterator[tuple[Mapping[str, Any], list[Run]]]:
    chosen = [run for run in runs if run[0]["arch"] == arch and run[0]["sj"] != run[0]["bj"]]
    for setup, family in _families(chosen, "sj"):
        yield setup, sorted(family, key=lambda run: float(run[0]["sj"]))


def _thinks(setup: Mapping[str, Any]) -> str:
    return f"Service thinks {setup['sj']} s"


def _slow_service(runs: Sequence[Run]) -> Iterator[Finding]:
    for setup, family in _by_service_time(runs, "monolithic"):
        figures = _figures(family, _thinks, "Batch.wait_first_mean")
        yield Finding(
            f"monolithic, multi-path, {setup['jobs']}: slow decisions for Service make Batch wait (s)",
            _rising([value for _, value in figures]) and figures[-1][1] > figures[0][1],
            figures,
        )
    for setup, family in _by_service_time(runs, "omega"):
        figures = _figures(family, _thinks, "Batch.wait_first_mean")
        yield Finding(
            f"shared state, {setup['conflict']}, {setup['tx']}, {setup['jobs']}: slow decisions for Service leave "
            "Batch alone (s)",
            max(value for _, value in figures) < 0.1,
            figures,
        )


_NAMES = {"monolithic": "monolithic, multi-path", "mesos": "two-level", "omega": "shared state"}


def _architectures(runs: Sequence[Run]) -> Iterator[Finding]:
    """Runs of all architectures with the same jobs, machines and Service scheduler, which is slower than the one for
    Batch; of shared state, those by fit and incremental."""
    chosen = [
        run
        for run in runs
        if float(run[0]["sj"]) > float(run[0]["bj"])
        and int(run[0]["nbatch"]) == 1
        and (run[0]["arch"] != "omega" or (run[0]["conflict"], run[0]["tx"]) == _MODES[0])
    ]
    for setup, family in _families(chosen, "arch", "bj", "conflict", "tx"):
        if len({run[0]["arch"] for run in family}) < len(family) or family[-1][0]["arch"] != "omega":
            continue
        figures = _figures(family, lambda one: _NAMES[one["arch"]], "Batch.wait_first_mean")
        yield Finding(
            f"{setup['jobs']}, {setup['machines']} machines, {_thinks(setup)}: Batch waits least with shared state (s)",
            figures[-1][1] == min(value for _, value in figures),
            figures,
        )


def _locked(runs: Sequence[Run]) -> Iterator[Finding]:
    for setup, family in _by_service_time(runs, "mesos"):
        for metric, what in (("cpu_locked", "locks the cell (share)"), ("Batch.wait_first_mean", "delays Batch (s)")):
            figures = _figures(family, _thinks, metric)
            yield Finding(
                f"two-level, {setup['jobs']}: an offer to a slow Service scheduler {what}",
                _rising([value for _, value in figures]) and figures[-1][1] > figures[0][1],
                figures,
            )


def _single_path(runs: Sequence[Run]) -> Iterator[Finding]:
    single = [run for run in runs if run[0]["arch"] == "monolithic" and run[0]["sj"] == run[0]["bj"]]
    for setup, family in _families(single, "sj", "bj"):
        ordered = sorted(family, key=lambda run: float(run[0]["bj"]))
        for workload in ("Batch", "Service"):
            figures = _figures(ordered, lambda one: f"decisions take {one['bj']} s", f"{workload}.wait_first_mean")
            yield Finding(
                f"monolithic, single path, {setup['jobs']}: slower decisions make {workload} wait (s)",
                _rising([value for _, value in figures]),
                figures,
            )


def _picky(runs: Sequence[Run]) -> Iterator[Finding]:
    for setup, family in _families([run for run in runs if run[0]["arch"] == "omega"], "pick"):
        ordered = sorted(family, key=lambda run: float(run[0]["pick"]))
        figures = _figures(ordered, lambda one: f"without {float(one['pick']):.0%}", "batch.conflict_fraction")
        yield Finding(
            f"shared state, {setup['conflict']}, {setup['tx']}, {setup['nbatch']} batch schedulers: leaving out the "
            "same machines makes schedulers conflict more",
            _rising([value for _, value in figures]),
            figures,
        )

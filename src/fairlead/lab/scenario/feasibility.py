"""jobs_that_never_fit: which jobs of a run could not be placed on the cluster if it were empty, and what they ask for.

An experiment in which some jobs can never run measures the others, so it has to be known before the run. A pod is held
against what each node can give in all, and the minimum of a gang against what all nodes can give together. What agents
of nodes compute later is not judged, and neither are taints, devices and GPUs that are shared: a job is only named if
no node will ever do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import parse_quantity

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.lab.scenario.jobs import LabJob

_BY_AGENTS = ("kubernetes.io", "koordinator.sh")
"""Resources of these domains are published while a cluster runs."""
_SHOWN = 5

Amounts = Mapping[str, int]
"""Billionths of each resource."""
NodeKind = tuple[frozenset[tuple[str, str]], frozenset[tuple[str, int]]]
"""The labels that some job selects nodes by, and what a node can give."""


@dataclass(frozen=True, slots=True)
class NeverFits:
    """Jobs that can never fit, for one reason."""

    reason: str
    jobs: tuple[LabJob, ...]

    def sentence(self, of: int, file: str = "") -> str:
        """How many jobs of how many, why, and which: by their lines in the trace, or by name."""
        count = len(self.jobs)
        lines = sorted({job.line for job in self.jobs if job.line})
        named = [str(one) for one in lines] or [job.name for job in self.jobs]
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        where = f"line{'s' if len(named) > 1 else ''} " if lines else ""
        ending = f" of {file}" if lines and file else ""
        can = "job" if of == 1 else "jobs"
        return f"{count} of {of} {can} can never fit: {self.reason} ({where}{', '.join(named[:_SHOWN])}{more}{ending})"


def jobs_that_never_fit(jobs: Iterable[LabJob], nodes: Sequence[Doc]) -> list[NeverFits]:
    """Those jobs, by reason, in the order of their arrival."""
    jobs = list(jobs)
    selected = {label for job in jobs for label in job.node_selector}
    kinds = Counter(_kind(node, selected) for node in nodes)
    reasons: dict[tuple[object, ...], str] = {}
    found: dict[str, list[LabJob]] = {}
    for job in jobs:
        shape = (tuple(job.resources.items()), tuple(job.node_selector.items()), job.minimum)
        if shape not in reasons:
            reasons[shape] = _reason(job, kinds)
        if reasons[shape]:
            found.setdefault(reasons[shape], []).append(job)
    return [NeverFits(reason, tuple(those)) for reason, those in found.items()]


def _kind(node: Doc, selected: set[str]) -> NodeKind:
    labels = node["metadata"].get("labels") or {}
    given = (node.get("status") or {}).get("allocatable") or {}
    return (
        frozenset((name, labels[name]) for name in selected if name in labels),
        frozenset((name, parse_quantity(amount).nanos) for name, amount in given.items()),
    )


def _reason(job: LabJob, kinds: Mapping[NodeKind, int]) -> str:
    """Why a job can never be placed; empty if it can."""
    chosen = [(dict(given), count) for (labels, given), count in kinds.items() if labels >= job.node_selector.items()]
    if not chosen:
        wanted = ", ".join(f"{name}={value}" for name, value in job.node_selector.items())
        return f"no node has the label {wanted}" if wanted else "there are no nodes"
    asked = _judged({name: parse_quantity(amount).nanos for name, amount in job.resources.items()})
    for name, amount in asked.items():
        largest = max(given.get(name, 0) for given, _ in chosen)
        if amount > largest:
            has = f"any node has ({_text(largest, name)})" if largest else "any node has, which is none"
            return f"they ask for more {name} in one pod than {has}"
    room = sum(count * _fitting(asked, given) for given, count in chosen)
    if not room:
        return f"no node has {' and '.join(asked)} enough together for one of their pods"
    if room < job.minimum:
        return "they ask for more pods at once than all nodes together could take"
    return ""


def _judged(asked: Amounts) -> Amounts:
    """Those that a node has from the beginning, if it ever has them."""
    return {
        name: amount for name, amount in asked.items() if amount and not name.partition("/")[0].endswith(_BY_AGENTS)
    }


def _fitting(asked: Amounts, given: Amounts) -> int:
    """How many pods an empty node could take."""
    pods = given.get("pods", 0) // 10**9
    return min([pods, *(given.get(name, 0) // amount for name, amount in asked.items())])


def _text(nanos: int, name: str) -> str:
    """An amount as people write it."""
    if name == "memory":
        return f"{nanos / 10**9 / 2**30:g}Gi"
    return f"{nanos / 10**9:g}"

"""Two policies on the same arrivals: how much less GPU one leaves unallocated, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from papers.fragmentation.policies import FGD, SCARCITY
from papers.fragmentation.run import place_all, unallocated_at_full_arrival
from papers.fragmentation.trace import arrivals, read_nodes, read_pods


@dataclass(frozen=True, slots=True)
class PairedRun:
    """GPU unallocated at full arrival, in percents, with the one policy and the other."""

    seed: int
    fgd: float
    own: float


def paired_run(nodes: Path, pods: Path, seed: int) -> PairedRun:
    """FGD and our own policy on the arrivals of one seed."""
    listed, trace = read_nodes(nodes), read_pods(pods)
    coming = arrivals(trace, listed, seed)
    left = {policy: unallocated_at_full_arrival(place_all(policy, trace, coming)) for policy in (FGD, SCARCITY)}
    return PairedRun(seed, left[FGD], left[SCARCITY])


def gains(runs: Sequence[PairedRun]) -> list[float]:
    return [run.fgd - run.own for run in runs]

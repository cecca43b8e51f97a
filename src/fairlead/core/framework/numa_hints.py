"""NUMA hints and the policies that choose between them, as the kubelet's topology manager does it.

A hint is a set of NUMA nodes that could hold one resource, with a score. One hint of each resource is combined with one
of every other; a combination holds where all agree. Preferred combinations win, then narrower ones, then higher scores,
then lower numbers. A strict policy admits a pod only if the best combination is preferred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

NumaNodes = frozenset[int]


class NumaPolicy(Enum):
    BEST_EFFORT = "best effort"
    RESTRICTED = "restricted"
    SINGLE = "single NUMA node"


@dataclass(frozen=True, slots=True)
class NumaHint:
    """A set of NUMA nodes; None stands for any."""

    nodes: NumaNodes | None
    preferred: bool = False
    score: int = 0
    unsatisfied: bool = False


@dataclass(frozen=True, slots=True)
class MergedHints:
    """The best combination, and whether the policy admits it."""

    best: NumaHint
    admitted: bool


def merge_hints(
    policy: NumaPolicy,
    lists: Sequence[Sequence[NumaHint]],
    everywhere: NumaNodes,
    may_have: Callable[[NumaNodes], bool] | None = None,
) -> MergedHints:
    """Apply a policy to one list of hints a resource. `everywhere` is all NUMA nodes of the machine; `may_have` says
    which sets may be preferred, all if it is left out."""
    if policy is NumaPolicy.BEST_EFFORT:
        best = _best(lists, everywhere, may_have)
        return MergedHints(NumaHint(everywhere) if best.unsatisfied else best, admitted=True)
    if policy is NumaPolicy.RESTRICTED:
        best = _best(lists, everywhere, may_have)
    else:
        best = _best([[hint for hint in hints if _is_single(hint)] for hints in lists], everywhere, may_have)
        if best.nodes == everywhere:
            best = NumaHint(None, preferred=best.preferred)
    return MergedHints(best, admitted=best.preferred)


def with_preference(hints: Sequence[NumaHint], smallest: int, *, all_preferred: bool = False) -> list[NumaHint]:
    """Mark the hints that are as narrow as possible."""
    return [replace(hint, preferred=all_preferred or len(hint.nodes or ()) == smallest) for hint in hints]


def _is_single(hint: NumaHint) -> bool:
    return hint.preferred and (hint.nodes is None or len(hint.nodes) == 1)


def _best(
    lists: Sequence[Sequence[NumaHint]], everywhere: NumaNodes, may_have: Callable[[NumaNodes], bool] | None
) -> NumaHint:
    """The best combination; all NUMA nodes, not preferred, if there is none."""
    best = NumaHint(everywhere)
    for combination in product(*lists):
        merged = _combined(combination, everywhere, may_have)
        if merged is not None and _is_better(merged, best):
            best = merged
    return best


def _combined(
    combination: Sequence[NumaHint], everywhere: NumaNodes, may_have: Callable[[NumaNodes], bool] | None
) -> NumaHint | None:
    sets = [hint.nodes for hint in combination if hint.nodes is not None]
    nodes = everywhere.intersection(*sets)
    if not nodes:
        return None
    equal = all(some == sets[0] for some in sets)
    satisfied = not sets or max(map(len, sets)) == len(nodes)
    preferred = equal and all(hint.preferred for hint in combination)
    return NumaHint(
        nodes,
        preferred=preferred and (may_have is None or may_have(nodes)),
        score=sum(hint.score for hint in combination if hint.nodes == nodes),
        unsatisfied=not satisfied or any(hint.unsatisfied for hint in combination),
    )


def _is_better(one: NumaHint, other: NumaHint) -> bool:
    assert one.nodes is not None
    assert other.nodes is not None
    if one.preferred != other.preferred:
        return one.preferred
    if len(one.nodes) == len(other.nodes):
        if sum(1 << node for node in one.nodes) < sum(1 << node for node in other.nodes):
            return True
        return one.score > other.score
    return len(one.nodes) < len(other.nodes)

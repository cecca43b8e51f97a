"""NUMA policies: from the hints of every resource to the NUMA nodes that a pod is kept to.

A hint is a set of NUMA nodes that could hold one resource, with a score. One hint of each resource is combined with one
of every other; a combination holds where all agree. Preferred combinations win, then narrower ones, then higher scores,
then lower numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

BEST_EFFORT, RESTRICTED, SINGLE = "BestEffort", "Restricted", "SingleNUMANode"
EXCLUSIVE = "Required"

Mask = frozenset[int]


@dataclass(frozen=True, slots=True)
class Alignment:
    """A set of NUMA nodes; None stands for any."""

    nodes: Mask | None
    preferred: bool = False
    score: int = 0
    unsatisfied: bool = False


Hints = Mapping[str, Sequence[Alignment]]
"""The hints of one provider by resource."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a policy settles for; `reasons` if it admits nothing."""

    best: Alignment
    reasons: tuple[str, ...] = ()


def merge(
    policy: str, providers: Sequence[Hints], numa: Sequence[int], exclusive: str, state: Callable[[int], str]
) -> Merged:
    """Apply a policy to the hints of all providers. `state` says how a NUMA node is used."""
    everywhere = frozenset(numa)
    lists, reasons, summary = _lists(providers)
    rules = _Rules(everywhere, exclusive, state)
    if policy == BEST_EFFORT:
        best = rules.best(lists)
        return Merged(Alignment(everywhere) if best.unsatisfied else best)
    if reasons:
        return Merged(Alignment(everywhere if policy == RESTRICTED else None), tuple(reasons))
    if policy == RESTRICTED:
        best = rules.best(lists)
    else:
        best = rules.best([[hint for hint in hints if _is_single(hint)] for hints in lists])
        if best.nodes == everywhere:
            best = Alignment(None, preferred=best.preferred)
    if best.preferred:
        return Merged(best)
    joined = (" & " if policy == RESTRICTED else ",").join(summary)
    return Merged(best, (f"Unaligned NUMA Hint cause {joined}",))


def _is_single(hint: Alignment) -> bool:
    return hint.preferred and (hint.nodes is None or len(hint.nodes) == 1)


def _lists(providers: Sequence[Hints]) -> tuple[list[Sequence[Alignment]], list[str], list[str]]:
    """One list of hints a resource, the resources that no set can hold, and what is said of the others."""
    lists: list[Sequence[Alignment]] = []
    reasons: list[str] = []
    summary: list[str] = []
    for hints in providers:
        if not hints:
            lists.append([Alignment(None, preferred=True)])
        for resource, offered in hints.items():
            if not offered:
                lists.append([Alignment(None, unsatisfied=True)])
                reasons.append(f"Unsatisfied NUMA {resource}")
            else:
                lists.append(offered)
                summary.append(_summary(resource, offered))
    return lists, reasons, sorted(summary)


def _summary(resource: str, offered: Sequence[Alignment]) -> str:
    possible = [hint for hint in offered if not hint.unsatisfied]
    preferred = " ".join(_bits(hint.nodes) for hint in possible if hint.preferred)
    return f"{resource} prefer [{preferred}] among [{' '.join(_bits(hint.nodes) for hint in possible)}]"


def _bits(nodes: Mask | None) -> str:
    """A set as the original writes it: binary, with zeros before it by a rule of its own."""
    if nodes is None:
        return "<nil>"
    number = sum(1 << node for node in nodes)
    width = next((shift + 2 for shift in range(62, 0, -2) if number > 1 << shift), 2)
    return f"{number:0{width}b}"


@dataclass(frozen=True, slots=True)
class _Rules:
    everywhere: Mask
    exclusive: str
    state: Callable[[int], str]

    def best(self, lists: Sequence[Sequence[Alignment]]) -> Alignment:
        """The best combination; all NUMA nodes, not preferred, if there is none."""
        best = Alignment(self.everywhere)
        for combination in product(*lists):
            merged = self._combine(combination)
            if merged is not None and _is_better(merged, best):
                best = merged
        return best

    def _combine(self, combination: Sequence[Alignment]) -> Alignment | None:
        sets = [hint.nodes for hint in combination if hint.nodes is not None]
        nodes = self.everywhere.intersection(*sets)
        if not nodes:
            return None
        equal = all(some == sets[0] for some in sets)
        satisfied = not sets or max(map(len, sets)) == len(nodes)
        return Alignment(
            nodes,
            preferred=equal and all(hint.preferred for hint in combination) and self._may_have(nodes),
            score=sum(hint.score for hint in combination if hint.nodes == nodes),
            unsatisfied=not satisfied or any(hint.unsatisfied for hint in combination),
        )

    def _may_have(self, nodes: Mask) -> bool:
        """Whether NUMA nodes that are to be exclusive are not used otherwise: pods that span several stay away from
        those that have pods inside of them alone, and the other way round."""
        if self.exclusive != EXCLUSIVE:
            return True
        unwanted = "single" if len(nodes) > 1 else "shared"
        return all(self.state(node) != unwanted for node in nodes)


def _is_better(one: Alignment, other: Alignment) -> bool:
    assert one.nodes is not None
    assert other.nodes is not None
    if one.preferred != other.preferred:
        return one.preferred
    if len(one.nodes) == len(other.nodes):
        if sum(1 << node for node in one.nodes) < sum(1 << node for node in other.nodes):
            return True
        return one.score > other.score
    return len(one.nodes) < len(other.nodes)


def with_preference(hints: Sequence[Alignment], smallest: int, *, all_preferred: bool) -> list[Alignment]:
    """Mark the hints that are as narrow as possible."""
    return [replace(hint, preferred=all_preferred or len(hint.nodes or ()) == smallest) for hint in hints]

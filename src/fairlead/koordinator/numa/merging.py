"""NUMA policies of NodeNUMAResource: from the hints of all providers to the NUMA nodes that a pod is kept to.

Which combination of hints wins is said by `core/framework/numa_hints.py`; here are the reasons of a refusal, and the
rule that pods of one NUMA node and pods of several may stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairlead.core.framework.numa_hints import NumaHint, NumaNodes, NumaPolicy, merge_hints

BEST_EFFORT, RESTRICTED, SINGLE = "BestEffort", "Restricted", "SingleNUMANode"
EXCLUSIVE = "Required"

_POLICIES = {BEST_EFFORT: NumaPolicy.BEST_EFFORT, RESTRICTED: NumaPolicy.RESTRICTED}

Hints = Mapping[str, Sequence[NumaHint]]
"""The hints of one provider by resource."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a policy settles for; `reasons` if it admits nothing."""

    best: NumaHint
    reasons: tuple[str, ...] = ()


def merge(
    policy: str, providers: Sequence[Hints], numa: Sequence[int], exclusive: str, state: Callable[[int], str]
) -> Merged:
    """Apply a policy to the hints of all providers. `state` says how a NUMA node is used."""
    everywhere = frozenset(numa)
    lists, reasons, summary = _lists(providers)
    if reasons and policy != BEST_EFFORT:
        return Merged(NumaHint(everywhere if policy == RESTRICTED else None), tuple(reasons))

    def may_have(nodes: NumaNodes) -> bool:
        return _may_have(nodes, state)

    found = merge_hints(
        _POLICIES.get(policy, NumaPolicy.SINGLE), lists, everywhere, may_have if exclusive == EXCLUSIVE else None
    )
    if found.admitted:
        return Merged(found.best)
    joined = (" & " if policy == RESTRICTED else ",").join(summary)
    return Merged(found.best, (f"Unaligned NUMA Hint cause {joined}",))


def _may_have(nodes: NumaNodes, state: Callable[[int], str]) -> bool:
    """Whether NUMA nodes that are to be exclusive are not used otherwise: pods that span several stay away from those
    that have pods inside of them alone, and the other way round."""
    unwanted = "single" if len(nodes) > 1 else "shared"
    return all(state(node) != unwanted for node in nodes)


def _lists(providers: Sequence[Hints]) -> tuple[list[Sequence[NumaHint]], list[str], list[str]]:
    """One list of hints a resource, the resources that no set can hold, and what is said of the others."""
    lists: list[Sequence[NumaHint]] = []
    reasons: list[str] = []
    summary: list[str] = []
    for hints in providers:
        if not hints:
            lists.append([NumaHint(None, preferred=True)])
        for resource, offered in hints.items():
            if not offered:
                lists.append([NumaHint(None, unsatisfied=True)])
                reasons.append(f"Unsatisfied NUMA {resource}")
            else:
                lists.append(offered)
                summary.append(_summary(resource, offered))
    return lists, reasons, sorted(summary)


def _summary(resource: str, offered: Sequence[NumaHint]) -> str:
    possible = [hint for hint in offered if not hint.unsatisfied]
    preferred = " ".join(_bits(hint.nodes) for hint in possible if hint.preferred)
    return f"{resource} prefer [{preferred}] among [{' '.join(_bits(hint.nodes) for hint in possible)}]"


def _bits(nodes: NumaNodes | None) -> str:
    """A set as the original writes it: binary, with zeros before it by a rule of its own."""
    if nodes is None:
        return "<nil>"
    number = sum(1 << node for node in nodes)
    width = next((shift + 2 for shift in range(62, 0, -2) if number > 1 << shift), 2)
    return f"{number:0{width}b}"

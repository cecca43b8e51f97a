"""The merger of NUMA hints settles for what Volcano's and Koordinator's plain rules settle for, each written down here
by itself: Volcano's for the hints of one resource, Koordinator's, on bit masks, for hints of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.framework.numa_hints import NumaHint, NumaNodes, NumaPolicy, merge_hints

NUMBERS = range(4)
SETS = st.sets(st.sampled_from(NUMBERS), min_size=1).map(frozenset)
HINTS = st.builds(NumaHint, nodes=SETS, preferred=st.booleans(), score=st.integers(0, 3))
ANY_HINTS = st.builds(
    NumaHint, nodes=st.none() | SETS, preferred=st.booleans(), score=st.integers(0, 3), unsatisfied=st.booleans()
)
POLICIES = st.sampled_from(NumaPolicy)
EVERYWHERE = frozenset(NUMBERS)


@given(policy=POLICIES, hints=st.lists(HINTS.filter(lambda hint: hint.score == 0), max_size=8, unique=True))
def test_one_resource_is_settled_by_preference_width_and_numbers(policy: NumaPolicy, hints: list[NumaHint]) -> None:
    merged = merge_hints(policy, [hints], EVERYWHERE)
    expected = of_one_resource(policy, hints)
    assert merged.admitted == (expected is not None)
    if expected is not None:
        assert (merged.best.nodes or EVERYWHERE) == expected


def of_one_resource(policy: NumaPolicy, hints: Sequence[NumaHint]) -> NumaNodes | None:
    """Volcano's rule: the best hint that the policy considers; strict policies take only preferred ones. Best effort
    without a hint is any NUMA node."""

    def worth(hint: NumaHint) -> tuple[bool, int, int]:
        assert hint.nodes is not None
        return not hint.preferred, len(hint.nodes), mask_of(hint.nodes)

    considered = [hint for hint in hints if policy is not NumaPolicy.SINGLE or len(hint.nodes or ()) == 1]
    best = min(considered, key=worth, default=None)
    if policy is not NumaPolicy.BEST_EFFORT and (best is None or not best.preferred):
        return None
    return EVERYWHERE if best is None else best.nodes


@given(
    policy=POLICIES,
    lists=st.lists(st.lists(ANY_HINTS, min_size=1, max_size=4), max_size=3),
    barred=st.sets(st.sampled_from(NUMBERS)),
)
def test_several_resources_are_settled_combination_by_combination(
    policy: NumaPolicy, lists: list[list[NumaHint]], barred: set[int]
) -> None:
    merged = merge_hints(policy, lists, EVERYWHERE, lambda nodes: not nodes & barred)
    expected = of_several_resources(policy, lists, mask_of(barred))
    assert (merged.best.nodes and mask_of(merged.best.nodes), merged.best.preferred, merged.admitted) == expected


def of_several_resources(
    policy: NumaPolicy, lists: Sequence[Sequence[NumaHint]], barred: int
) -> tuple[int | None, bool, bool]:
    """Koordinator's rule: affinity, whether it is preferred, whether the pod is admitted."""
    full = mask_of(EVERYWHERE)
    if policy is NumaPolicy.SINGLE:
        lists = [[one for one in hints if one.preferred and len(one.nodes or {0}) == 1] for hints in lists]
    best = (full, False, 0, False)
    for some in product(*lists):
        masks = [mask_of(one.nodes) for one in some if one.nodes is not None]
        affinity = full
        for mask in masks:
            affinity &= mask
        if not affinity:
            continue
        preferred = len(set(masks)) <= 1 and all(one.preferred for one in some) and not affinity & barred
        score = sum(one.score for one in some if one.nodes is not None and mask_of(one.nodes) == affinity)
        narrowed = bool(masks) and max(mask.bit_count() for mask in masks) != affinity.bit_count()
        if beats((affinity, preferred, score), best[:3]):
            best = (affinity, preferred, score, narrowed or any(one.unsatisfied for one in some))
    affinity, preferred, _, unsatisfied = best
    if policy is NumaPolicy.BEST_EFFORT:
        return (full, False, True) if unsatisfied else (affinity, preferred, True)
    if policy is NumaPolicy.SINGLE and affinity == full:
        return None, preferred, preferred
    return affinity, preferred, preferred


def beats(one: tuple[int, bool, int], other: tuple[int, bool, int]) -> bool:
    if one[1] != other[1]:
        return one[1]
    if one[0].bit_count() != other[0].bit_count():
        return one[0].bit_count() < other[0].bit_count()
    return one[0] < other[0] or one[2] > other[2]


def mask_of(nodes: NumaNodes | set[int]) -> int:
    return sum(1 << node for node in nodes)

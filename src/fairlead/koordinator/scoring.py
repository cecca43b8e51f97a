"""Scores by how much is used of something: the weighted mean over resources, preferring what is used little or much."""

from __future__ import annotations

from collections.abc import Mapping

_ALWAYS = ("cpu", "memory", "ephemeral-storage")
_MAX_SCORE = 100


def weighted_score(
    weights: Mapping[str, int],
    used: Mapping[str, int],
    whole: Mapping[str, int],
    asked: Mapping[str, int],
    *,
    most: bool,
) -> int:
    """0..100 for what is used of each resource with a pod that requests so much. Resources of which there is nothing do
    not count, nor do extended resources that are not requested."""
    total = sum_of_weights = 0
    for name, weight in weights.items():
        if name not in _ALWAYS and not asked.get(name):
            continue
        capacity = whole.get(name, 0)
        if not capacity:
            continue
        total += weight * usage_score(used.get(name, 0) + asked.get(name, 0), capacity, most=most)
        sum_of_weights += weight
    return total // sum_of_weights if sum_of_weights else 0


def usage_score(used: int, capacity: int, *, most: bool) -> int:
    """0..100 by the share that is used; 0 of nothing."""
    if not capacity:
        return 0
    if most:
        return min(used, capacity) * _MAX_SCORE // capacity
    return 0 if used > capacity else (capacity - used) * _MAX_SCORE // capacity

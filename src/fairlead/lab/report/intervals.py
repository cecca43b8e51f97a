"""mean_and_interval: the mean of a few values and its 95 % interval by Student's t."""

from __future__ import annotations

import math

T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t for 95 % and 1 to 9 degrees of freedom."""


def mean_and_interval(values: list[float]) -> tuple[float, float]:
    """The mean and half the width of its 95 % interval; an infinite one if there is only one value."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.inf
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    t = T_95[len(values) - 2] if len(values) <= 10 else 2.262
    return mean, t * math.sqrt(variance / len(values))

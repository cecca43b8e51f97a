"""draw: one value of a distribution, from a seeded generator of the standard library."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import Distribution


def draw(distribution: Distribution, rng: Random) -> float:
    """One value; never negative."""
    law, values = distribution.law, distribution.values
    if law == "constant":
        return values[0]
    if law == "exponential":
        return rng.expovariate(1 / values[0]) if values[0] > 0 else 0.0
    if law == "uniform":
        return rng.uniform(values[0], values[1])
    if law == "lognormal":
        return rng.lognormvariate(math.log(values[0]), values[1])
    if law == "pareto":
        return values[0] * rng.paretovariate(values[1])
    return rng.choice(values)


def drawn_or(distribution: Distribution | None, rng: Random, default: float) -> float:
    """One value, or the default where no distribution is given; then nothing is drawn."""
    return default if distribution is None else draw(distribution, rng)

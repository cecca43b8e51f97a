"""The natural logarithm as Go computes it on amd64, bit for bit.

The weight of a topology key in spreading is a logarithm, and scores are compared for equality. The C library's result
differs from Go's in the last bit for about one size in a hundred, so the classic algorithm is followed here step by
step: split off the exponent, and add up a polynomial in the stated order.
"""

from __future__ import annotations

from functools import lru_cache
from math import frexp, inf, sqrt

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_L1 = 6.666666666666735130e-01
_L2 = 3.999999999940941908e-01
_L3 = 2.857142874366239149e-01
_L4 = 2.222219843214978396e-01
_L5 = 1.818357216161805012e-01
_L6 = 1.531383769920937332e-01
_L7 = 1.479819860511658591e-01
_ROOT_OF_HALF = sqrt(2) / 2


@lru_cache(maxsize=65536)
def ln(x: float) -> float:
    """The logarithm of a positive, finite number."""
    if not 0 < x < inf:
        raise ValueError(f"no logarithm of {x}")
    fraction, exponent = frexp(x)
    if fraction < _ROOT_OF_HALF:
        fraction *= 2
        exponent -= 1
    f = fraction - 1
    k = float(exponent)
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    t1 = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    t2 = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    r = t1 + t2
    h = 0.5 * f * f
    return k * _LN2_HIGH - ((h - (s * (h + r) + k * _LN2_LOW)) - f)

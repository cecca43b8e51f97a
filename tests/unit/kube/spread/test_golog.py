"""Go's logarithm, bit for bit."""

from __future__ import annotations

import math

import pytest

from fairlead.kube.spread.golog import ln


def test_the_logarithm_of_two_has_gos_bits() -> None:
    assert ln(2.0).hex() == float.fromhex("0x1.62e42fefa39efp-1").hex()


def test_it_differs_from_the_c_library_in_the_last_bit_at_most() -> None:
    for size in range(20001):
        x = float(size + 2)
        assert abs(ln(x) - math.log(x)) <= math.ulp(math.log(x))


def test_it_is_not_the_c_librarys_for_a_single_domain() -> None:
    assert ln(3.0) != math.log(3.0)
    assert ln(3.0) == pytest.approx(math.log(3.0), abs=1e-15)


@pytest.mark.parametrize("x", [0.0, -1.0, math.inf, math.nan])
def test_it_refuses_what_has_no_logarithm(x: float) -> None:
    with pytest.raises(ValueError, match="no logarithm"):
        ln(x)

"""Backoff and throttle."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.client.retry import RetryDelays, Throttle


@given(st.integers(1, 10_000), st.integers())
def test_a_delay_grows_to_its_bound_and_no_further(failures: int, seed: int) -> None:
    backoff = RetryDelays(first=0.5, factor=2.0, most=8.0, jitter=0.5)
    plain = min(8.0, 0.5 * 2.0 ** min(failures - 1, 60))
    assert plain <= backoff.delay(failures, random.Random(seed)) <= plain * 1.5


def test_a_burst_goes_through_and_the_rest_is_spread_out() -> None:
    throttle = Throttle(qps=10, burst=3)
    assert [throttle.take(100.0) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_tokens_come_back_with_time_but_never_more_than_a_burst() -> None:
    throttle = Throttle(qps=10, burst=2)
    throttle.take(0.0)
    throttle.take(0.0)
    assert throttle.take(0.1) == 0
    assert [throttle.take(1000.0) for _ in range(3)] == pytest.approx([0, 0, 0.1])


def test_a_throttle_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(ValueError, match="qps above 0"):
        Throttle(qps=0, burst=1)

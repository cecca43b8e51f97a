from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.times import micro_timestamp, seconds_of, timestamp


def test_times_are_whole_seconds_and_leases_have_microseconds() -> None:
    assert timestamp(1.9) == "1970-01-01T00:00:01Z"
    assert micro_timestamp(1.9) == "1970-01-01T00:00:01.900000Z"
    assert micro_timestamp(0.9999999) == "1970-01-01T00:00:01.000000Z"


@given(st.integers(0, 4_000_000_000))
def test_a_time_survives_being_written_and_read(seconds: int) -> None:
    assert seconds_of(timestamp(seconds)) == seconds
    assert seconds_of(micro_timestamp(seconds)) == seconds

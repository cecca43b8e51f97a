from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.controllers.stamps import micro_stamp, seconds_of, stamp


def test_times_are_whole_seconds_and_leases_have_microseconds() -> None:
    assert stamp(1.9) == "1970-01-01T00:00:01Z"
    assert micro_stamp(1.9) == "1970-01-01T00:00:01.900000Z"
    assert micro_stamp(0.9999999) == "1970-01-01T00:00:01.000000Z"


@given(st.integers(0, 4_000_000_000))
def test_a_time_survives_being_written_and_read(seconds: int) -> None:
    assert seconds_of(stamp(seconds)) == seconds
    assert seconds_of(micro_stamp(seconds)) == seconds

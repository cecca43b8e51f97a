from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.controllers.stamps import duration, micro_stamp, seconds_of, stamp


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1h2m3s", 3723.0),
        ("250ms", 0.25),
        ("7", 7.0),
        ("0", 0.0),
        ("", None),
        ("soon", None),
        ("-1s", None),
        ("5x", None),
        ("-3", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds


def test_times_are_whole_seconds_and_leases_have_microseconds() -> None:
    assert stamp(1.9) == "1970-01-01T00:00:01Z"
    assert micro_stamp(1.9) == "1970-01-01T00:00:01.900000Z"
    assert micro_stamp(0.9999999) == "1970-01-01T00:00:01.000000Z"


@given(st.integers(0, 4_000_000_000))
def test_a_time_survives_being_written_and_read(seconds: int) -> None:
    assert seconds_of(stamp(seconds)) == seconds
    assert seconds_of(micro_stamp(seconds)) == seconds

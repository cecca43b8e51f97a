"""Durations in Go's notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds", "written"),
    [
        ("15s", 15, "15s"), ("1m30.5s", 90.5, "1m30.5s"), ("600s", 600, "10m0s"), ("2h", 7200, "2h0m0s"),
        ("-1s", -1, "-1s"), ("250us", 0.00025, "250µs"), ("1.5ms", 0.0015, "1.5ms"), ("0", 0, "0s"),
        ("+3s", 3, "3s"), (".5s", 0.5, "500ms"), ("7ns", 7e-9, "7ns"), ("1h0.5s", 3600.5, "1h0m0.5s"),
    ],
)  # fmt: skip
def test_a_duration_is_read_and_written_as_go_does(text: str, seconds: float, written: str) -> None:
    assert parse_duration(text) == seconds
    assert format_duration(seconds) == written


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", 'time: missing unit in duration "5"'),
        ("", 'time: invalid duration ""'),
        ("abc", 'time: invalid duration "abc"'),
        ("5 s", 'time: unknown unit " s" in duration "5 s"'),
        (".s", 'time: invalid duration ".s"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_a_wrong_duration_is_refused_in_gos_words(text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_duration(text)
    assert str(caught.value) == words


@pytest.mark.parametrize(("text", "seconds"), [("7", 7.0), ("0.5", 0.5), ("-3", -3.0), ("2m", 120.0), ("0", 0.0)])
def test_a_number_alone_has_the_unit_that_is_given_for_it(text: str, seconds: float) -> None:
    assert parse_duration(text, unit="s") == seconds


@pytest.mark.parametrize("text", ["", ".", "-", "inf", "nan", "1h30", "5x", "soon"])
def test_a_unit_for_numbers_makes_nothing_else_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="time: "):
        parse_duration(text, unit="s")


@given(st.integers(-9 * 10**12, 9 * 10**12))
def test_what_is_written_reads_back_to_the_millisecond(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == milliseconds / 1000


@given(st.integers(0, 10**9 - 1), st.text("0123456789", min_size=1, max_size=9))
def test_seconds_with_a_fraction_are_the_same_float_with_and_without_a_sign(whole: int, fraction: str) -> None:
    assert parse_duration(f"{whole}.{fraction}s") == parse_duration(f"+{whole}.{fraction}s")

"""When schedules are due; the hard days of the year included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cluster.controllers.workloads.cron_schedule import ScheduleError, parse_schedule


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def following(schedule: str, after: str, *, zone: str = "", count: int = 1) -> list[str]:
    moment, parsed, found = at(after), parse_schedule(schedule, zone), []
    for _ in range(count):
        upcoming = parsed.next_after(moment)
        assert upcoming is not None
        moment = upcoming
        found.append(datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M"))
    return found


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:00", "2026-01-01T00:01"),
        ("* * * * *", "2026-01-01T00:00:59", "2026-01-01T00:01"),
        ("*/15 * * * *", "2026-01-01T00:15:00", "2026-01-01T00:30"),
        ("5-10/2 * * * *", "2026-01-01T00:07:00", "2026-01-01T00:09"),
        ("50/5 * * * *", "2026-01-01T00:51:00", "2026-01-01T00:55"),
        ("0 9-17 * * MON-FRI", "2026-01-02T17:30:00", "2026-01-05T09:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00", "2028-02-29T00:00"),
        ("0 0 13 * 5", "2026-02-01T00:00:00", "2026-02-06T00:00"),  # the 13th, or a Friday
        ("0 0 */2 * 5", "2026-02-06T00:00:00", "2026-02-07T00:00"),  # a step restricts the day too
        ("0 0 31 * *", "2026-01-31T00:00:00", "2026-03-31T00:00"),
        ("0 0 1 jan,jul ?", "2026-02-01T00:00:00", "2026-07-01T00:00"),
        ("@monthly", "2026-12-15T00:00:00", "2027-01-01T00:00"),
        ("@every 90m", "2026-01-01T00:00:00", "2026-01-01T01:30"),
    ],
)
def test_the_next_time_is_the_first_that_all_fields_allow(schedule: str, after: str, expected: str) -> None:
    assert following(schedule, after) == [expected]


def test_an_hour_that_clocks_skip_is_skipped() -> None:
    assert following("30 2 * * *", "2026-03-28T12:00:00", zone="Europe/Berlin", count=2) == [
        "2026-03-30T00:30",  # not on the 29th, when 02:30 never was
        "2026-03-31T00:30",
    ]


def test_an_hour_that_clocks_repeat_is_gone_through_twice() -> None:
    found = following("30 2 * * *", "2026-10-24T12:00:00", zone="Europe/Berlin", count=3)
    assert found == ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"]


def test_a_day_that_never_comes_has_no_next_time() -> None:
    assert parse_schedule("0 0 30 2 *").next_after(at("2026-01-01T00:00:00")) is None


def test_the_last_time_is_found_however_long_ago() -> None:
    yearly = parse_schedule("0 0 1 1 *")
    assert yearly.last_until(at("2026-12-31T00:00:00")) == at("2026-01-01T00:00:00")
    assert parse_schedule("* * * * *").last_until(at("2026-12-31T00:00:30")) == at("2026-12-31T00:00:00")


@pytest.mark.parametrize(
    ("schedule", "complaint"),
    [
        ("* * * *", "expected exactly 5 fields, found 4"),
        ("60 * * * *", "above maximum"),
        ("* * 0 * *", "below minimum"),
        ("9-3 * * * *", "beyond end of range"),
        ("*/0 * * * *", "positive number"),
        ("a * * * *", "failed to parse int"),
        ("@often", "unrecognized descriptor"),
        ("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"'),
    ],
)
def test_what_is_no_schedule_is_refused(schedule: str, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        parse_schedule(schedule)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone Mars/Olympus"):
        parse_schedule("* * * * *", "Mars/Olympus")


@given(
    st.sampled_from(["*/7 * * * *", "13 */5 * * *", "0 3 1-7 * 1", "*/10 8-18 * 3-5 *"]),
    st.integers(min_value=0, max_value=400 * 24 * 60),
)
def test_no_due_minute_is_ever_passed_over(schedule: str, minutes: int) -> None:
    parsed = parse_schedule(schedule)
    moment = at("2026-01-01T00:00:00") + minutes * 60
    upcoming = parsed.next_after(moment)
    assert upcoming is not None
    assert upcoming > moment
    day = datetime.fromtimestamp(moment, UTC) + timedelta(minutes=1)
    while day.timestamp() < min(upcoming, moment + 86400):
        fields = (day.minute in parsed.minute.values, day.hour in parsed.hour.values, day.month in parsed.month.values)
        by_day, by_weekday = day.day in parsed.day.values, day.isoweekday() % 7 in parsed.weekday.values
        both = parsed.day.starred or parsed.weekday.starred
        assert not (all(fields) and ((by_day and by_weekday) if both else (by_day or by_weekday)))
        day += timedelta(minutes=1)

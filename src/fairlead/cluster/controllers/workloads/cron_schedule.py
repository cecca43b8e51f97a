"""When a cron schedule is due: five fields, names, ranges, steps, lists, `@daily` and its like, `@every 90s`.

The rules are those of the schedules that CronJobs take: a day counts if it matches the day of the month or the day of
the week, when both are restricted, and both otherwise; times are those of clocks in the given zone, so an hour that a
clock skips is skipped and one that it repeats is gone through twice.

Invariant: `next_after(t) > t`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from fairlead.core.model.durations import parse_duration

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_WEEKDAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_SHORTHANDS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_PART = re.compile(r"(\*|\?|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/([0-9]+))?")
_ZONE_PART = re.compile(r"[A-Za-z0-9._+][A-Za-z0-9._+-]{0,13}")
_LONGEST = 9
"""Characters of a number or a name; Python reads no int of more than some thousand digits."""
_YEARS = 5
"""A schedule that is not due for so long (the 30th of February) is never due."""


class ScheduleError(ValueError):
    """A text that is no schedule, or a zone that is not known."""


@dataclass(frozen=True, slots=True)
class _Field:
    values: frozenset[int]
    starred: bool


_ANY = _Field(frozenset(), starred=True)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Either five fields or, with `every`, a pause in seconds."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    zone: tzinfo = UTC
    every: float = 0.0

    def next_after(self, moment: float) -> float | None:
        """The first due time after a moment; None if there is none within years."""
        if self.every:
            return moment // 1 + self.every
        first = moment - moment % 60 + 60
        begin = datetime.fromtimestamp(first, self.zone)
        day, end = begin.date(), begin.year + _YEARS
        while day.year <= end:
            if day.month not in self.month.values:
                day = day.replace(day=1) + timedelta(days=monthrange(day.year, day.month)[1])
                continue
            if self._takes_day(day.day, day.isoweekday() % 7):
                # A clock that is put back may show the hour before once more.
                hours = sorted(hour for hour in self.hour.values if day > begin.date() or hour >= begin.hour - 1)
                for hour in hours:
                    times = self._times(datetime(day.year, day.month, day.day, hour))
                    found = min((time for time in times if time >= first), default=None)
                    if found is not None:
                        return found
            day += timedelta(days=1)
        return None

    def last_until(self, moment: float) -> float | None:
        """The last due time up to a moment, looked for in ever longer stretches before it."""
        stretch = 60.0
        while stretch < _YEARS * 366 * 86400:
            found = self.next_after(moment - stretch)
            if found is not None and found <= moment:
                while (later := self.next_after(found)) is not None and later <= moment:
                    found = later
                return found
            stretch *= 2
        return None

    def clock(self, moment: float) -> str:
        """A moment in RFC 3339 as clocks in this zone show it."""
        return datetime.fromtimestamp(moment, self.zone).isoformat().replace("+00:00", "Z")

    def _takes_day(self, day: int, weekday: int) -> bool:
        by_day, by_weekday = day in self.day.values, weekday in self.weekday.values
        if self.day.starred or self.weekday.starred:
            return by_day and by_weekday
        return by_day or by_weekday

    def _times(self, hour: datetime) -> Iterator[float]:
        """The moments within an hour at which clocks show the right minute: when they are changed, none or twice."""
        for minute in self.minute.values:
            wall = hour.replace(minute=minute)
            for moment in {wall.replace(fold=fold, tzinfo=self.zone).timestamp() for fold in (0, 1)}:
                if datetime.fromtimestamp(moment, self.zone).replace(tzinfo=None) == wall:
                    yield moment


@lru_cache(maxsize=512)
def parse_schedule(text: str, zone: str = "") -> Schedule:
    """Raises ScheduleError with what is wrong."""
    where = zone_of(zone)
    text = text.strip()
    if text.startswith("@every "):
        try:
            pause = parse_duration(text.removeprefix("@every "))
        except ValueError as error:
            raise ScheduleError(f"failed to parse duration {text}: {error}") from None
        return Schedule(_ANY, _ANY, _ANY, _ANY, _ANY, zone=where, every=max(1.0, pause // 1))
    fields = _SHORTHANDS.get(text, text).lower().split()
    if text.startswith("@") and text not in _SHORTHANDS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    if len(fields) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    return Schedule(
        minute=_field(fields[0], 0, 59, {}),
        hour=_field(fields[1], 0, 23, {}),
        day=_field(fields[2], 1, 31, {}),
        month=_field(fields[3], 1, 12, _MONTHS),
        weekday=_field(fields[4], 0, 6, _WEEKDAYS),
        zone=where,
    )


def is_zone_part(text: str) -> bool:
    """Whether a zone's name may have this between its slashes. A zone is looked up by its name in a directory, so no
    part leads out of there."""
    return _ZONE_PART.fullmatch(text) is not None and text not in (".", "..")


def zone_of(name: str) -> tzinfo:
    """The time zone of that name, UTC without one. Raises ScheduleError."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _field(text: str, low: int, high: int, names: Mapping[str, int]) -> _Field:
    values: set[int] = set()
    starred = False
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found is None or max(map(len, found.groups(""))) > _LONGEST:
            raise ScheduleError(f"failed to parse int from {part}")
        step = int(found[3] or 1)
        if step == 0:
            raise ScheduleError(f"step of range should be a positive number: {part}")
        if found[1] in ("*", "?"):
            first, last = low, high
            starred = starred or step == 1
        else:
            first = _number(found[1], names)
            last = _number(found[2], names) if found[2] else high if found[3] else first
        if first < low:
            raise ScheduleError(f"beginning of range ({first}) below minimum ({low}): {part}")
        if last > high:
            raise ScheduleError(f"end of range ({last}) above maximum ({high}): {part}")
        if first > last:
            raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
        values.update(range(first, last + 1, step))
    return _Field(frozenset(values), starred)


def _number(text: str, names: Mapping[str, int]) -> int:
    if text in names:
        return names[text]
    if not text.isdecimal():
        raise ScheduleError(f"failed to parse int from {text}")
    return int(text)

"""Instants with nanoseconds, leap seconds and any year, which ``datetime`` cannot hold.

An instant is a pair of whole seconds since 1970 and nanoseconds. A leap second is the second of its
``:59`` with nanoseconds of 1e9 and more, so that pairs compare as instants do.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from colmem.contract.errors import InvalidRequest
from colmem.contract.scalars import trim

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_SECONDS: Final = 86_400
_NANOS: Final = 1_000_000_000
_YEAR_MIN, _YEAR_MAX = -262_143, 262_142

_STRICT = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[Tt ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    r"(?:[Zz]|(?P<sign>[+\u2212-])(?P<zone_hour>[0-9]{2}):(?P<zone_minute>[0-9]{2}))"
)
_RELAXED = re.compile(
    r"(?P<year>[0-9]{4}|[+-][0-9]{4,6})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})(?:[Tt]|\s+)"
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]+))?"
    r"\s*(?:[Zz]|[Uu][Tt][Cc]|(?P<sign>[+\u2212-])(?P<zone_hour>[0-9]{2}):?(?P<zone_minute>[0-9]{2}))"
)
_EXPECTED: Final = "expected RFC 3339 with an offset, such as 2026-10-04T09:30:00Z"


class Timestamp:
    """An instant: whole seconds since 1970 UTC and nanoseconds (1e9 and more in a leap second)."""

    __slots__ = ("nanos", "seconds")
    seconds: int
    nanos: int

    def __init__(self, seconds: int, nanos: int = 0) -> None:
        if not 0 <= nanos < 2 * _NANOS:
            raise InvalidRequest(f"nanos is {nanos}, expected 0 to {2 * _NANOS - 1}")
        object.__setattr__(self, "seconds", seconds)
        object.__setattr__(self, "nanos", nanos)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Timestamp does not change; cannot set {name}")

    @classmethod
    def parse(cls, text: str, *, strict: bool = False) -> Timestamp:
        """Read RFC 3339 text; unless ``strict`` also its relaxed spellings.

        Raises
        ------
        InvalidRequest
            When the text is not a time, has no offset, or names a date that does not exist.
        """
        # YYYY-MM-DDTHH:MM:SSZ, by far the most frequent, is read faster by `fromisoformat`.
        if len(text) == 20 and text[4::3] == "--T::Z" and text[11:13] != "24":
            try:
                passed = datetime.fromisoformat(text) - _EPOCH
            except ValueError:
                pass  # second 60, year 0, or no such date: decided below
            else:
                return cls(passed.days * _DAY_SECONDS + passed.seconds)
        match = _STRICT.fullmatch(text)
        if match is None and not strict:
            match = _RELAXED.fullmatch(trim(text))
        if match is None:
            raise InvalidRequest(f"{text!r} is not a timestamp; {_EXPECTED}")
        year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
        hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
        zone_hour, zone_minute = int(match["zone_hour"] or 0), int(match["zone_minute"] or 0)
        fits = 1 <= month <= 12 and 1 <= day <= _month_days(year, month)
        fits = fits and hour <= 23 and minute <= 59 and second <= 60
        if not fits or zone_hour > 23 or zone_minute > 59 or not _YEAR_MIN <= year <= _YEAR_MAX:
            raise InvalidRequest(f"{text!r} names a time that does not exist; {_EXPECTED}")
        nanos = int((match["fraction"] or "0")[:9].ljust(9, "0"))
        if second == 60:
            second, nanos = 59, nanos + _NANOS
        offset = zone_hour * 3600 + zone_minute * 60
        if match["sign"] not in (None, "+"):
            offset = -offset
        day_number = _days_from_civil(year, month, day)
        return cls(day_number * _DAY_SECONDS + hour * 3600 + minute * 60 + second - offset, nanos)

    @classmethod
    def of(cls, value: Timestamp | str | datetime) -> Timestamp:
        """Take an instant, its text, or a datetime that knows its offset.

        Raises
        ------
        InvalidRequest
            For a naive datetime, a text that is no time, or another type.
        """
        if type(value) is cls:
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, datetime):
            if value.utcoffset() is None:
                raise InvalidRequest(
                    f"datetime {value.isoformat()} has no time zone; "
                    "give it one, such as value.replace(tzinfo=datetime.UTC)"
                )
            passed = value - _EPOCH
            return cls(passed.days * _DAY_SECONDS + passed.seconds, passed.microseconds * 1000)
        raise InvalidRequest(f"{type(value).__name__} is not a timestamp; {_EXPECTED}")

    @classmethod
    def now(cls) -> Timestamp:
        """Return the present."""
        return cls(*divmod(time.time_ns(), _NANOS))

    def to_datetime(self) -> datetime:
        """Convert to UTC, cut to microseconds; a leap second becomes the end of its ``:59``.

        Raises
        ------
        OverflowError
            When the year is not within 1 to 9999.
        """
        micros = min(self.nanos, _NANOS - 1) // 1000
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=micros)

    def text(self, *, whole_seconds: bool = False) -> str:
        """Canonical text in UTC with 0, 3, 6 or 9 fraction digits, the fewest that lose nothing."""
        day, second = divmod(self.seconds, _DAY_SECONDS)
        minute, second = divmod(second, 60)
        nanos = self.nanos
        if nanos >= _NANOS:
            nanos, second = nanos - _NANOS, second + 1
        hour, minute = divmod(minute, 60)
        fraction = ""
        if nanos and not whole_seconds:
            fraction = f".{nanos:09d}"
            while fraction.endswith("000"):
                fraction = fraction[:-3]
        return f"{_date_text(day)}T{hour:02d}:{minute:02d}:{second:02d}{fraction}Z"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Timestamp.parse({self.text()!r})"

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return self.seconds == other.seconds and self.nanos == other.nanos

    def __lt__(self, other: Timestamp) -> bool:
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __le__(self, other: Timestamp) -> bool:
        return (self.seconds, self.nanos) <= (other.seconds, other.nanos)

    def __gt__(self, other: Timestamp) -> bool:
        return (self.seconds, self.nanos) > (other.seconds, other.nanos)

    def __ge__(self, other: Timestamp) -> bool:
        return (self.seconds, self.nanos) >= (other.seconds, other.nanos)

    def __reduce__(self) -> tuple[type[Timestamp], tuple[int, int]]:
        return Timestamp, (self.seconds, self.nanos)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if _is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_from_civil(year: int, month: int, day: int) -> int:
    # Days since 1970-01-01 in the proleptic Gregorian calendar, counting years from March.
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@lru_cache(maxsize=4096)
def _date_text(day_number: int) -> str:
    era, day_of_era = divmod(day_number + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    year_text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{year_text}-{month:02d}-{day:02d}"

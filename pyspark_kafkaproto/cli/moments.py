"""Points in time and spans of it, as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from pyspark_kafkaproto.errors import ConfigError

_SECONDS = {"us": 1e-6, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_MOST_S = 100 * 366 * 86400
_MOST_DIGITS = 18  # of a time in milliseconds that brokers can be asked for
_SPAN = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>us|ms|s|m|h|d|w)")
TIME_EXAMPLE = "2026-11-21T08:00, 2026-11-21T08:00:00+01:00, -10m, or milliseconds since 1970"


def parse_span(option: str, text: str) -> float:
    """`250us`, `500ms`, `90s`, `10m`, `2h`, `7d`, `1w` as seconds; else ConfigError."""
    return _span(option, text, text, "100ms, 90s, 10m, 2h or 7d")


def parse_time(option: str, text: str, allowed: str = TIME_EXAMPLE) -> int:
    """A point in time as milliseconds since 1970; without a zone it is local time.

    A span with a minus in front is that long ago. What else the option takes is in `allowed`.
    """
    text = text.strip()
    # Shorter numbers are dates to ISO 8601.
    if text.isdecimal() and 8 < len(text) <= _MOST_DIGITS:
        return int(text)
    # In here, as dissect does without:
    from pyspark_kafkaproto.cluster.given import ago_ms, instant_ms  # noqa: PLC0415

    if text.startswith("-"):
        return ago_ms(_span(option, text, text[1:], "-90s, -10m, -2h or -7d"))
    try:
        found_ms = instant_ms(datetime.fromisoformat(text))
    except (ValueError, OverflowError):  # the latter beside the years 1 and 9999
        raise ConfigError(option, text, f"expected {allowed}") from None
    if found_ms < 0:
        raise ConfigError(option, text, "expected a time from 1970 on, as those of records are")
    return found_ms


def _span(option: str, given: str, text: str, examples: str) -> float:
    """What `text` means, in seconds; errors name `given`, of which it is a part."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise ConfigError(option, given, f"expected a span such as {examples}")
    seconds = float(match["count"]) * _SECONDS[match["unit"]]
    if seconds > _MOST_S:
        raise ConfigError(option, given, f"expected a span of up to 100 years, such as {examples}")
    return seconds


def show_time(timestamp_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC; as they are where Python knows no such date."""
    seconds, millis = divmod(timestamp_ms, 1000)
    try:
        return f"{_show_second(seconds)}.{millis:03d}Z"
    except (OverflowError, ValueError, OSError):  # producers give records any timestamp
        return str(timestamp_ms)


@lru_cache(maxsize=1024)
def _show_second(seconds: int) -> str:
    """Neighbours among records have it in common."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").removesuffix("+00:00")

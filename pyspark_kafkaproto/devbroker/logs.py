"""What of Kafka's log says why it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SHOWN_LINES = 30
# What Kafka raises where it is configured wrongly, whatever comes before the exception's class.
_REASON = re.compile(
    r"\b(?:Config|InvalidConfiguration|Kafka|IllegalArgument)Exception: (?P<message>.*[^.\s])"
)
# Java's own words do not say what is missing.
_ADVICE = {
    "No available authentication scheme": (
        "a listener of SSL has no keystore: give the property ssl.keystore.location, and what "
        "belongs to it"
    ),
    "entry in the JAAS configuration": (
        "a listener has no users: give the property "
        "listener.name.NAME.MECHANISM.sasl.jaas.config, both in small letters"
    ),
}


def telling(text: str) -> str:
    """The first error with what follows it; the last lines when no error was logged."""
    lines = text.splitlines()
    return "\n".join(list(_from_error(lines))[:_SHOWN_LINES] or lines[-_SHOWN_LINES:])


def reason(text: str) -> str:
    """What the first exception about the configuration says, to be put behind what failed."""
    for line in _from_error(text.splitlines()):
        if match := _REASON.search(line):
            message = match["message"]
            advice = "".join(f" ({own})" for sign, own in _ADVICE.items() if sign in message)
            return f": {message}{advice}"
    return ""


def _from_error(lines: list[str]) -> Iterator[str]:
    """The lines from the first error on."""
    for number, line in enumerate(lines):
        if " ERROR " in line or " FATAL " in line or line.startswith(("Error", "Exception")):
            yield from lines[number:]
            return

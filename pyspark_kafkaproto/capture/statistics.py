"""Counts and latencies of a conversation, in memory that does not grow with it."""

from __future__ import annotations

from collections import Counter
from math import ceil, log
from typing import Any, NamedTuple

from pyspark_kafkaproto.capture.message import REQUEST, Message
from pyspark_kafkaproto.capture.subjects import About
from pyspark_kafkaproto.error_codes import error_code

# Latencies are counted in classes, each 5 % wider than the one before it.
_RATIO = 1.05
_LEAST_NS = 1_000
# Topics beyond so many are counted as one: a capture may name any number of them.
_TOPICS_MAX = 10_000
_OTHER = "(other topics)"


class Latencies:
    """How long responses took; percentiles to within 5 %."""

    def __init__(self) -> None:
        self.count = 0
        self.max_ns = 0
        self._classes: Counter[int] = Counter()

    def add(self, latency_ns: int) -> None:
        """One more."""
        self.count += 1
        self.max_ns = max(self.max_ns, latency_ns)
        self._classes[ceil(log(max(latency_ns, _LEAST_NS) / _LEAST_NS, _RATIO))] += 1

    def percentile_ms(self, percent: float) -> float:
        """What so many percent of them did not exceed."""
        wanted = self.count * percent / 100
        for number in sorted(self._classes):
            wanted -= self._classes[number]
            if wanted <= 0:
                return min(_LEAST_NS * _RATIO**number, self.max_ns) / 1e6
        return self.max_ns / 1e6


class ApiCount(NamedTuple):
    """One API: how often, how much, how slow."""

    requests: int
    request_bytes: int
    responses: int
    response_bytes: int
    latencies: Latencies


class Statistics:
    """Adds up messages.

    Attributes:
        errors: (API, error name) to how often.
        topic_bytes: topic to bytes of record batches, written and read.
        problems: messages that could not be read.
    """

    def __init__(self) -> None:
        self.errors: Counter[tuple[str, str]] = Counter()
        self.topic_bytes: dict[str, list[int]] = {}
        self.problems = 0
        self._sums: dict[str, list[int]] = {}
        self._latencies: dict[str, Latencies] = {}

    def add(self, message: Message, found: About) -> None:
        """One more message."""
        sums = self._sums.setdefault(message.api, [0, 0, 0, 0])
        side = 0 if message.kind == REQUEST else 2
        sums[side] += 1
        sums[side + 1] += message.size_bytes
        if message.latency_ns is not None:
            self._latencies.setdefault(message.api, Latencies()).add(message.latency_ns)
        for code, _, _ in found.errors:
            self.errors[message.api, error_code(code).name] += 1
        self.problems += bool(message.problem)
        for topic, parts in found.topics.items():
            size = sum(part.record_bytes or 0 for part in parts)
            if size:
                known = topic in self.topic_bytes or len(self.topic_bytes) < _TOPICS_MAX
                both = self.topic_bytes.setdefault(topic if known else _OTHER, [0, 0])
                both[message.kind != REQUEST] += size

    def apis(self) -> dict[str, ApiCount]:
        """By API, those with most responses first."""
        order = sorted(self._sums, key=lambda api: (-self._sums[api][2], api))
        return {api: self._count(api) for api in order}

    def _count(self, api: str) -> ApiCount:
        requests, sent, responses, received = self._sums[api]
        latencies = self._latencies.get(api, Latencies())
        return ApiCount(requests, sent, responses, received, latencies)

    def as_json(self) -> dict[str, Any]:
        """For programs; latencies in milliseconds, sizes in bytes."""
        return {
            "apis": {
                api: {
                    **{key: value for key, value in count._asdict().items() if key != "latencies"},
                    "latency_ms": {
                        f"p{percent}": float(f"{count.latencies.percentile_ms(percent):.3g}")
                        for percent in (50, 95, 99, 100)
                    },
                }
                for api, count in self.apis().items()
            },
            "topics": {
                topic: {"written_bytes": sizes[0], "read_bytes": sizes[1]}
                for topic, sizes in self.topic_bytes.items()
            },
            "errors": [
                {"api": api, "error": name, "count": count}
                for (api, name), count in self.errors.most_common()
            ],
            "unreadable": self.problems,
        }

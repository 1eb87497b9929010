"""The properties of a group member as values: names, meanings and defaults are Kafka's own.

What every client needs (brokers, time-outs, security) and every reader (sizes, isolation.level) is
in `ClientConfig`; this is what a member of a group needs beside it. Where a default is not the Java
client's, the field says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.properties import (
    INT32_MAX,
    boolean,
    kafka_property,
    names_of,
    one_of,
    read_fields,
    seconds,
    text,
    whole_number,
    words,
)

_STRATEGY: Final = "partition.assignment.strategy"
_REMOTE_ASSIGNOR: Final = "group.remote.assignor"
_COOPERATIVE: Final = "cooperative-sticky"
_INTERNAL: Final = "exclude.internal.topics"
_RESETS: Final = ("latest", "earliest", "none")
_BY_DURATION: Final = "by_duration:"
_UNITS_S: Final = {"D": 86400, "H": 3600, "M": 60, "S": 1}
_DURATION: Final = re.compile(
    _BY_DURATION + r"P(?=.*\d[DHMS]$)(?:(?P<D>\d+)D)?"
    r"(?:T(?:(?P<H>\d+)H)?(?:(?P<M>\d+)M)?(?:(?P<S>\d+(?:\.\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
# What the brokers decide in the other protocol: as in the Java client it cannot be given here.
_OF_ONE_PROTOCOL: Final = {
    "classic": {_REMOTE_ASSIGNOR: _STRATEGY},
    "consumer": {
        _STRATEGY: _REMOTE_ASSIGNOR,
        "session.timeout.ms": "the brokers' group.consumer.session.timeout.ms",
        "heartbeat.interval.ms": "the brokers' group.consumer.heartbeat.interval.ms",
        _INTERNAL: "the pattern alone, by which the brokers choose",
    },
}
_JAVA_CLASSES: Final = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": _COOPERATIVE,
}
_ASSIGNORS: Final = tuple(_JAVA_CLASSES.values())


def _strategies(name: str, given: str) -> tuple[str, ...]:
    found = tuple(_JAVA_CLASSES.get(part, part) for part in words(name, given))
    if not found or not set(found) <= set(_ASSIGNORS):
        raise ConfigError(name, given, f"expected some of {', '.join(_ASSIGNORS)}")
    return tuple(dict.fromkeys(found))


def _reset(name: str, given: str) -> str:
    text = given.strip()
    if _back_s(text) is not None:
        return _BY_DURATION + text[len(_BY_DURATION) :].upper()
    try:
        return one_of(*_RESETS)(name, text)
    except ConfigError as error:
        allowed = f"expected {' or '.join(_RESETS)} or by_duration:P7D, PT12H30M, … (KIP-1106)"
        raise ConfigError(name, given, allowed) from error


def _back_s(text: str) -> float | None:
    """The seconds of a `by_duration`, which is ISO 8601 as Java reads it; None: it is none."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return sum(float(found[unit] or 0) * seconds for unit, seconds in _UNITS_S.items())


def _name(name: str, given: str) -> str:
    if not given.strip():
        raise ConfigError(name, given, "expected a name")
    return text(name, given)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """How to be a member of a group, and through which client. Times are seconds."""

    client: ClientConfig
    group_id: str = kafka_property("group.id", _name, "")
    group_instance_id: str | None = kafka_property("group.instance.id", _name)
    group_protocol: str = kafka_property("group.protocol", one_of("classic", "consumer"), "classic")
    group_remote_assignor: str | None = kafka_property(_REMOTE_ASSIGNOR, _name)
    # librdkafka's default and the second one of the Java client's.
    assignors: tuple[str, ...] = kafka_property(
        _STRATEGY, _strategies, ("range", "roundrobin", _COOPERATIVE)
    )
    session_timeout_s: float = kafka_property("session.timeout.ms", seconds(), 45.0)
    heartbeat_interval_s: float = kafka_property("heartbeat.interval.ms", seconds(), 3.0)
    max_poll_interval_s: float = kafka_property("max.poll.interval.ms", seconds(), 300.0)
    # 500 in the Java client, whose users have records one by one.
    max_poll_records: int | None = kafka_property("max.poll.records", whole_number(1, INT32_MAX))
    auto_offset_reset: str = kafka_property("auto.offset.reset", _reset, "latest")
    enable_auto_commit: bool = kafka_property("enable.auto.commit", boolean, True)
    auto_commit_interval_s: float = kafka_property("auto.commit.interval.ms", seconds(0), 5.0)
    exclude_internal_topics: bool = kafka_property(_INTERNAL, boolean, True)
    fetch_min_bytes: int = kafka_property("fetch.min.bytes", whole_number(0, INT32_MAX), 1)
    fetch_max_wait_s: float = kafka_property("fetch.max.wait.ms", seconds(0), 0.5)
    metadata_max_age_s: float = kafka_property(
        "metadata.max.age.ms", seconds(0, is_long=True), 300.0
    )

    @property
    def reset_back_s(self) -> float | None:
        """How long before now auto.offset.reset begins; None where it names no duration."""
        return _back_s(self.auto_offset_reset)

    @property
    def is_cooperative(self) -> bool:
        """Whether each of its assignors lets members read on while partitions move.

        As in the Java client: beside another assignor the cooperative one is used the eager way, so
        that a group can go over from that one, member by member.
        """
        return set(self.assignors) == {_COOPERATIVE}

    @classmethod
    def parse(cls, properties: Mapping[str, object], prefix: str = "") -> ConsumerConfig:
        """Read Kafka's properties, the client's among them; `prefix` stands before names in errors.

        Raises:
            ConfigError: a value that cannot be used, no group.id, or heartbeats that would come too
                late for the session.
        """
        values, others = read_fields(cls, properties, prefix)
        parsed = cls(client=ClientConfig.parse(others, prefix, names_of(cls)), **values)
        if not parsed.group_id:
            raise ConfigError(prefix + "group.id", None, "required: the group to be a member of")
        for name, instead in _OF_ONE_PROTOCOL[parsed.group_protocol].items():
            if name in properties:
                allowed = f"not with group.protocol={parsed.group_protocol}: there it is {instead}"
                raise ConfigError(prefix + name, properties[name], allowed)
        if parsed.heartbeat_interval_s >= parsed.session_timeout_s:
            allowed = f"expected less than session.timeout.ms, {parsed.session_timeout_s * 1000:g}"
            given = round(parsed.heartbeat_interval_s * 1000)
            raise ConfigError(prefix + "heartbeat.interval.ms", given, allowed)
        return parsed

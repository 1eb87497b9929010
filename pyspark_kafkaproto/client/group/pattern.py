"""What a member may subscribe to: topics by their names, or by a pattern."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster.names import TOPIC_NAMES, is_topic_name
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ConsumerConfig

INCREMENTAL: Final = "consumer"
"""The `group.protocol` of KIP-848."""

_BY_PATTERN: Final = "for a pattern: SubscriptionPattern, with group.protocol=consumer"


class SubscriptionPattern(NamedTuple):
    """All topics whose whole name matches: the brokers look, and go on looking.

    Attributes:
        pattern: a regular expression in the syntax of RE2/J, not in that of Python.
    """

    pattern: str


def checked_topics(
    topics: Collection[str] | SubscriptionPattern, config: ConsumerConfig
) -> frozenset[str] | SubscriptionPattern:
    """What the brokers can be asked for.

    Raises:
        ConfigError: no set of names that topics can have, no pattern, or none in this protocol.
    """
    if isinstance(topics, SubscriptionPattern):
        if config.group_protocol != INCREMENTAL:
            allowed = "expected a set of names, or group.protocol=consumer: brokers look then"
            raise ConfigError("topics", topics, allowed)
        if not isinstance(topics.pattern, str) or not topics.pattern:
            raise ConfigError("topics", topics, "expected a pattern: .* is all topics")
        return topics
    _check_names(topics)
    return frozenset(topics)


def _check_names(topics: object) -> None:
    if isinstance(topics, str | bytes) or not isinstance(topics, Iterable) or not topics:
        allowed = f"expected a set of names, at least one; {_BY_PATTERN}"
        raise ConfigError("topics", topics, allowed)
    for name in topics:
        if not is_topic_name(name):
            allowed = f"no topic is called so: {TOPIC_NAMES}; {_BY_PATTERN}"
            raise ConfigError("topics", name, allowed)

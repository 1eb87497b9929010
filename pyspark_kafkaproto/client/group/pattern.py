"""What a member may subscribe to: topics by their names, or by a pattern."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster import Topic
from pyspark_kafkaproto.cluster.names import TOPIC_NAMES, is_topic_name, topic_pattern
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ConsumerConfig

INCREMENTAL: Final = "consumer"
"""The `group.protocol` of KIP-848."""

_BY_PATTERN: Final = "for a pattern: SubscriptionPattern"
_OTHERS: Final = "with group.protocol=consumer brokers read it, as one of RE2/J's"


class SubscriptionPattern(NamedTuple):
    """All topics whose whole name matches, those that are made later, too.

    Attributes:
        pattern: a regular expression. In the classic protocol each member looks, by Python's `re`;
            with group.protocol=consumer the brokers do, in the syntax of RE2/J.
    """

    pattern: str


def checked_topics(
    topics: Collection[str] | SubscriptionPattern, config: ConsumerConfig
) -> frozenset[str] | SubscriptionPattern:
    """What can be subscribed to.

    Raises:
        ConfigError: no set of names that topics can have, and no pattern; in the classic protocol,
            where it is ours to read, no regular expression either.
    """
    if isinstance(topics, SubscriptionPattern):
        if not isinstance(topics.pattern, str) or not topics.pattern:
            raise ConfigError("topics", topics, "expected a pattern: .* is all topics")
        if config.group_protocol != INCREMENTAL:
            compiled(topics)
        return topics
    return checked_names(topics, f"; {_BY_PATTERN}")


def checked_names(topics: Collection[str], otherwise: str = "") -> frozenset[str]:
    """Names that topics can have, at least one.

    Args:
        topics: as they were given.
        otherwise: what else may be given, for the error.

    Raises:
        ConfigError: they are no such set.
    """
    is_set = isinstance(topics, Iterable) and not isinstance(topics, str | bytes)
    names = list(topics) if is_set else []  # an iterator gives them once
    if not names:
        allowed = f"expected a set of names, at least one{otherwise}"
        raise ConfigError("topics", topics, allowed)
    for name in names:
        if not is_topic_name(name):
            allowed = f"no topic is called so: {TOPIC_NAMES}{otherwise}"
            raise ConfigError("topics", name, allowed)
    return frozenset(names)


def compiled(pattern: SubscriptionPattern) -> re.Pattern[str]:
    """The pattern as Python reads it, whose `fullmatch` is Java's `matches`.

    Raises:
        ConfigError: it is no regular expression, or Java would read it as another one.
    """
    try:
        return topic_pattern("topics", pattern.pattern)
    except ConfigError as error:
        raise ConfigError("topics", pattern.pattern, f"{error.allowed}; {_OTHERS}") from None


def matching(
    pattern: re.Pattern[str], topics: Iterable[Topic], *, excludes_internal: bool
) -> frozenset[str]:
    """The names that match as a whole, of topics that are there and may be seen."""
    return frozenset(
        topic.name
        for topic in topics
        if not topic.error_code and not (excludes_internal and topic.is_internal)
        if pattern.fullmatch(topic.name)
    )

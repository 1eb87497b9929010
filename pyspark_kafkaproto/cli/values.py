"""Values of options that more than one command has: pairs, partitions, offsets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition, Topology
from pyspark_kafkaproto.errors import BrokerError, ConfigError, joined

_ID = re.compile(r"[0-9]{1,10}")
_OFFSET = re.compile(r"-?\d{1,19}")
_TOPIC_PARTITIONS = re.compile(r"(?P<topic>[^:]+)(?::(?P<numbers>\d+(?:,\d+)*))?")


def parse_pairs(option: str, texts: Iterable[str], form: str = "KEY=VALUE") -> dict[str, str]:
    """`KEY=VALUE` each; a key that comes twice is an error, not a riddle.

    Args:
        option: where they come from, for the error.
        texts: as they were given.
        form: what they are called where they are asked for, for the error.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key or key in found:
            # A value may be a secret.
            expected = f"expected {form}, each {form.partition('=')[0]} once"
            raise ConfigError(option, key if equals else text, expected)
        found[key] = value
    return found


def is_id(text: str) -> bool:
    """Whether it is a number that a broker or a partition can have."""
    return bool(_ID.fullmatch(text)) and int(text) < 2**31


def is_offset(text: str, least: int = 0) -> bool:
    """Whether it is an offset, from `least` on."""
    return bool(_OFFSET.fullmatch(text)) and least <= int(text) < 2**63


def parse_ids(option: str, text: str) -> list[int]:
    """`1,2,3`: ids of brokers."""
    ids = text.split(",")
    if not all(map(is_id, ids)) or len(set(ids)) < len(ids):
        raise ConfigError(option, text, "expected ids of brokers, each once: 1,2,3")
    return list(map(int, ids))


def parse_partition_offsets(
    option: str, topic: str, texts: Iterable[str], *, least: int = 0
) -> dict[TopicPartition, int]:
    """`PARTITION=OFFSET` each, of one topic."""
    return {
        TopicPartition(topic, _number(option, number)): _offset(option, offset, least)
        for number, offset in parse_pairs(option, texts, "PARTITION=OFFSET").items()
    }


def parse_topic_offsets(option: str, texts: Iterable[str]) -> dict[TopicPartition, int]:
    """`TOPIC:PARTITION=OFFSET` each."""
    found = {}
    form = "TOPIC:PARTITION=OFFSET"
    for place, offset in parse_pairs(option, texts, form).items():
        topic, colon, number = place.rpartition(":")
        if not colon or not topic:
            raise ConfigError(option, f"{place}={offset}", f"expected {form}")
        found[TopicPartition(topic, _number(option, number))] = _offset(option, offset, 0)
    return found


def find_partitions(
    cluster: KafkaCluster, option: str, texts: Iterable[str]
) -> set[TopicPartition]:
    """`TOPIC`, which is all its partitions, or `TOPIC:0,1`.

    Raises:
        ConfigError: a text is neither, or a topic has no such partition.
        BrokerError: topics are not there or may not be seen; names each.
    """
    named = [(text, *_place(option, text)) for text in texts]
    if not named:
        return set()
    topology = existing_topics(cluster, [topic for _, topic, _ in named])
    found: set[TopicPartition] = set()
    for text, topic, numbers in named:
        there = topology.partitions_of({topic})
        chosen = {TopicPartition(topic, number) for number in numbers} or there
        if missing := chosen - there:
            names = ", ".join(map(str, sorted(missing)))
            has = f"{topic} has {_numbers(len(there))}"
            raise ConfigError(option, text, f"there is no {names}: {has}")
        found |= chosen
    return found


def known_texts(
    cluster: KafkaCluster, option: str, texts: Iterable[str], refused: Refused
) -> list[str]:
    """Those of `texts`, as for `find_partitions`, whose topics are not refused.

    Raises:
        ConfigError: a text is none.
    """
    named = [(text, _place(option, text)[0]) for text in texts]
    topology, errors = told_topics(cluster, [topic for _, topic in named])
    for error in errors:
        refused.note(error)
    return [text for text, topic in named if topic in topology.topics]


def existing_topics(cluster: KafkaCluster, names: Collection[str]) -> Topology:
    """Brokers, and these topics with their partitions.

    Raises:
        BrokerError: topics are not there or may not be seen; names each.
    """
    topology, errors = told_topics(cluster, names)
    if errors:
        raise joined(errors)
    return topology


def told_topics(
    cluster: KafkaCluster, names: Collection[str]
) -> tuple[Topology, list[BrokerError]]:
    """Brokers, and those of these topics that are there and may be seen; the others' errors.

    News of topics that nobody knows yet is waited for once, not for each.
    """
    try:
        return cluster.describe(set(names), must_exist=True), []
    except BrokerError:
        topology = cluster.describe(set(names))
    errors = {name: _error_of(topology, name) for name in dict.fromkeys(names)}
    there = {name: topology.topics[name] for name, error in errors.items() if error is None}
    return replace(topology, topics=there), [error for error in errors.values() if error]


def _error_of(topology: Topology, topic: str) -> BrokerError | None:
    try:
        topology.topic(topic)
    except BrokerError as error:
        return error
    return None


def _place(option: str, text: str) -> tuple[str, list[int]]:
    """The topic, and the partitions that are named."""
    match = _TOPIC_PARTITIONS.fullmatch(text)
    numbers = [] if match is None or match["numbers"] is None else match["numbers"].split(",")
    if match is None or not all(map(is_id, numbers)):
        raise ConfigError(option, text, "expected TOPIC or TOPIC:0,1")
    return match["topic"], list(map(int, numbers))


def _numbers(count: int) -> str:
    return f"the partitions 0 to {count - 1}" if count > 1 else "partition 0 alone"


def _number(option: str, text: str) -> int:
    if not is_id(text):
        raise ConfigError(option, text, "expected the number of a partition")
    return int(text)


def _offset(option: str, text: str, least: int) -> int:
    if not is_offset(text, least):
        raise ConfigError(option, text, f"expected an offset, {least} or more")
    return int(text)

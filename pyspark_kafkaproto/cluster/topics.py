"""Topics made, grown and deleted, and their records cut off at the front.

Topics are the controller's business, records the leaders'. Nothing here waits until every broker
has heard of a new topic: whoever asks for one that is a moment old tries again for a second.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_kafkaproto.cluster.asking import Question, each_place, nothing_done_yet
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.controller import ask_controller, controller_of, timeout_ms
from pyspark_kafkaproto.cluster.given import (
    LAST_OFFSET,
    LAST_PARTITION,
    check_map,
    checked_brokers,
    checked_each,
    within,
)
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.offsets import LATEST_TIMESTAMP, list_bounds
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import (
    TopicPartition,
    by_topic,
    while_news_travels,
)
from pyspark_kafkaproto.error_codes import (
    INVALID_PARTITIONS,
    OFFSET_OUT_OF_RANGE,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from pyspark_kafkaproto.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from pyspark_kafkaproto.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from pyspark_kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from pyspark_kafkaproto.net import Deadline, Endpoint

BROKERS_DEFAULT = -1
ALL_RECORDS = -1

_MOST_REPLICAS = 2**15 - 1
_LAST_BY_NAME = 5  # of DeleteTopics
NO_SUCH_TOPIC = "there is no such topic, or this user may not see it"
# Of DeleteRecords, which has no message of the broker's.
_NOT_CUT = {
    OFFSET_OUT_OF_RANGE: "the partition ends before that offset: the end itself deletes all "
    "its records, and so does -1",
    POLICY_VIOLATION: "its cleanup.policy is compact alone: set compact,delete, and records can "
    "be deleted by offset",
}
_OVER_QUOTA = (
    "over the quota of partitions that are made and deleted in a second, controller_mutation_rate: "
    "kafkaproto quotas list shows it"
)
_NO_TOPIC = {UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to make.

    Args:
        name: of the topic.
        partitions: how many; -1: what the broker has as default.
        replication_factor: on how many brokers each; -1: what the broker has as default.
        configs: of the topic (`retention.ms`, …).
        assignment: which brokers hold each partition, the preferred leader first; partitions and
            replication factor follow from it then.
    """

    name: str
    partitions: int = BROKERS_DEFAULT
    replication_factor: int = BROKERS_DEFAULT
    # Out of the hash, which no dict has: what goes in goes in as a set.
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check_text("name", self.name)
        self._check_number("partitions", self.partitions, LAST_PARTITION)
        self._check_number("replication_factor", self.replication_factor, _MOST_REPLICAS)
        check_map("configs", self.configs, "the value of each setting")
        for name, value in self.configs.items():
            _check_text(name, value)
        check_map("assignment", self.assignment, "the brokers of each partition")
        for number, ids in self.assignment.items():
            if within(number, LAST_PARTITION) is None:
                raise ConfigError("assignment", number, "expected the number of a partition")
            checked_brokers(f"brokers of partition {number}", ids)

    def _check_number(self, option: str, value: int, most: int) -> None:
        if value != BROKERS_DEFAULT and within(value, most, least=1) is None:
            raise ConfigError(option, value, "expected 1 or more, or -1 for the default")
        if self.assignment and value != BROKERS_DEFAULT:
            raise ConfigError(option, value, "it follows from the assignment: leave it out")


def _check_text(option: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(option, value, "expected text")


def create_topics(
    router: Router, topics: Collection[NewTopic], *, validate_only: bool = False
) -> None:
    """Make topics, or only ask whether they could be made.

    Raises:
        BrokerError: one could not be; `usable` has the names of those that are made.
    """
    by_name: dict[str, NewTopic] = {}
    for topic in checked_each("topics", topics, NewTopic, "NewTopic(name, partitions, …)"):
        if by_name.setdefault(topic.name, topic) != topic:
            raise ConfigError("topic", topic.name, "it is given twice, and not alike")

    def make_request(names: list[str]) -> CreateTopicsRequest:
        return CreateTopicsRequest(
            topics=tuple(_to_create(by_name[name]) for name in names),
            timeout_ms=timeout_ms(router),
            validate_only=validate_only,
        )

    done = None if validate_only else TOPIC_ALREADY_EXISTS
    what = f"create {_names(by_name)}"
    question = Question(what, make_request, _read_created, is_trial=validate_only)
    ask_controller(router, question, by_name, done)


def delete_topics(router: Router, topics: Collection[str]) -> None:
    """Delete topics with all their records.

    They are deleted by their ids, where brokers know them (KIP-516): another try deletes no topic
    that was made anew under the same name.

    Raises:
        BrokerError: one could not be deleted; `usable` has those that are.
    """
    check_set("topics", topics)
    try:
        _delete_by_id(router, topics)
    except UnsupportedVersion:  # before Kafka 2.8
        _delete_by_name(router, topics)


def _delete_by_id(router: Router, names: Collection[str]) -> None:
    ids: dict[str, bytes | None] = {}

    def find_places(missing: set[str], deadline: Deadline) -> dict[str, Endpoint | BrokerError]:
        topology = router.topology(missing - ids.keys(), deadline)

        def place_of(name: str) -> Endpoint:
            if name not in ids:
                ids[name] = topology.topic(name).topic_id
            return controller_of(topology)

        return each_place(missing, place_of)

    def make_request(part: list[str]) -> DeleteTopicsRequest:
        topic_of = DeleteTopicsRequest.Topic
        topics = tuple(
            topic_of(name=name) if (topic_id := ids[name]) is None else topic_of(topic_id=topic_id)
            for name in part
        )
        return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms(router))

    def read(answer: DeleteTopicsResponse, part: list[str]) -> dict[str, BrokerError | None]:
        return _read_deleted(answer, {ids[name]: name for name in part})

    question = Question(f"delete {_names(names)}", make_request, read)
    change(router, question, names, find_places, UNKNOWN_TOPIC_ID, is_ours=True)


def _delete_by_name(router: Router, names: Collection[str]) -> None:
    def make_request(part: list[str]) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topic_names=tuple(part), timeout_ms=timeout_ms(router))

    def read(answer: DeleteTopicsResponse, _: list[str]) -> dict[str, BrokerError | None]:
        return _read_deleted(answer, {})

    question = Question(f"delete {_names(names)}", make_request, read, most=_LAST_BY_NAME)
    ask_controller(router, question, names, UNKNOWN_TOPIC_OR_PARTITION)


def add_partitions(
    router: Router, counts: Mapping[str, int], *, validate_only: bool = False
) -> None:
    """Give each topic so many partitions in all; never fewer than it has.

    Keys of records are spread over more partitions from then on: what was written before stays.

    Raises:
        BrokerError: one could not be grown; `usable` has those that are.
    """
    check_map("counts", counts, "how many partitions of each topic")
    for name, count in counts.items():
        if within(count, LAST_PARTITION, least=1) is None:
            raise ConfigError(f"partitions of {name}", count, "expected 1 or more")

    def make_request(names: list[str]) -> CreatePartitionsRequest:
        topic_of = CreatePartitionsRequest.Topic
        return CreatePartitionsRequest(
            topics=tuple(
                topic_of(name=name, count=counts[name], assignments=None) for name in names
            ),
            timeout_ms=timeout_ms(router),
            validate_only=validate_only,
        )

    done = None if validate_only else INVALID_PARTITIONS
    what = f"add partitions to {_names(counts)}"
    question = Question(what, make_request, _read_grown, is_trial=validate_only)
    ask_controller(router, question, counts, done)


def delete_records(
    router: Router, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Delete the records below each offset (ALL_RECORDS: all there are when this is called).

    Returns:
        The earliest offset of each partition from now on.

    Raises:
        BrokerError: a partition refused; `usable` has what would be returned of the others.
    """
    for partition, offset in before.items():
        if within(offset, LAST_OFFSET, least=ALL_RECORDS) is None:
            raise ConfigError(f"offset of {partition}", offset, "expected 0 or more, -1 for all")

    # Brokers know "all" too, but another try would delete what was written since the first.
    every = [partition for partition, offset in before.items() if offset == ALL_RECORDS]
    with nothing_done_yet():
        ends = list_bounds(router, every, LATEST_TIMESTAMP, read_committed=False)
    offsets = {**before, **ends}

    def make_request(partitions: list[TopicPartition]) -> DeleteRecordsRequest:
        topic_of = DeleteRecordsRequest.Topic
        topics = tuple(
            topic_of(
                name=topic,
                partitions=tuple(
                    topic_of.Partition(partition_index=item.partition, offset=offsets[item])
                    for item in own
                ),
            )
            for topic, own in by_topic(partitions)
        )
        return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms(router))

    question = Question("delete records", make_request, _read_cut)
    return change(router, question, offsets, router.leader_places)


def _names(topics: Collection[str]) -> str:
    return f"topic {next(iter(topics))!r}" if len(topics) == 1 else f"{len(topics)} topics"


def _to_create(topic: NewTopic) -> CreateTopicsRequest.Topic:
    part = CreateTopicsRequest.Topic
    return part(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            part.Assignment(partition_index=number, broker_ids=tuple(brokers))
            for number, brokers in sorted(topic.assignment.items())
        ),
        configs=tuple(part.Config(name=name, value=value) for name, value in topic.configs.items()),
    )


def _outcome(code: int, api: str, topic: str, message: str | None) -> BrokerError | None:
    if not code:
        return None
    text = NO_SUCH_TOPIC if code in _NO_TOPIC else message or ""
    if code == THROTTLING_QUOTA_EXCEEDED:
        text = _OVER_QUOTA
    return while_news_travels(BrokerError(code, api, f"topic {topic!r}", text))


def _read_created(answer: CreateTopicsResponse, _: list[str]) -> dict[str, BrokerError | None]:
    return {
        item.name: _outcome(item.error_code, "CreateTopics", item.name, item.error_message)
        for item in answer.topics
    }


def _read_deleted(
    answer: DeleteTopicsResponse, by_id: Mapping[bytes | None, str]
) -> dict[str, BrokerError | None]:
    named = ((by_id.get(item.topic_id, item.name or ""), item) for item in answer.responses)
    return {
        name: _outcome(item.error_code, "DeleteTopics", name, item.error_message)
        for name, item in named
    }


def _read_grown(answer: CreatePartitionsResponse, _: list[str]) -> dict[str, BrokerError | None]:
    return {
        item.name: _outcome(item.error_code, "CreatePartitions", item.name, item.error_message)
        for item in answer.results
    }


def _read_cut(
    answer: DeleteRecordsResponse, _: list[TopicPartition]
) -> dict[TopicPartition, int | BrokerError]:
    results: dict[TopicPartition, int | BrokerError] = {}
    for topic in answer.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            results[partition] = item.low_watermark
            if item.error_code:
                subject, why = f"partition {partition}", _NOT_CUT.get(item.error_code, "")
                results[partition] = BrokerError(item.error_code, "DeleteRecords", subject, why)
    return results

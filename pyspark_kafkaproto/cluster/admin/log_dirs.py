"""The folders in which brokers keep their logs, and what is in them (KIP-113).

`log_sizes` asks leaders about partitions; this asks brokers about all that they hold.
Space: KIP-827; cordoned folders, to which nothing new is put: KIP-1066.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_kafkaproto.cluster.asking import Question, ask, each_place
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.given import check_map, checked_brokers, checked_partition
from pyspark_kafkaproto.cluster.log_sizes import check_told
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, numbers_by_topic, while_news_travels
from pyspark_kafkaproto.error_codes import (
    INVALID_REPLICA_ASSIGNMENT,
    KAFKA_STORAGE_ERROR,
    LOG_DIR_NOT_FOUND,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    error_code,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from pyspark_kafkaproto.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from pyspark_kafkaproto.net import Deadline, Endpoint

_API = "DescribeLogDirs"
_ADVICE = {
    UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
    INVALID_REPLICA_ASSIGNMENT: "that folder is cordoned: take it out of the broker's "
    "cordoned.log.dirs first",
    KAFKA_STORAGE_ERROR: "that folder has failed, or the one that the replica is in: "
    "`describe_log_dirs` (kafkaproto brokers log-dirs) names those that have; the broker has it "
    "back once the disk is mended and the broker started anew",
    LOG_DIR_NOT_FOUND: "the broker has no such folder: `describe_log_dirs` (kafkaproto brokers "
    "log-dirs) names those it has",
}


class Replica(NamedTuple):
    """A partition's replica at a broker."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} of broker {self.broker}"


class LogReplica(NamedTuple):
    """The log of a replica in a folder.

    `lag` is how many records it lacks of those that are known to all replicas in sync; of a copy on
    its way to this folder (`is_future`), of those that are in the folder that it comes from.
    """

    size_bytes: int
    lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A folder of a broker.

    Args:
        error: the name of what is wrong with it (KAFKA_STORAGE_ERROR: it has failed), or None.
        total_bytes: of the disk it is on; None before Kafka 3.3.
        usable_bytes: of them, still free.
        is_cordoned: whether nothing new is put there.
        replicas: what is in it; nothing is known of one that has failed.
    """

    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    is_cordoned: bool
    replicas: Mapping[TopicPartition, LogReplica]


def checked_folders(folders: Mapping[Replica, str]) -> dict[Replica, str]:
    """The folder of each replica; plain tuples will do as keys.

    Raises:
        ConfigError: one is no replica, or no path.
    """
    check_map("folders", folders, "the folder of each replica")
    checked = {}
    for item, path in folders.items():
        match item:
            case (broker, topic, number):
                (node_id,) = checked_brokers("broker", (broker,))
                replica = Replica(node_id, *checked_partition((topic, number)))
            case _:
                raise ConfigError("replica", item, "expected Replica(broker, topic, partition)")
        if not isinstance(path, str) or not path:
            raise ConfigError(f"folder of {replica}", path, "expected the path of a folder")
        checked[replica] = path
    return checked


def describe_log_dirs(
    router: Router, brokers: Collection[int] | None = None
) -> dict[int, dict[str, LogDir]]:
    """The folders of each broker by path.

    Args:
        router: whom to ask through.
        brokers: ids; None: all that there are at the moment.

    Raises:
        BrokerError: there is no such broker at the moment, or this user may not ask; `usable` has
            the others.
    """
    if brokers is None:
        brokers = router.described(()).brokers

    def read(
        answer: DescribeLogDirsResponse, part: list[int]
    ) -> dict[int, dict[str, LogDir] | BrokerError]:
        return {node_id: _read(answer) for node_id in part}

    question: Question[int, dict[str, LogDir]] = Question(
        "describe folders of logs", lambda _: DescribeLogDirsRequest(topics=None), read
    )

    def places(missing: set[int], deadline: Deadline) -> dict[int, Endpoint | BrokerError]:
        topology = router.topology((), deadline)
        return each_place(missing, lambda node_id: topology.broker(node_id).endpoint)

    return ask(router, question, brokers, places)


def move_replicas(router: Router, folders: Mapping[Replica, str]) -> dict[Replica, bool]:
    """Have replicas in other folders of their own brokers.

    Returns when the brokers have begun: `describe_log_dirs` shows the copy as a future one until it
    is whole. Asked for again it is no other move.

    Args:
        router: whom to ask through.
        folders: the path of the folder that each replica is to be in.

    Returns:
        Whether the broker has the replica: one that comes to it later is made in that folder then.

    Raises:
        BrokerError: there is no such broker, or it has no such folder; `usable` has what would be
            returned of the others.
    """
    question = Question(
        "move replicas between folders",
        lambda part: _to_move(part, folders),
        _read_moved,
    )

    def places(missing: set[Replica], deadline: Deadline) -> dict[Replica, Endpoint | BrokerError]:
        topology = router.topology((), deadline)
        return each_place(missing, lambda item: topology.broker(item.broker).endpoint)

    return change(router, question, folders, places)


def _read(answer: DescribeLogDirsResponse) -> dict[str, LogDir]:
    check_told(answer)
    return {folder.log_dir: _log_dir(folder) for folder in answer.results}


def _log_dir(folder: DescribeLogDirsResponse.LogDir) -> LogDir:
    return LogDir(
        error_code(folder.error_code).name if folder.error_code else None,
        _known(folder.total_bytes),
        _known(folder.usable_bytes),
        folder.is_cordoned,
        {
            TopicPartition(topic.name, item.partition_index): LogReplica(
                item.partition_size, item.offset_lag, item.is_future_key
            )
            for topic in folder.topics
            for item in topic.partitions
        },
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _to_move(part: list[Replica], folders: Mapping[Replica, str]) -> AlterReplicaLogDirsRequest:
    by_path: dict[str, list[TopicPartition]] = {}
    for item in part:
        partition = TopicPartition(item.topic, item.partition)
        by_path.setdefault(folders[item], []).append(partition)
    folder = AlterReplicaLogDirsRequest.Dir
    return AlterReplicaLogDirsRequest(
        dirs=tuple(
            folder(
                path=path,
                topics=tuple(
                    folder.Topic(name=topic, partitions=numbers)
                    for topic, numbers in numbers_by_topic(partitions)
                ),
            )
            for path, partitions in by_path.items()
        )
    )


def _read_moved(
    answer: AlterReplicaLogDirsResponse, part: list[Replica]
) -> dict[Replica, bool | BrokerError]:
    broker = part[0].broker  # all of them are of the broker that was asked
    results: dict[Replica, bool | BrokerError] = {}
    for topic in answer.results:
        for item in topic.partitions:
            replica, code = Replica(broker, topic.topic_name, item.partition_index), item.error_code
            results[replica] = code != REPLICA_NOT_AVAILABLE
            if code not in (0, REPLICA_NOT_AVAILABLE):
                text = _ADVICE.get(code, "")
                error = BrokerError(code, answer.API_NAME, str(replica), text)
                results[replica] = while_news_travels(error)
    return results

"""Offsets that groups have committed, at the groups' coordinators.

OffsetFetch and OffsetCommit are asked in a version that names topics: from version 10 on both go by
topic id, and a group's offsets would be out of reach once a topic is deleted and created again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby

from pyspark_kafkaproto.cluster.routing import Router, only
from pyspark_kafkaproto.cluster.topology import NEWS_TRAVELS_S, TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError, RemoteProtocolError, error_code
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

BY_NAME = 9  # the last version of OffsetFetch and OffsetCommit that names topics

_NOTHING_COMMITTED = -1
_UNKNOWN_TOPIC_OR_PARTITION = 3
_UNKNOWN_MEMBER_ID = 25
_COMMIT_ADVICE = {
    _UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    _UNKNOWN_MEMBER_ID: "the group has live members, and only they may commit: stop them, or "
    "commit to a group of its own",
}


def fetch_offsets(
    router: Router, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """What `group` has committed; partitions without a committed offset are left out."""
    _check_group(group)
    if not partitions:
        return {}
    topics = tuple(
        OffsetFetchRequest.Group.Topic(
            name=topic, partition_indexes=tuple(item.partition for item in own)
        )
        for topic, own in _by_topic(partitions)
    )
    request = OffsetFetchRequest(
        groups=(OffsetFetchRequest.Group(group_id=group, topics=topics),),
        # Without it a coordinator that has just taken over may answer from before its log is
        # complete, and a group that has committed looks as if it never had.
        require_stable=True,
    )

    def read(answer: OffsetFetchResponse) -> dict[TopicPartition, int]:
        return _read_offsets(group, answer)

    return router.ask_coordinator(
        f"fetch the offsets of group {group!r}", group, request, read, most=BY_NAME
    )


def commit_offsets(router: Router, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit for a group without members: each offset is the next one to read.

    Raises:
        BrokerError: a partition was refused; `usable` has those that were committed.
        RemoteProtocolError: the answer leaves a partition out.
    """
    _check_group(group)
    if not offsets:
        return
    topics = tuple(
        OffsetCommitRequest.Topic(
            name=topic,
            partitions=tuple(
                OffsetCommitRequest.Topic.Partition(
                    partition_index=item.partition, committed_offset=offsets[item]
                )
                for item in own
            ),
        )
        for topic, own in _by_topic(offsets)
    )
    request = OffsetCommitRequest(group_id=group, topics=topics)
    router.ask_coordinator(
        f"commit offsets of group {group!r}",
        group,
        request,
        lambda answer: _check_commit(group, offsets, answer),
        most=BY_NAME,
    )


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> Iterable[tuple[str, Iterable[TopicPartition]]]:
    return groupby(sorted(partitions), key=lambda item: item.topic)


def _check_group(group: str) -> None:
    if not group:
        raise ConfigError("group", group, "expected the name of a consumer group")


def _read_offsets(group: str, answer: OffsetFetchResponse) -> dict[TopicPartition, int]:
    found = only(answer.groups, "OffsetFetch")
    if found.error_code:
        raise BrokerError(found.error_code, "OffsetFetch", f"group {group!r}")
    offsets = {}
    for topic in found.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                raise BrokerError(
                    item.error_code, "OffsetFetch", f"group {group!r}, partition {partition}"
                )
            if item.committed_offset != _NOTHING_COMMITTED:
                offsets[partition] = item.committed_offset
    return offsets


def _check_commit(
    group: str, asked: Collection[TopicPartition], answer: OffsetCommitResponse
) -> None:
    refused = []
    committed = set()
    for topic in answer.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                refused.append((partition, item.error_code))
            else:
                committed.add(partition)
    if refused:
        for_good = (item for item in refused if not error_code(item[1]).is_retriable)
        raise _refusal(group, *next(for_good, refused[0]), committed)
    if forgotten := set(asked) - committed:
        names = ", ".join(sorted(map(str, forgotten)))
        raise RemoteProtocolError(f"{names}: not answered", where=f"OffsetCommit, group {group!r}")


def _refusal(
    group: str, partition: TopicPartition, code: int, committed: set[TopicPartition]
) -> BrokerError:
    subject = f"group {group!r}, partition {partition}"
    advice = _COMMIT_ADVICE.get(code, "")
    error = BrokerError(code, "OffsetCommit", subject, advice, committed)
    if code == _UNKNOWN_TOPIC_OR_PARTITION:
        error.patience_s = NEWS_TRAVELS_S
    return error

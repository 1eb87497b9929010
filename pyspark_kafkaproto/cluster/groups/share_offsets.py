"""Where share groups (KIP-932) are in each partition, at the groups' coordinators.

What the brokers keep for a group in a partition is a start offset, before which all is done, and
what has become of each record behind it. Where nothing was read yet there is no start offset: the
group begins as its setting `share.auto.offset.reset` says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask, cut, nothing_done_yet
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.groups.committed import GROUPS_PER_REQUEST, check_groups, named
from pyspark_kafkaproto.cluster.groups.members import check_kind, find_groups, no_such_group
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, by_topic, while_news_travels
from pyspark_kafkaproto.error_codes import (
    LEADER_NOT_AVAILABLE,
    NON_EMPTY_GROUP,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from pyspark_kafkaproto.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from pyspark_kafkaproto.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from pyspark_kafkaproto.net import Deadline, Endpoint

_NONE = -1
_NOT_CARRIED_OUT = (
    "the broker says nothing of any partition: Kafka 4.1, where share groups are a preview, offers "
    "this request and does not carry it out"
)
_NO_LEADER = (LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER)
_ADVICE = {
    NON_EMPTY_GROUP: "members read with it: stop them first",
    UNSUPPORTED_VERSION: "share groups are switched off in this cluster: its feature share.version "
    "is 0 (kafkaproto features upgrade share.version=1)",
}


class ShareOffset(NamedTuple):
    """Where a share group is in a partition.

    Attributes:
        offset: the start offset: what lies before it is done.
        leader_epoch: of the record there, or -1 where it is not known.
        lag: how many records are not done; None where brokers do not tell (before Kafka 4.2, and
            4.2 where the start was moved and no member has read since).
    """

    offset: int
    leader_epoch: int = -1
    lag: int | None = None


_K = TypeVar("_K")
_Starts = dict[TopicPartition, ShareOffset | None]


def fetch_share_offsets(
    router: Router, groups: Collection[str], *, waits_for_leaders: bool = True
) -> dict[str, _Starts]:
    """Where each group is in each partition that it knows of; None where it has not begun.

    All partitions are asked for, never some: a broker (4.3, 4.4) that is asked for one that
    there is not never answers.

    Args:
        router: whom to ask.
        groups: their names.
        waits_for_leaders: whether to wait for partitions that have no leader: without it brokers
            tell nothing of them. Else None stands there, too.

    Raises:
        BrokerError: a group may not be seen, or the cluster has share groups switched off.
        UnsupportedVersion: a broker before Kafka 4.1.
    """
    group_of = DescribeShareGroupOffsetsRequest.Group

    def make_request(part: list[str]) -> DescribeShareGroupOffsetsRequest:
        asked = tuple(group_of(group_id=group, topics=None) for group in part)
        return DescribeShareGroupOffsetsRequest(groups=asked)

    def read(
        answer: DescribeShareGroupOffsetsResponse, part: list[str]
    ) -> dict[str, _Starts | BrokerError]:
        del part
        passed_over = () if waits_for_leaders else _NO_LEADER
        return {item.group_id: _read_group(item, passed_over) for item in answer.groups}

    what = f"fetch the offsets of {named(groups)}"
    question = Question(what, make_request, read, cut(GROUPS_PER_REQUEST))
    return ask(router, question, groups, router.coordinators)


def _read_group(
    item: DescribeShareGroupOffsetsResponse.Group, passed_over: Collection[int]
) -> _Starts | BrokerError:
    api, subject = DescribeShareGroupOffsetsResponse.API_NAME, f"group {item.group_id!r}"
    if item.error_code:
        return BrokerError(item.error_code, api, subject, _text(item))
    starts: _Starts = {}
    for topic in item.topics:
        for place in topic.partitions:
            partition = TopicPartition(topic.topic_name, place.partition_index)
            if place.error_code in passed_over:
                starts[partition] = None
                continue
            if place.error_code:
                where = f"{subject}, partition {partition}"
                return BrokerError(place.error_code, api, where, _text(place))
            starts[partition] = None
            if place.start_offset != _NONE:
                lag = None if place.lag == _NONE else place.lag
                starts[partition] = ShareOffset(place.start_offset, place.leader_epoch, lag)
    return starts


def alter_share_offsets(router: Router, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Let `group`, which has no members, start at `offsets`; a new one is made by this.

    Raises:
        BrokerError: the group has members, or a partition was refused; `usable` has those that
            were set, as keys.
    """
    topic_of = AlterShareGroupOffsetsRequest.Topic

    def make_request(part: list[TopicPartition]) -> AlterShareGroupOffsetsRequest:
        topics = tuple(
            topic_of(
                topic_name=topic,
                partitions=tuple(
                    topic_of.Partition(partition_index=item.partition, start_offset=offsets[item])
                    for item in own
                ),
            )
            for topic, own in by_topic(part)
        )
        return AlterShareGroupOffsetsRequest(group_id=group, topics=topics)

    def read(
        answer: AlterShareGroupOffsetsResponse, part: list[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        _check_whole(answer, group)
        if part and not answer.responses:
            raise BrokerError(
                UNSUPPORTED_VERSION, answer.API_NAME, f"group {group!r}", _NOT_CARRIED_OUT
            )
        return {
            item: _refusal(answer, f"group {group!r}, partition {item}", place)
            for topic in answer.responses
            for place in topic.partitions
            for item in [TopicPartition(topic.topic_name, place.partition_index)]
        }

    question = Question(f"alter offsets of group {group!r}", make_request, read)
    change(router, question, offsets, _at_coordinator(router, group))


def delete_share_offsets(
    router: Router, group: str, topics: Collection[str], *, dry_run: bool = False
) -> set[str]:
    """Forget where `group`, which has no members, is in all of `topics`.

    Args:
        router: whom to ask.
        group: its name.
        topics: which; nothing to forget there is no error.
        dry_run: whether to only tell where there is something.

    Returns:
        The topics where there is something to forget.

    Raises:
        BrokerError: the group has members, or there is no such group, or topic; `usable` has the
            topics that are done, as keys.
        ConfigError: it is no share group.
    """
    check_groups([group])
    check_set("topics", topics)
    with nothing_done_yet():
        begun = _begun_topics(router, group, topics)
    if dry_run:
        return begun
    topic_of = DeleteShareGroupOffsetsRequest.Topic

    def make_request(part: list[str]) -> DeleteShareGroupOffsetsRequest:
        asked = tuple(topic_of(topic_name=topic) for topic in part)
        return DeleteShareGroupOffsetsRequest(group_id=group, topics=asked)

    def read(
        answer: DeleteShareGroupOffsetsResponse, part: list[str]
    ) -> dict[str, BrokerError | None]:
        del part
        _check_whole(answer, group)
        return {
            # What was there a moment ago is gone by a try whose answer was lost.
            item.topic_name: None
            if item.error_code == UNKNOWN_TOPIC_OR_PARTITION
            else _refusal(answer, f"group {group!r}, topic {item.topic_name!r}", item)
            for item in answer.responses
        }

    question = Question(f"delete offsets of group {group!r}", make_request, read)
    change(router, question, begun, _at_coordinator(router, group))
    return begun


def _begun_topics(router: Router, group: str, topics: Collection[str]) -> set[str]:
    """Those of `topics` in which there is something to forget; the others have to be there."""
    found = find_groups(router, {group})[group]
    if found is None:
        raise no_such_group(router, group)
    check_kind(found, is_share=True)
    begun = {item.topic for item in fetch_share_offsets(router, {group})[group]}
    if others := set(topics) - begun:
        router.described(sorted(others), must_exist=True)
    return set(topics) & begun


def _at_coordinator(
    router: Router, group: str
) -> Callable[[set[_K], Deadline], dict[_K, Endpoint | BrokerError]]:
    """For `ask`: the group's coordinator, whatever of the group is asked about."""

    def find_places(missing: set[_K], deadline: Deadline) -> dict[_K, Endpoint | BrokerError]:
        return dict.fromkeys(missing, router.coordinators([group], deadline)[group])

    return find_places


def _check_whole(
    answer: AlterShareGroupOffsetsResponse | DeleteShareGroupOffsetsResponse, group: str
) -> None:
    if answer.error_code:
        raise BrokerError(answer.error_code, answer.API_NAME, f"group {group!r}", _text(answer))


def _refusal(answer: Any, subject: str, item: Any) -> BrokerError | None:
    """What is said of a part of `answer`, where that is an error."""
    if not item.error_code:
        return None
    error = BrokerError(item.error_code, answer.API_NAME, subject, _text(item))
    return while_news_travels(error)


def _text(item: Any) -> str:
    """Ours about what to do, or the broker's own."""
    return _ADVICE.get(item.error_code) or item.error_message or ""

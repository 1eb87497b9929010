"""Offsets that groups have committed, at the groups' coordinators.

Many groups are asked about in one request (OffsetFetch from version 8 on; brokers that know older
ones only get a request per group), several requests are under way at once. OffsetFetch is asked in
a version that names topics: from version 10 on it goes by topic id, and a group's offsets would be
out of reach once a topic is deleted and created again. OffsetCommit goes by id where the caller
knows which topic the offsets are of: what comes late is not committed to another one of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import inf
from typing import Any, NamedTuple

from pyspark_kafkaproto.cluster.asking import Question, ask, cut
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import (
    TopicPartition,
    by_topic,
    numbers_by_topic,
    while_news_travels,
)
from pyspark_kafkaproto.error_codes import (
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    GROUP_SUBSCRIBED_TO_TOPIC,
    ILLEGAL_GENERATION,
    NON_EMPTY_GROUP,
    OFFSET_METADATA_TOO_LARGE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from pyspark_kafkaproto.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from pyspark_kafkaproto.net import Deadline, Endpoint

GROUPS_PER_REQUEST = 100

_BY_NAME = 9  # the last version of OffsetFetch and OffsetCommit that names topics
_NO_ID = bytes(16)
_LAST_OF_ONE_GROUP = 7  # later versions of OffsetFetch ask about many
_LAST_UNSTABLE = 6  # earlier ones cannot wait for open transactions
_NOTHING_COMMITTED = -1
_NO_SUCH_PARTITION = "there is no such topic or partition"
INSTANCE_TAKEN_OVER = "another member has come with the same group.instance.id and taken over"
_TEXT_TOO_LONG = (
    "the text beside the offset is longer than the brokers' offset.metadata.max.bytes (4096 as a "
    "rule): make it shorter"
)
_FETCH_ADVICE = {
    UNSTABLE_OFFSET_COMMIT: "an open transaction holds the group's offsets; it ends with its "
    "producer, or by transaction.timeout.ms (`kafkaproto transactions list` shows whose it is)",
}
_COMMIT_ADVICE = {
    UNKNOWN_TOPIC_OR_PARTITION: _NO_SUCH_PARTITION,
    OFFSET_METADATA_TOO_LARGE: _TEXT_TOO_LONG,
    UNKNOWN_MEMBER_ID: "the group has live members, and only they may commit: stop them, or "
    "commit to a group of its own",
    GROUP_ID_NOT_FOUND: "if this is a share group, it commits nothing: "
    "reset_share_group_offsets moves where it starts (kafkaproto groups reset)",
}
_NO_LONGER = (
    "the group has shared its partitions out anew: others read them, and go on from what was "
    "committed before (if rows take longer than max.poll.interval.ms, raise it)"
)
NO_MEMBER_ANY_MORE = {
    ILLEGAL_GENERATION: _NO_LONGER,
    UNKNOWN_MEMBER_ID: _NO_LONGER,
    FENCED_INSTANCE_ID: INSTANCE_TAKEN_OVER,
}
OF_ANOTHER_TOPIC = (
    "the topic that these offsets are of was deleted; one made since under its name is another "
    "one: poll, or seek what is paused, and commit then"
)
_MEMBER_ADVICE = {
    **NO_MEMBER_ANY_MORE,
    UNKNOWN_TOPIC_ID: OF_ANOTHER_TOPIC,
    UNKNOWN_TOPIC_OR_PARTITION: _NO_SUCH_PARTITION,
    OFFSET_METADATA_TOO_LARGE: _TEXT_TOO_LONG,
    REBALANCE_IN_PROGRESS: "the group is sharing out anew: poll, and commit then",
}
_DELETE_ADVICE = {
    GROUP_ID_NOT_FOUND: "there is no such group, or it is a share group: "
    "delete_share_group_offsets is for those (kafkaproto groups delete)",
    GROUP_SUBSCRIBED_TO_TOPIC: "members of the group read this topic: stop them first",
    NON_EMPTY_GROUP: "it has members that are no consumers, as those of Kafka Connect: stop them "
    "first",
}


class CommittedOffset(NamedTuple):
    """The next offset to read, and what was committed with it.

    Attributes:
        metadata: any text.
        leader_epoch: of the record before the offset, by which a reader notices that the log was
            cut off below it (KIP-320); -1: not known.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupMember(NamedTuple):
    """Who commits for a group that has members, and in which generation of it."""

    member_id: str
    generation: int
    instance_id: str | None = None


class GroupPartition(NamedTuple):
    """A partition as a group sees it."""

    group: str
    partition: TopicPartition

    def __str__(self) -> str:
        return f"group {self.group!r}, partition {self.partition}"


def fetch_offsets(
    router: Router,
    groups: Collection[str],
    partitions: Collection[TopicPartition] | None = None,
    *,
    require_stable: bool = True,
    unstable_s: float = inf,
    member: GroupMember | None = None,
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """What each group has committed; partitions without a committed offset are left out.

    Args:
        router: whom to ask.
        groups: their names.
        partitions: which ones; None: all that the group has.
        require_stable: whether to wait for what open transactions are about to commit. Without it
            a coordinator that has just taken over may answer from before its log is complete, and
            a group that has committed looks as if it never had.
        unstable_s: for how long to wait so, at most.
        member: of the protocol of KIP-848, who asks. A coordinator of before, which does not know
            that another one has taken over, does not know who is in which epoch now either.

    Raises:
        BrokerError: UNSTABLE_OFFSET_COMMIT where they were waited for in vain. UNKNOWN_MEMBER_ID or
            STALE_MEMBER_EPOCH where the coordinator does not know `member` so.
    """
    if partitions is not None and not partitions:
        return {group: {} for group in groups}
    # From the newest form of the question on, until the brokers know one.
    for form in _forms(named(groups), partitions, member, require_stable=require_stable):
        question = replace(form, read=partial(_read_for, unstable_s, form.read))
        try:
            return ask(router, question, groups, router.coordinators)
        except UnsupportedVersion as error:
            unknown = error
    raise unknown


def commit_offsets(
    router: Router,
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    member: GroupMember | None = None,
    topic_ids: Mapping[str, bytes] | None = None,
) -> None:
    """Commit for groups: each offset is the next one to read.

    Args:
        router: whom to ask.
        offsets: by group and partition.
        member: who commits; None for groups without members.
        topic_ids: of the topics that the offsets are of, as far as they are known. Brokers (4.1 and
            later) refuse offsets of a topic that is gone where all are.

    Raises:
        BrokerError: a partition was refused; `usable` has those that were committed.
        RemoteProtocolError: the answer leaves a partition out.
    """
    check_groups(offsets)
    wanted = {
        GroupPartition(group, partition): committed
        for group, own in offsets.items()
        for partition, committed in own.items()
    }

    def make_request(part: list[GroupPartition]) -> OffsetCommitRequest:
        group = part[0].group
        topics = tuple(
            OffsetCommitRequest.Topic(
                name=topic,
                topic_id=ids.get(topic, _NO_ID),
                partitions=tuple(
                    _to_commit(item, wanted[GroupPartition(group, item)]) for item in own
                ),
            )
            for topic, own in by_topic(item.partition for item in part)
        )
        return OffsetCommitRequest(group_id=group, topics=topics, **who)

    who = {} if member is None else _as_member(member)
    ids = topic_ids or {}
    is_by_id = all(item.partition.topic in ids for item in wanted)
    advice = _COMMIT_ADVICE if member is None else _MEMBER_ADVICE
    read = partial(_read_commit, advice=advice, names={ids[name]: name for name in ids})
    what = f"commit offsets of {named(offsets)}"
    question = Question(what, make_request, read, _by_group, None if is_by_id else _BY_NAME)
    # A member tries again by itself, and says itself what is in doubt.
    tell = change if member is None else ask
    tell(router, question, wanted, partial(_places, router))


def delete_offsets(router: Router, group: str, partitions: Collection[TopicPartition]) -> None:
    """Forget what `group` has committed for `partitions`; nothing committed is no error.

    Raises:
        BrokerError: members of the group read such a topic, or there is no such group; `usable`
            has the (group, partition) pairs that are done.
    """
    check_groups([group])

    def make_request(part: list[GroupPartition]) -> OffsetDeleteRequest:
        topic_of = OffsetDeleteRequest.Topic
        topics = tuple(
            topic_of(
                name=topic,
                partitions=tuple(topic_of.Partition(partition_index=n) for _, n in own),
            )
            for topic, own in by_topic(item.partition for item in part)
        )
        return OffsetDeleteRequest(group_id=group, topics=topics)

    question = Question(f"delete offsets of group {group!r}", make_request, _read_delete)
    wanted = {GroupPartition(group, item) for item in partitions}
    change(router, question, wanted, partial(_places, router))


def check_groups(groups: Collection[str]) -> None:
    """Refuse what the broker would refuse less clearly: one name instead of a set, an empty one."""
    check_set("groups", groups)
    for group in groups:
        if not group or not isinstance(group, str):
            raise ConfigError("group", group, "expected the name of a group")


def named(groups: Collection[str]) -> str:
    """`group 'g'`, or how many there are."""
    return f"group {next(iter(groups))!r}" if len(groups) == 1 else f"{len(groups)} groups"


def _places(
    router: Router, missing: set[GroupPartition], deadline: Deadline
) -> dict[GroupPartition, Endpoint | BrokerError]:
    found = router.coordinators({item.group for item in missing}, deadline)
    return {item: found[item.group] for item in missing}


def _by_group(items: list[GroupPartition]) -> Iterator[list[GroupPartition]]:
    for _, own in groupby(items, key=lambda item: item.group):
        yield list(own)


def _to_commit(
    partition: TopicPartition, committed: CommittedOffset
) -> OffsetCommitRequest.Topic.Partition:
    return OffsetCommitRequest.Topic.Partition(
        partition_index=partition.partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


_Committed = dict[TopicPartition, CommittedOffset]
_Read = Callable[[Any, list[str]], Mapping[str, _Committed | BrokerError]]


def _forms(
    what: str,
    partitions: Collection[TopicPartition] | None,
    member: GroupMember | None,
    *,
    require_stable: bool,
) -> Iterator[Question[str, _Committed]]:
    """The question about committed offsets: of many groups, of one, and as old brokers know it."""
    grouped = None if partitions is None else numbers_by_topic(partitions)
    what = f"fetch the offsets of {what}"
    who: dict[str, Any] = {}
    if member is not None:
        who = {"member_id": member.member_id, "member_epoch": member.generation}

    def topics(topic_of: type[Any]) -> tuple[Any, ...] | None:
        if grouped is None:
            return None
        return tuple(topic_of(name=topic, partition_indexes=numbers) for topic, numbers in grouped)

    def of_many(part: list[str]) -> OffsetFetchRequest:
        asked = topics(OffsetFetchRequest.Group.Topic)
        part_of = OffsetFetchRequest.Group
        groups = tuple(part_of(group_id=group, topics=asked, **who) for group in part)
        return OffsetFetchRequest(groups=groups, require_stable=require_stable)

    def of_one(part: list[str], *, stable: bool) -> OffsetFetchRequest:
        asked = topics(OffsetFetchRequest.Topic)
        return OffsetFetchRequest(group_id=part[0], topics=asked, require_stable=stable)

    yield Question(what, of_many, _read_offsets, cut(GROUPS_PER_REQUEST), _BY_NAME)
    for most, stable in ((_LAST_OF_ONE_GROUP, require_stable), (_LAST_UNSTABLE, False)):
        yield Question(what, partial(of_one, stable=stable), _read_one_group, cut(1), most)


def _read_for(
    unstable_s: float, read: _Read, answer: Any, part: list[str]
) -> Mapping[str, _Committed | BrokerError]:
    """What `read` gives; offsets that a transaction holds are waited for that long."""
    found = read(answer, part)
    for result in found.values():
        if isinstance(result, BrokerError) and result.code == UNSTABLE_OFFSET_COMMIT:
            result.patience_s = unstable_s
    return found


def _read_one_group(
    answer: OffsetFetchResponse, part: list[str]
) -> dict[str, _Committed | BrokerError]:
    return {part[0]: _read_group(part[0], answer)}


def _read_offsets(
    answer: OffsetFetchResponse, part: list[str]
) -> dict[str, _Committed | BrokerError]:
    del part
    return {found.group_id: _read_group(found.group_id, found) for found in answer.groups}


def _read_group(
    group: str, found: OffsetFetchResponse | OffsetFetchResponse.Group
) -> _Committed | BrokerError:
    subject = f"group {group!r}"
    if found.error_code:
        return _not_fetched(found.error_code, subject)
    offsets = {}
    for topic in found.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                return _not_fetched(item.error_code, f"{subject}, partition {partition}")
            if item.committed_offset != _NOTHING_COMMITTED:
                offsets[partition] = CommittedOffset(
                    item.committed_offset, item.metadata or "", item.committed_leader_epoch
                )
    return offsets


def _not_fetched(code: int, subject: str) -> BrokerError:
    return BrokerError(code, "OffsetFetch", subject, _FETCH_ADVICE.get(code, ""))


def _as_member(member: GroupMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "generation_id_or_member_epoch": member.generation,
        "group_instance_id": member.instance_id,
    }


def _read_commit(
    answer: OffsetCommitResponse,
    part: list[GroupPartition],
    advice: Mapping[int, str],
    names: Mapping[bytes, str],
) -> dict[GroupPartition, BrokerError | None]:
    named_topics = ((topic.name or names.get(topic.topic_id, ""), topic) for topic in answer.topics)
    return _per_partition(part[0].group, answer.API_NAME, named_topics, advice)


def _read_delete(
    answer: OffsetDeleteResponse, part: list[GroupPartition]
) -> dict[GroupPartition, BrokerError | None]:
    group = part[0].group
    if answer.error_code:
        advice = _DELETE_ADVICE.get(answer.error_code, "")
        raise BrokerError(answer.error_code, "OffsetDelete", f"group {group!r}", advice)
    topics = ((topic.name, topic) for topic in answer.topics)
    return _per_partition(group, answer.API_NAME, topics, _DELETE_ADVICE)


def _per_partition(
    group: str,
    api: str,
    topics: Iterable[tuple[str, OffsetCommitResponse.Topic | OffsetDeleteResponse.Topic]],
    advice: Mapping[int, str],
) -> dict[GroupPartition, BrokerError | None]:
    results: dict[GroupPartition, BrokerError | None] = {}
    for name, topic in topics:
        for item in topic.partitions:
            place = GroupPartition(group, TopicPartition(name, item.partition_index))
            results[place] = None
            if code := item.error_code:
                error = BrokerError(code, api, str(place), advice.get(code, ""))
                results[place] = while_news_travels(error)
    return results

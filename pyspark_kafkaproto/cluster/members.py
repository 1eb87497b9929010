"""Groups themselves: which there are, who is in them, what each member reads; and their end.

A group speaks one of two protocols. In a classic one the members carry the assignment among
themselves, as bytes that the broker does not read (ConsumerProtocolAssignment); in a consumer group
of KIP-848 the broker makes and knows it. Both look alike here. Share groups and streams groups are
listed, and not described.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask, ask_all_brokers, cut
from pyspark_kafkaproto.cluster.groups import GROUPS_PER_REQUEST, check_groups, named
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.error_codes import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from pyspark_kafkaproto.messages.consumer_protocol import ConsumerProtocolAssignment
from pyspark_kafkaproto.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from pyspark_kafkaproto.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from pyspark_kafkaproto.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pyspark_kafkaproto.wire.cursor import Cursor
from pyspark_kafkaproto.wire.declaration import Message
from pyspark_kafkaproto.wire.schema import read

_M = TypeVar("_M", bound=Message)

CLASSIC = "classic"
CONSUMER = "consumer"
GROUP_TYPES: Final = (CLASSIC, CONSUMER, "share", "streams")
GROUP_STATES: Final = (
    *("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Dead"),
    *("Assigning", "Reconciling", "NotReady"),
)

_VERSION_BYTES = 2
_CONSUMER_PROTOCOL = "consumer"

_NOT_A_CONSUMER_GROUP = (UNSUPPORTED_VERSION, GROUP_ID_NOT_FOUND)
_DEAD = "Dead"
_CHECK_NAME = "check its name (kafkaproto groups list)"
_NO_SUCH_GROUP = f"there is no such group: {_CHECK_NAME}"
# Brokers say the same of both.
_NOT_DESCRIBED = (
    "there is no such group, or it is a share or streams group, which are listed and not "
    f"described: {_CHECK_NAME}"
)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group by name; `type` is classic, consumer, share or streams, "" where a broker is old."""

    group: str
    type: str
    state: str
    protocol_type: str

    @property
    def reads_topics(self) -> bool:
        """Whether it is one whose members and offsets are about topics' partitions."""
        return self.type != "share" and self.protocol_type in ("", _CONSUMER_PROTOCOL, "streams")


@dataclass(frozen=True, slots=True)
class Member:
    """Who reads: `assignment` has its partitions, `target` those that it is to have (KIP-848)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    target: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group and its members; `assignor` is how partitions are shared out."""

    group: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    members: tuple[Member, ...]

    @property
    def owners(self) -> dict[TopicPartition, Member]:
        """Who reads each partition."""
        return {item: member for member in self.members for item in member.assignment}


def list_groups(
    router: Router, states: Collection[str] = (), types: Collection[str] = ()
) -> list[ListedGroup]:
    """The groups of all brokers, sorted by name; with `states` or `types`, those alone.

    Raises:
        ConfigError: there is no such state, or type.
    """
    _check_known("state", states, GROUP_STATES)
    _check_known("type", types, GROUP_TYPES)
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    found = ask_all_brokers(router, "list groups", request, _read_listed)
    return sorted(found.values(), key=lambda item: item.group)


def _check_known(option: str, values: Collection[str], known: Collection[str]) -> None:
    """Refuse what brokers pass over; they do not mind capitals either."""
    check_set(f"{option}s", values, option)
    for value in values:
        if value.lower() not in {item.lower() for item in known}:
            raise ConfigError(option, value, f"expected one of {', '.join(known)}")


def describe_groups(router: Router, groups: Collection[str]) -> dict[str, DescribedGroup]:
    """Members and state of each group, whichever protocol it speaks.

    Raises:
        BrokerError: there is no such group, or it may not be seen; `usable` has the others.
    """
    found = find_groups(router, groups)
    described = {group: item for group, item in found.items() if item is not None}
    for group in sorted(set(groups) - described.keys()):
        raise no_such_group(group, described)
    return described


def find_groups(router: Router, groups: Collection[str]) -> dict[str, DescribedGroup | None]:
    """As `describe_groups`; None for a group that there is not."""
    check_groups(groups)
    found = _find_consumer_groups(router, groups)
    others = {group for group in groups if found[group] is None}
    return found | _find_classic_groups(router, others)


def find_listed(
    router: Router, groups: Collection[ListedGroup]
) -> dict[str, DescribedGroup | None]:
    """As `find_groups`, where it is known already which protocol each group speaks."""
    consumer = {item.group for item in groups if item.type == CONSUMER}
    classic = {item.group for item in groups if item.type in ("", CLASSIC)}
    return _find_consumer_groups(router, consumer) | _find_classic_groups(router, classic)


def no_such_group(group: str, usable: object = None) -> BrokerError:
    """The error for a group that there is not."""
    subject = f"group {group!r}"
    return BrokerError(GROUP_ID_NOT_FOUND, "DescribeGroups", subject, _NOT_DESCRIBED, usable)


def delete_groups(router: Router, groups: Collection[str]) -> None:
    """Delete groups that have no members, with all that they have committed.

    Raises:
        BrokerError: a group has members, or there is no such group; `usable` has those deleted.
    """
    check_groups(groups)
    question = Question(
        f"delete {named(groups)}",
        lambda part: DeleteGroupsRequest(groups_names=tuple(part)),
        _read_deleted,
        cut(GROUPS_PER_REQUEST),
    )
    ask(router, question, groups, router.coordinators)


def check_has_no_members(router: Router, group: str) -> None:
    """Raise BrokerError, with the members' names, while `group` has any; a new one has none."""
    found = find_groups(router, {group})[group]
    if found is not None and found.members:
        names = ", ".join(f"{item.client_id} at {item.host}" for item in found.members[:5])
        raise BrokerError(
            NON_EMPTY_GROUP,
            "OffsetCommit",
            f"group {group!r}",
            f"it has members ({len(found.members)}: {names}): stop them, then reset",
        )


def _read_listed(answer: ListGroupsResponse, place: str) -> dict[str, ListedGroup]:
    if answer.error_code:
        raise BrokerError(answer.error_code, "ListGroups", f"broker {place}")
    return {
        item.group_id: ListedGroup(
            item.group_id, item.group_type.lower(), item.group_state, item.protocol_type
        )
        for item in answer.groups
    }


# Consumer groups (KIP-848)


def _find_consumer_groups(
    router: Router, groups: Collection[str]
) -> dict[str, DescribedGroup | None]:
    """Those of `groups` that are consumer groups; None for the others."""
    question = Question(
        f"describe {named(groups)}",
        lambda part: ConsumerGroupDescribeRequest(group_ids=tuple(part)),
        _read_consumer,
        cut(GROUPS_PER_REQUEST),
    )
    try:
        return ask(router, question, groups, router.coordinators)
    except UnsupportedVersion:  # a broker before 4.0: it has no such groups
        return dict.fromkeys(groups)


def _read_consumer(
    answer: ConsumerGroupDescribeResponse, part: list[str]
) -> dict[str, DescribedGroup | BrokerError | None]:
    del part
    results: dict[str, DescribedGroup | BrokerError | None] = {}
    for item in answer.groups:
        if item.error_code in _NOT_A_CONSUMER_GROUP:
            results[item.group_id] = None
        elif item.error_code:
            subject, text = f"group {item.group_id!r}", item.error_message or ""
            results[item.group_id] = BrokerError(
                item.error_code, "ConsumerGroupDescribe", subject, text
            )
        else:
            results[item.group_id] = _consumer_group(item)
    return results


def _consumer_group(item: ConsumerGroupDescribeResponse.Group) -> DescribedGroup:
    members = tuple(
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _assigned(member.assignment),
            _assigned(member.target_assignment),
        )
        for member in item.members
    )
    return DescribedGroup(
        item.group_id,
        CONSUMER,
        item.group_state,
        _CONSUMER_PROTOCOL,
        item.assignor_name,
        item.group_epoch,
        members,
    )


def _assigned(assignment: Assignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


# Classic groups


def _find_classic_groups(
    router: Router, groups: Collection[str]
) -> dict[str, DescribedGroup | None]:
    question = Question(
        f"describe {named(groups)}",
        lambda part: DescribeGroupsRequest(groups=tuple(part)),
        _read_classic,
        cut(GROUPS_PER_REQUEST),
    )
    return ask(router, question, groups, router.coordinators)


def _read_classic(
    answer: DescribeGroupsResponse, part: list[str]
) -> dict[str, DescribedGroup | BrokerError | None]:
    del part
    return {item.group_id: _classic_group(item) for item in answer.groups}


def _classic_group(item: DescribeGroupsResponse.Group) -> DescribedGroup | BrokerError | None:
    subject = f"group {item.group_id!r}"
    # Before version 6 a broker answered "Dead" for a group that there is not.
    if item.error_code == GROUP_ID_NOT_FOUND or item.group_state == _DEAD:
        return None
    if item.error_code:
        return BrokerError(item.error_code, "DescribeGroups", subject, item.error_message or "")
    members = []
    for member in item.members:
        assignment = frozenset[TopicPartition]()
        if item.protocol_type == _CONSUMER_PROTOCOL:
            where = f"{subject}, assignment of member {member.member_id!r}"
            assignment = read_assignment(member.member_assignment, where)
        members.append(
            Member(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                assignment,
                assignment,
            )
        )
    return DescribedGroup(
        item.group_id,
        CLASSIC,
        item.group_state,
        item.protocol_type,
        item.protocol_data,
        None,
        tuple(members),
    )


def read_assignment(data: bytes, where: str) -> frozenset[TopicPartition]:
    """The partitions in a member's assignment: empty bytes while the group is sharing out.

    Raises:
        RemoteProtocolError: these are not an assignment's bytes.
    """
    if not data:
        return frozenset()
    found = read_embedded(ConsumerProtocolAssignment, data, where)
    return frozenset(
        TopicPartition(item.topic, number)
        for item in found.assigned_partitions
        for number in item.partitions
    )


def read_embedded(message: type[_M], data: bytes, where: str) -> _M:
    """A message of the consumer protocol, behind the number of its version.

    Raises:
        RemoteProtocolError: these are not its bytes.
    """
    version = int.from_bytes(data[:_VERSION_BYTES], signed=True)
    if version < 0 or len(data) < _VERSION_BYTES:
        raise RemoteProtocolError("no version in front of it", where=where)
    # Later versions only append, so that older members can read what a newer leader has written.
    known = min(version, message.VERSIONS[1])
    try:
        return read(message, Cursor(data[_VERSION_BYTES:]), known)
    except RemoteProtocolError as error:
        raise RemoteProtocolError(error.reason, where=where, path=error.path) from error


def _read_deleted(
    answer: DeleteGroupsResponse, part: list[str]
) -> Mapping[str, BrokerError | None]:
    del part
    return {
        item.group_id: BrokerError(
            item.error_code,
            "DeleteGroups",
            f"group {item.group_id!r}",
            _DELETE_ADVICE.get(item.error_code, item.error_message or ""),
        )
        if item.error_code
        else None
        for item in answer.results
    }


_DELETE_ADVICE = {
    NON_EMPTY_GROUP: "members read with it: stop them first",
    GROUP_ID_NOT_FOUND: _NO_SUCH_GROUP,
}

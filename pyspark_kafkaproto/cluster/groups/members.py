"""Groups themselves: which there are, who is in them, what each member reads; and their end.

In a classic group the members carry the assignment among themselves, as bytes that the broker does
not read (ConsumerProtocolAssignment); in the others the broker makes and knows it. All look alike
here. Each type has a request of its own, and a broker that is asked in the wrong one says that
there is no such group: they are asked one after the other. `share_groups` and `streams_groups`
have those of theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask, ask_all_brokers, cut
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.groups.committed import GROUPS_PER_REQUEST, check_groups, named
from pyspark_kafkaproto.cluster.groups.described import (
    CLASSIC,
    CONSUMER,
    CONSUMER_PROTOCOL,
    SHARE,
    STAYS,
    STREAMS,
    DescribedGroup,
    ListedGroup,
    Member,
)
from pyspark_kafkaproto.cluster.groups.describing import assigned, find_described
from pyspark_kafkaproto.cluster.groups.share_groups import find_share_groups
from pyspark_kafkaproto.cluster.groups.streams_groups import find_streams_groups
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import Broker, TopicPartition
from pyspark_kafkaproto.error_codes import (
    GROUP_ID_NOT_FOUND,
    NON_EMPTY_GROUP,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.consumer_group_describe import (
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
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.wire.cursor import Cursor
from pyspark_kafkaproto.wire.declaration import Message
from pyspark_kafkaproto.wire.schema import read

_M = TypeVar("_M", bound=Message)

_VERSION_BYTES = 2
_IS_CLASSIC = {0: True, 1: False}  # ConsumerGroupDescribe's member_type; -1: not told

# What describes groups of a type, and the feature that switches them off. Types but that of share
# groups are switched off by the brokers' properties, too.
_FEATURES = {
    CONSUMER: ("ConsumerGroupDescribe", "group.version"),
    SHARE: ("ShareGroupDescribe", "share.version"),
    STREAMS: ("StreamsGroupDescribe", "streams.version"),
}

_DEAD = "Dead"
_NO_SUCH_GROUP = "there is no such group: check its name (kafkaproto groups list)"


def list_groups(
    router: Router, states: Collection[str] = (), types: Collection[str] = ()
) -> list[ListedGroup]:
    """The groups of all brokers, sorted by name; with `states` or `types`, those alone."""
    request = ListGroupsRequest(states_filter=tuple(states), types_filter=tuple(types))
    found = ask_all_brokers(router, "list groups", request, _read_listed)
    return sorted(found.values(), key=lambda item: item.group)


def describe_groups(router: Router, groups: Collection[str]) -> dict[str, DescribedGroup]:
    """Members and state of each group, of whichever type.

    Raises:
        BrokerError: there is no such group, or it may not be seen; `usable` has the others.
    """
    described = _without_none(find_groups(router, groups))
    for group in sorted(set(groups) - described.keys()):
        raise no_such_group(router, group, described)
    return described


def find_groups(router: Router, groups: Collection[str]) -> dict[str, DescribedGroup | None]:
    """As `describe_groups`; None for a group that there is not."""
    check_groups(groups)
    found: dict[str, DescribedGroup | None] = dict.fromkeys(groups)
    refusal: BrokerError | None = None
    for find in _FINDERS.values():
        asked = {group for group, item in found.items() if item is None}
        try:
            found |= find(router, asked)
        except KafkaProtoError as error:
            told: dict[str, DescribedGroup | None] = error.usable or {}
            found |= told
            if not isinstance(error, BrokerError) or is_retriable(error):
                error.usable = _without_none(found)
                raise
            # It is about these: the others may be of another type.
            for group in asked - told.keys():
                del found[group]
            refusal = refusal or error
    if refusal is not None:
        refusal.usable = _without_none(found)
        raise refusal
    return found


def _without_none(found: Mapping[str, DescribedGroup | None]) -> dict[str, DescribedGroup]:
    return {group: item for group, item in found.items() if item is not None}


def find_listed(
    router: Router, groups: Collection[ListedGroup]
) -> dict[str, DescribedGroup | None]:
    """As `find_groups`, where the type of each group is known already."""
    found: dict[str, DescribedGroup | None] = {}
    for kind, find in _FINDERS.items():
        found |= find(router, {item.group for item in groups if (item.type or CLASSIC) == kind})
    return found


def no_such_group(router: Router, group: str, usable: object = None) -> BrokerError:
    """The error for a group that nobody describes: there is none, or its type is switched off.

    Groups of such a type are still there, and listed, but may not be described.
    """
    subject = f"group {group!r}"
    kind = _listed_type(router, group)
    if kind not in _FEATURES:
        return BrokerError(GROUP_ID_NOT_FOUND, "DescribeGroups", subject, _NO_SUCH_GROUP, usable)
    api, feature = _FEATURES[kind]
    why = (
        f"it is a {kind} group, and such are switched off in this cluster: its feature {feature} "
        f"is 0 (kafkaproto features upgrade {feature}=1)"
    )
    if kind != SHARE:
        why += f", or group.coordinator.rebalance.protocols of its brokers is without {kind}"
    return BrokerError(UNSUPPORTED_VERSION, api, subject, why, usable)


def _listed_type(router: Router, group: str) -> str:
    """As its coordinator lists it; "" where it does not, or cannot be asked."""

    def read(answer: ListGroupsResponse) -> str:
        if answer.error_code:
            raise BrokerError(answer.error_code, answer.API_NAME, f"group {group!r}")
        found = (item.group_type for item in answer.groups if item.group_id == group)
        return next(found, "").lower()

    try:
        with router.trying_once():  # it has just answered, and this is for an error's text alone
            return router.ask_coordinator("list groups", group, ListGroupsRequest(), read)
    except KafkaProtoError:
        return ""


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
    change(router, question, groups, router.coordinators, GROUP_ID_NOT_FOUND)


def check_can_be_moved(router: Router, group: str, *, is_share: bool) -> DescribedGroup | None:
    """Refuse to move offsets of a group that has members, or is not of the kind that is meant.

    Returns:
        The group; None where there is none.

    Raises:
        BrokerError: it has members, who are named; a group that there is not has none.
        ConfigError: it is a share group where another one is meant, or the reverse.
    """
    found = find_groups(router, {group})[group]
    if found is None:
        return None
    check_kind(found, is_share=is_share)
    if found.members:
        names = ", ".join(f"{item.client_id} at {item.host}" for item in found.members[:5])
        raise BrokerError(
            NON_EMPTY_GROUP,
            "AlterShareGroupOffsets" if is_share else "OffsetCommit",
            f"group {group!r}",
            f"it has members ({len(found.members)}: {names}): stop them, then reset; {STAYS}",
        )
    return found


def check_kind(found: DescribedGroup, *, is_share: bool) -> None:
    """Refuse a share group where another one is meant, and the reverse.

    Raises:
        ConfigError: it is of the other kind; says whose calls there are for it.
    """
    if (found.type == SHARE) == is_share:
        return
    calls = "…_consumer_offsets" if is_share else "…_share_group_offsets"
    text = f"it is a {found.type} group: for its offsets there are the calls {calls}"
    raise ConfigError("group", found.group, text)


def _read_listed(answer: ListGroupsResponse, broker: Broker) -> dict[str, ListedGroup]:
    if answer.error_code:
        raise BrokerError(answer.error_code, "ListGroups", f"broker {broker.endpoint}")
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
    return find_described(router, groups, ConsumerGroupDescribeRequest, _consumer_group)


def _consumer_group(item: ConsumerGroupDescribeResponse.Group) -> DescribedGroup:
    members = tuple(
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            assigned(member.assignment),
            assigned(member.target_assignment),
            member.member_epoch,
            _IS_CLASSIC.get(member.member_type),
        )
        for member in item.members
    )
    return DescribedGroup(
        item.group_id,
        CONSUMER,
        item.group_state,
        CONSUMER_PROTOCOL,
        item.assignor_name,
        item.group_epoch,
        members,
        item.assignment_epoch,
    )


# Classic groups


def find_classic_groups(
    router: Router, groups: Collection[str]
) -> dict[str, DescribedGroup | None]:
    """As `find_groups`, of those with the classic protocol alone."""
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
        if item.protocol_type == CONSUMER_PROTOCOL:
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
                is_classic=True,
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
    NON_EMPTY_GROUP: f"members read with it: stop them first; {STAYS}",
    GROUP_ID_NOT_FOUND: _NO_SUCH_GROUP,
}


# In the order in which they are asked for groups whose type is not known.
_FINDERS = {
    CONSUMER: _find_consumer_groups,
    CLASSIC: find_classic_groups,
    SHARE: find_share_groups,
    STREAMS: find_streams_groups,
}

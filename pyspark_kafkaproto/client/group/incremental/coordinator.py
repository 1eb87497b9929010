"""What a member says in the protocol of KIP-848: heartbeats, that is all.

The first one joins, each tells what has changed, the last one leaves. An answer has the member's
epoch, and what it is to read where that has changed, topics by their ids.
Protocol: KIP-848, KIP-1082 (a member makes its id).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, ClassVar, Final, Self

from pyspark_kafkaproto.client.group.conversation import LEAST_PATIENCE_S, Conversation
from pyspark_kafkaproto.client.group.incremental.assigned import IdPartition
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster.groups.committed import INSTANCE_TAKEN_OVER, GroupMember
from pyspark_kafkaproto.error_codes import (
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    UNKNOWN_SERVER_ERROR,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion
from pyspark_kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pyspark_kafkaproto.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from pyspark_kafkaproto.net import ConsumerConfig, Deadline

Beaten = ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse
"""What a coordinator answers: for us the same in both kinds of groups."""

_log = logging.getLogger(__name__)

JOINING: Final = 0
_LEAVING: Final = -1
_LEAVING_FOR_A_WHILE: Final = -2  # a static member: its partitions are kept for it
_NAMES_S: Final = 5.0
# How long a session is is not told. It is several heartbeats (of the brokers' defaults nine), and
# begins anew where another broker takes over: a silent one is left after some of them.
_PATIENT_BEATS: Final = 3

_ADVICE: Final = {
    FENCED_INSTANCE_ID: INSTANCE_TAKEN_OVER,
    GROUP_ID_NOT_FOUND: "a share group, or a streams group, has the name: this one needs another; "
    "or the group is of the classic protocol, and its members may not be mixed with ours: see the "
    "brokers' group.consumer.migration.policy, or set group.protocol to classic",
    GROUP_MAX_SIZE_REACHED: "the group has as many members as the brokers' group.consumer.max.size "
    "allows",
    # Its own trouble: such a group has no assignor yet, by which its members would be read.
    UNKNOWN_SERVER_ERROR: "the broker's log says why. So do brokers of 4.3 and 4.4 answer while a "
    "group of the classic protocol waits for its first generation "
    "(group.initial.rebalance.delay.ms): make the consumer anew after that",
    UNRELEASED_INSTANCE_ID: "a member with our group.instance.id is alive, or was until a moment "
    "ago: it is believed dead after the brokers' group.consumer.session.timeout.ms",
    UNSUPPORTED_ASSIGNOR: "group.remote.assignor is to be one of the brokers' "
    "group.consumer.assignors",
    # So say brokers of 4.0 on where group.version is 0, as before the last step of an upgrade, and
    # those of 3.9 with ZooKeeper, which offer the request.
    UNSUPPORTED_VERSION: "group.protocol=consumer is switched off in this cluster: it needs Kafka "
    "4.0, its feature group.version to be 1 (kafkaproto features upgrade group.version=1), and "
    "consumer among the brokers' group.coordinator.rebalance.protocols; else set it to classic",
}
_TOO_OLD: Final = "group.protocol=consumer needs brokers of Kafka 4.0: set it to classic"


class Coordinator(Conversation):
    """What a member says to its group's coordinator."""

    _advice = _ADVICE
    _too_old: ClassVar[str] = _TOO_OLD

    def __init__(
        self, config: ConsumerConfig, topics: Collection[str] | SubscriptionPattern
    ) -> None:
        super().__init__(config)
        self._topics = topics

    def anew(self) -> Self:
        """Another one of the same member, with connections of its own."""
        return type(self)(self._config, self._topics)

    def join(self, member: GroupMember) -> Beaten:
        """Become a member; a failure that passes is tried again for default.api.timeout.ms.

        Raises:
            BrokerError: see `error_codes`.
            UnsupportedVersion: the coordinator does not speak the protocol, or not with a pattern.
        """
        request = self._whole(member._replace(generation=JOINING), ())
        try:
            return self._beat(f"join group {self._group!r}", request)
        except UnsupportedVersion as error:
            raise UnsupportedVersion(f"{error}: {self._too_old}") from error

    def beat(self, member: GroupMember, owned: Collection[IdPartition] | None) -> Beaten:
        """Say that the member lives, in one try.

        Args:
            member: in its epoch.
            owned: what it reads, where that has changed since it was said; None: it has not.
        """
        request = self._brief(member, owned)
        with self.router.trying_once():
            return self._beat(f"heartbeat to group {self._group!r}", request)

    def beat_anew(self, member: GroupMember, owned: Collection[IdPartition]) -> Beaten:
        """The same after one whose answer is not known: says everything, and is told all."""
        with self.router.trying_once():
            return self._beat(f"heartbeat to group {self._group!r}", self._whole(member, owned))

    def leaves(self, member: GroupMember) -> bool:
        """Each of them does."""
        return bool(member.member_id)

    def leave(self, member: GroupMember, reason: str, deadline: Deadline) -> None:
        """End the membership; a static member is expected back within the session's time.

        The protocol has no place for `reason`.
        """
        epoch = _LEAVING if member.instance_id is None else _LEAVING_FOR_A_WHILE
        request = self._brief(member._replace(generation=epoch), None)
        timeout_s = self._config.client.request_timeout_s
        _log.debug("leaving group %r: %s", self._group, reason)
        self._ask(f"leave group {self._group!r}", request, timeout_s, deadline)

    def names_of(self, topic_ids: Collection[bytes]) -> dict[bytes, str]:
        """The names of topics, as one broker knows them; one try.

        Where it does not know all of them another one is asked the next time.
        """
        with self.router.trying_once():
            names = self.router.topic_names(topic_ids, self._soon)
        if not names.keys() >= set(topic_ids):
            self.router.distrust_last()
        return names

    def look_at_topics(self) -> dict[bytes, str]:
        """The names of the topics that are subscribed to by name, as one broker knows them.

        Says which are not there: one that is misspelt would be waited for in silence.
        """
        if isinstance(self._topics, SubscriptionPattern):
            return {}
        with self.router.trying_once():
            topology = self.router.topology(self._topics, self._soon)
        missing = [topic for topic in self._topics if not topology.has(topic)]
        for topic in sorted(missing):
            text = "group %r: topic %r is not there (yet), or not for us"
            _log.warning(text, self._group, topic)
        found = topology.topics.values()
        return {topic.topic_id: topic.name for topic in found if topic.topic_id is not None}

    @property
    def _soon(self) -> Deadline:
        """No heartbeat goes out while names are asked for: another broker is asked sooner."""
        return Deadline.after(min(self._patience_s, _NAMES_S))

    def _beat(self, what: str, request: Any) -> Beaten:
        answer: Beaten = self._ask(what, request, self._patience_s)
        beats_s = _PATIENT_BEATS * answer.heartbeat_interval_ms / 1000
        self.hurry(max(beats_s, LEAST_PATIENCE_S))
        return answer

    def _brief(self, member: GroupMember, owned: Collection[IdPartition] | None) -> Any:
        """Who we are, and what we read where that is to be said."""
        parts = None if owned is None else _by_topic(owned)
        return ConsumerGroupHeartbeatRequest(**self._who(member), topic_partitions=parts)

    def _whole(self, member: GroupMember, owned: Collection[IdPartition]) -> Any:
        """Everything there is to say."""
        topics: Collection[str] = ()
        pattern = None
        if isinstance(self._topics, SubscriptionPattern):
            pattern = self._topics.pattern
        else:
            topics = self._topics
        return ConsumerGroupHeartbeatRequest(
            **self._who(member),
            rack_id=self._config.client.client_rack or None,
            rebalance_timeout_ms=round(self._config.max_poll_interval_s * 1000),
            subscribed_topic_names=tuple(sorted(topics)),
            subscribed_topic_regex=pattern,
            server_assignor=self._config.group_remote_assignor,
            topic_partitions=_by_topic(owned),
        )

    def _who(self, member: GroupMember) -> Mapping[str, Any]:
        return {
            "group_id": self._group,
            "member_id": member.member_id,
            "member_epoch": member.generation,
            "instance_id": member.instance_id,
        }

    def _check(self, answer: Any, subject: str) -> None:
        if code := answer.error_code:
            said = (answer.error_message or "", self._advice.get(code, ""))
            text = "; ".join(filter(None, said))
            raise BrokerError(code, type(answer).API_NAME, subject, text)


def _by_topic(
    owned: Collection[IdPartition],
) -> tuple[ConsumerGroupHeartbeatRequest.TopicPartitions, ...]:
    part = ConsumerGroupHeartbeatRequest.TopicPartitions
    return tuple(
        part(topic_id=topic_id, partitions=tuple(item.partition for item in own))
        for topic_id, own in groupby(sorted(owned), key=lambda item: item.topic_id)
    )

"""A member's conversation with its group's coordinator: what both protocols have in common.

It is on connections of its own, for one thread at a time. Errors of the table that pass are tried
again here, but for those of commits, between which heartbeats have to go on; that, and errors about
the generation, are the keeper's business. What is said is in `classic` and `incremental`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self, TypeVar

from pyspark_kafkaproto.client.group.membership import CLOSED
from pyspark_kafkaproto.cluster import CommittedOffset, Router, TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import (
    OF_ANOTHER_TOPIC,
    GroupMember,
    GroupPartition,
    commit_offsets,
)
from pyspark_kafkaproto.cluster.topology import made_again, while_news_travels
from pyspark_kafkaproto.error_codes import UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_ID
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError, LocalProtocolError
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    ConsumerConfig,
    Deadline,
    Endpoint,
    wait_for_answers,
)

_T = TypeVar("_T")
_TURN_S = 0.05  # how long a commit waits at most, where an answer is waited for
# A coordinator says that a commit takes too long after 5 s (offsets.commit.timeout.ms): who leaves
# it before that leaves one that is well. Of a short session there is not that much to give.
LEAST_PATIENCE_S: Final = 6.0
_PART_OF_A_SESSION: Final = 0.5
_MOST_OF_A_SESSION: Final = 0.6
# A broker's trouble that it has no name for may pass, and may be one that never does, as of a group
# whose members say more than fits into a record: whoever polls hears of it soon.
_TROUBLE_S: Final = 5.0
# For whom any other broker can stand in.
_PART_FOR_ANYBODY: Final = 0.2


class MemberRouter(Router):
    """Tries again by itself, unless told not to, or nobody waits for it any more.

    What is under way when a member ends may fail after that: nothing follows it.

    Args:
        config: the client's configuration.
        anybody_s: at first.

    Attributes:
        anybody_s: how long to wait for a broker that is asked what others know as well, where there
            are others: no heartbeat is sent meanwhile.
        is_over: whether the member has ended: what fails from now on is not tried again, and no
            broker is turned to any more.
    """

    is_over = False

    def __init__(self, config: ClientConfig, anybody_s: float) -> None:
        super().__init__(config)
        self.anybody_s = anybody_s

    def retrying(self, what: str, attempt: Callable[[], _T], deadline: Deadline) -> _T:
        """See `Router.retrying`; who has ended tries nothing again."""
        again = attempt if self._tries_once else partial(self._unless_over, attempt)
        return super().retrying(what, again, deadline)

    def connect(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """See `Contacts.connect`; who has ended turns to nobody."""
        if self.is_over:
            raise LocalProtocolError(CLOSED)
        return super().connect(endpoint, deadline)

    def _ask(self, endpoint: Endpoint, request: Any, deadline: Deadline) -> Any:
        has_others = len(self._everybody()) > 1
        soon = deadline.sooner(self.anybody_s) if has_others else deadline
        return super()._ask(endpoint, request, soon)

    def _unless_over(self, attempt: Callable[[], _T]) -> _T:
        try:
            return attempt()
        except KafkaProtoError as error:
            if self.is_over:
                raise LocalProtocolError(CLOSED) from error
            raise


class Conversation(ABC):
    """One member's conversation with its group's coordinator.

    Attributes:
        router: whom it asks through.
        has_left: whether the coordinator was told, elsewhere, that the member goes, or never is.
        may_be_heard: whether a coordinator was reached, and may have heard of the member.
    """

    has_left = False
    may_be_heard = False
    _advice: Mapping[int, str]  # by error code: what to do about it

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._group = config.group_id
        # A broker that hangs is left while its successor still takes us for alive.
        session_s = config.session_timeout_s
        patience_s = min(LEAST_PATIENCE_S, session_s * _MOST_OF_A_SESSION)
        patience_s = max(patience_s, session_s * _PART_OF_A_SESSION)
        self._patience_s = min(config.client.request_timeout_s, patience_s)
        hasty = replace(config.client, request_timeout_s=self._patience_s)
        self.router = MemberRouter(hasty, session_s * _PART_FOR_ANYBODY)

    def close(self) -> None:
        """Close its connections."""
        self.router.close()

    def hurry(self, patience_s: float) -> None:
        """Leave a broker that says nothing for `patience_s`, if it is not left before that."""
        if patience_s < self._patience_s:
            self._patience_s = patience_s
            self.router.config = replace(self.router.config, request_timeout_s=patience_s)
            for_anybody_s = patience_s * _PART_FOR_ANYBODY / _PART_OF_A_SESSION
            self.router.anybody_s = min(self.router.anybody_s, for_anybody_s)

    @abstractmethod
    def anew(self) -> Self:
        """Another one of the same member, with connections of its own."""

    @abstractmethod
    def leaves(self, member: GroupMember) -> bool:
        """Whether the coordinator is told when this member goes."""

    @abstractmethod
    def leave(self, member: GroupMember, reason: str, deadline: Deadline) -> None:
        """End the membership, so that the others need not wait for the session to end."""

    def commit(
        self,
        member: GroupMember,
        offsets: Mapping[TopicPartition, CommittedOffset],
        topic_ids: Mapping[str, bytes],
        *,
        is_doubtful: bool = False,
    ) -> None:
        """Commit as a member of its generation; one try.

        Args:
            member: who commits.
            offsets: the next ones to read.
            topic_ids: of the topics that these are offsets of, as far as they are known.
            is_doubtful: whether another topic may have taken the name of one of these: brokers
                before 4.1 take names alone, so what has their names now is looked up first.
        """
        with self.router.trying_once():
            again = self._made_again(topic_ids) if is_doubtful and topic_ids else []
            same = {item: at for item, at in offsets.items() if item.topic not in again}
            if same:
                commit_offsets(self.router, {self._group: same}, member, topic_ids)
        if again:
            self.router.distrust_last()  # it may be behind
            subject = f"group {self._group!r}, topic {', '.join(again)}"
            done = {GroupPartition(self._group, item): None for item in same}
            error = BrokerError(UNKNOWN_TOPIC_ID, "OffsetCommit", subject, OF_ANOTHER_TOPIC, done)
            raise while_news_travels(error)

    def _made_again(self, topic_ids: Mapping[str, bytes]) -> list[str]:
        """Those of the topics whose name another one has by now."""
        soon = Deadline.after(self.router.config.request_timeout_s)
        return made_again(topic_ids, self.router.topology(topic_ids.keys(), soon).topic_ids)

    def _ask(
        self,
        what: str,
        request: Any,
        answer_s: float,
        by_then: Deadline | None = None,
        most: int | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> Any:
        """The answer; a failure that passes is tried again for default.api.timeout.ms.

        Args:
            what: names the work in errors.
            request: what to ask.
            answer_s: how long one answer may take. A JoinGroup is answered when all have come:
                that is no failure, and does not count as one.
            by_then: when all of it is to be over, if it may not last as long as above.
            most: the highest version of the request to use.
            meanwhile: called time and again until the answer is there.
        """
        config = self.router.config
        patience_s = config.default_api_timeout_s if by_then is None else by_then.timeout_s
        deadline = Deadline.after(answer_s + patience_s) if by_then is None else by_then

        def within(timeout_s: float) -> Deadline:
            return Deadline.after(timeout_s) if by_then is None else by_then.sooner(timeout_s)

        def attempt() -> Any:
            soon = within(config.request_timeout_s)
            try:
                place = self.router.coordinator(self._group, soon)
                connection = self.router.connect(place, soon)
                self.may_be_heard = True
                answered = within(answer_s)
                if meanwhile is None:
                    answer = self.router.request(connection, request, answered, most)
                else:
                    answer = self._wait_with(meanwhile, connection, request, answered)
                self._check(answer, f"group {self._group!r} at broker {place}")
            except KafkaProtoError as error:
                error.patience_s = min(error.patience_s, patience_s)
                if isinstance(error, BrokerError) and error.code == UNKNOWN_SERVER_ERROR:
                    error.patience_s = min(error.patience_s, _TROUBLE_S)
                raise
            return answer

        return self.router.retrying(what, attempt, deadline)

    def _wait_with(
        self,
        meanwhile: Callable[[], object],
        connection: Connection,
        request: Any,
        deadline: Deadline,
    ) -> Any:
        """The answer; what is said meanwhile goes over other connections."""
        try:
            connection.send(request, deadline)
            while not deadline.has_passed:
                if wait_for_answers([connection], min(_TURN_S, deadline.remaining_s)):
                    break
                meanwhile()
            return connection.receive(deadline).message
        except KafkaProtoError as error:
            self.router.note_failure(connection.endpoint, error)
            raise

    def _check_not_left(self) -> None:
        if self.has_left:
            raise LocalProtocolError(CLOSED)

    def _check(self, answer: Any, subject: str) -> None:
        """Raise the error that an answer has."""
        if code := answer.error_code:
            raise BrokerError(code, type(answer).API_NAME, subject, self._advice.get(code, ""))

"""Share sessions with all leaders at once: who is asked when, and what an answer means.

Each leader has one request of ours at most. A fetch takes with it what is to be acknowledged there;
a leader that we fetch nothing from is told in a request of its own, and so is a renewal. Rows of an
answer are decoded when they are asked for. Nothing is fetched ahead: locks run from when a record
is given to us.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Final

from pyspark_kafkaproto.client.group.failing import Failing
from pyspark_kafkaproto.client.reading.withheld import Withheld
from pyspark_kafkaproto.client.share.answers import (
    TOO_OLD,
    advised,
    error_of_acknowledging,
    partition_error,
    parts_of_answer,
)
from pyspark_kafkaproto.client.share.coming import Coming
from pyspark_kafkaproto.client.share.held import Acknowledge, Acquired, Held
from pyspark_kafkaproto.client.share.leaders import Leaders, Led
from pyspark_kafkaproto.client.share.pace import Pace
from pyspark_kafkaproto.client.share.rows import Layout, Part, helds_of, parts_of
from pyspark_kafkaproto.client.share.session import FIRST_EPOCH, Pending, ShareSession
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.error_codes import (
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_NOT_FOUND,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    KafkaProtoError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.share_acknowledge import ShareAcknowledgeRequest
from pyspark_kafkaproto.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from pyspark_kafkaproto.net import Connection, Deadline, Endpoint, ShareConfig, wait_for_answers
from pyspark_kafkaproto.net.retry import is_retriable

_log = logging.getLogger(__name__)

Results = dict[TopicPartition, KafkaProtoError | None]

_FIRST_WITH_RENEWALS: Final = 2
_UNTIL_LOCKS_ARE_KNOWN_S: Final = 0.5
# What is worked off is said then, be there nothing to fetch: at the latest a second after the last
# request, or a third of the lock's time.
_SAID_AFTER_S: Final = 1.0
_SAID_AFTER: Final = 1 / 3


class ShareExchange:
    """The sessions of a member.

    Args:
        config: the member's.
        router: whom to ask who leads.
        member_id: the member's.
        layout: which columns rows have.

    Attributes:
        results: what became of acknowledgements since somebody looked: of each partition the first
            error, or None.
        lock_s: for how long a record is ours; None until a leader has said it.
        coming: rows that were given to us.
    """

    def __init__(self, config: ShareConfig, router: Router, member_id: str, layout: Layout) -> None:
        self.results: Results = {}
        self.lock_s: float | None = None
        self.coming = Coming()
        self._config = config
        self._who = config.group_id, member_id
        self._layout = layout
        self._leaders = Leaders(router)
        self._wires: dict[Endpoint, Router] = {}  # a session's connection is nobody else's
        self._sessions: dict[Endpoint, ShareSession] = {}
        self._lost: list[ShareSession] = []  # with records that somebody has
        self._errors: deque[KafkaProtoError] = deque()
        self._resting: dict[TopicPartition, Deadline] = {}
        self._failing = Failing(config.client)
        self._withheld = Withheld(config.client)
        self._pace = Pace()

    # Rows

    def next_part(self) -> Part | None:
        """Rows that have come; None: ask for more.

        Raises:
            CorruptRecords: behind the sound rows of its partition; they are released.
            KafkaProtoError: what was met by the last requests, once their rows are out.
        """
        part = self.coming.next_part()
        if part is None and self._errors:
            raise self._errors.popleft()
        return part

    @property
    def is_busy(self) -> bool:
        """Whether an answer is outstanding, or something is to be said."""
        return any(one.pending or one.has_unsaid for one in self._every) or bool(self._errors)

    def turn(self, assigned: Collection[TopicPartition], deadline: Deadline) -> None:
        """Ask who has no request of ours, and take what comes first, if it comes by `deadline`."""
        self._ask(assigned)
        if self._errors:
            return
        waiting = [one for one in self._sessions.values() if one.pending]
        ends = [rest.remaining_s for rest in self._resting.values()]
        wait_s = min([deadline.remaining_s, *ends])
        if not waiting:
            time.sleep(wait_s)
            return
        by_connection = {one.connection: one for one in waiting}
        for connection in wait_for_answers(list(by_connection), wait_s):
            self._take(by_connection[connection])
        for one in waiting:
            self._check_time(one)

    # Acknowledgements

    @property
    def _every(self) -> list[ShareSession]:
        return [*self._sessions.values(), *self._lost]

    def _helds(self) -> Iterator[Held]:
        return (held for one in self._every for held in one.helds)

    @property
    def is_open(self) -> bool:
        """Whether some record was handed out and is not marked."""
        return any(held.is_open for held in self._helds())

    def kept(self) -> list[Acquired]:
        """What was handed out and is not acknowledged for good."""
        return sorted(item for held in self._helds() for item in held.kept())

    def accept_given(self) -> None:
        """All that was handed out was worked off."""
        for held in self._helds():
            held.accept_given()

    def mark(self, how: Acknowledge, partition: TopicPartition, first: int, last: int) -> bool:
        """Have these acknowledged so; False: none of them is ours.

        Raises:
            UnsupportedVersion: a broker does not renew locks.
        """
        chosen = [
            (one, held)
            for one in self._every
            for held in one.helds
            if held.acquired.partition == partition
        ]
        if how is Acknowledge.RENEW:
            for one in {id(one): one for one, _ in chosen if one.lost is None}.values():
                _check_renews(one.connection)
        marked = [held.mark(how, first, last) for _, held in chosen]
        return any(marked)

    def say_all(self, deadline: Deadline) -> None:
        """Have all that is marked heard; what became of it is in `results`."""
        self._settle_lost()
        while True:
            for one in self._with_unsaid():
                if one.is_idle:
                    self._send(one, one.acknowledge(), deadline)
            if not self._take_some(self._unheard(), deadline):
                break
        self._settle_lost()

    def say_in_time(self) -> None:
        """Have heard what is marked, where other rows of an answer keep fetches waiting.

        Its locks run. Waits for no answer. A renewal goes at once.
        """
        if not self.coming.has_more:
            return  # a fetch is next, and takes it along
        self._settle_lost()
        for one in self._unheard():
            if one.pending is not None and wait_for_answers([one.connection], 0.0):
                self._take(one)
        due = time.monotonic() - min(_SAID_AFTER_S, (self.lock_s or 0.0) * _SAID_AFTER)
        for one in self._with_unsaid():
            if not one.is_idle or one.connection.is_throttled:
                continue
            if one.has_renewals or one.spoke_at <= due:
                soon = Deadline.after(self._config.client.request_timeout_s)
                self._send(one, one.acknowledge(), soon)

    def _unheard(self) -> list[ShareSession]:
        """Those with a request that acknowledges, or that keeps them from acknowledging."""
        return [
            one
            for one in self._sessions.values()
            if one.pending is not None
            and (one.pending.said or one.has_unsaid or not one.pending.is_fetch)
        ]

    def _take_some(self, waiting: list[ShareSession], deadline: Deadline) -> bool:
        """Take answers of these, in the order in which they come; False: there is none to wait for.

        Who says nothing by `deadline` is left, and keeps no other waiting.
        """
        by_connection = {one.connection: one for one in waiting}
        for connection in wait_for_answers(list(by_connection), deadline.remaining_s):
            self._take(by_connection[connection])
        for one in waiting:
            self._check_time(one, deadline)
        return bool(waiting)

    def take_results(self) -> Results:
        """What became of acknowledgements since the last call."""
        results, self.results = self.results, {}
        return results

    def close(self, deadline: Deadline) -> None:
        """Say what is marked, and end the sessions: what else we hold goes back to the group."""
        self._settle_lost()
        ended: set[int] = set()
        while True:
            for one in list(self._sessions.values()):
                if one.is_idle and id(one) not in ended and one.epoch != FIRST_EPOCH:
                    ended.add(id(one))
                    self._send(one, one.acknowledge(is_last=True), deadline)
            waiting = [one for one in self._sessions.values() if one.pending is not None]
            if not self._take_some(waiting, deadline):
                break
        self._settle_lost()
        self.drop()

    def drop(self) -> None:
        """Close all connections."""
        self.coming.close()
        for router in self._wires.values():
            router.close()
        self._sessions.clear()

    def _with_unsaid(self) -> list[ShareSession]:
        return [one for one in self._sessions.values() if one.has_unsaid]

    def _settle_lost(self) -> None:
        """Who acknowledges what was lost is told."""
        for one in [one for one in self._sessions.values() if one.is_cut_off]:
            self._lose(one, one.lost or _interrupted(one))
        for one in self._lost:
            if one.lost is not None:
                self._note_lost(one.unheard, one.lost)
                one.give_up()
        self._lost = [one for one in self._lost if one.helds]

    def _note_lost(self, partitions: Iterable[TopicPartition], error: KafkaProtoError) -> None:
        for partition in partitions:
            self._note(partition, error)

    def _note(self, partition: TopicPartition, error: KafkaProtoError | None) -> None:
        if error is not None:
            _log.warning("%s: acknowledgements were not taken: %s", partition, error)
        if self.results.get(partition) is None:
            self.results[partition] = error

    # Asking

    def _ask(self, assigned: Collection[TopicPartition]) -> None:
        """Fetch from each leader that has no request of ours; tell others what there is to tell."""
        self._settle_lost()
        now = time.monotonic()
        self._resting = {item: end for item, end in self._resting.items() if end.at > now}
        due = [item for item in assigned if item not in self._resting]
        self._failing.forget(lambda item: item not in assigned)
        deadline = Deadline.after(self._config.client.request_timeout_s)
        for endpoint, led in self._by_place(due, deadline).items():
            one = self._session(endpoint, led, deadline)
            if one is None or not one.is_idle or one.has_renewals or one.connection.is_throttled:
                continue
            wanted = [(partition, topic_id) for partition, (_, topic_id) in led.items()]
            self._send(one, one.fetch(wanted, self._config, self._most_wait_s), deadline)
        for one in self._with_unsaid():
            if one.is_idle and not one.connection.is_throttled:
                self._send(one, one.acknowledge(), deadline)

    @property
    def _most_wait_s(self) -> float:
        """A lock runs from the answer on, which has to arrive well before, whenever it was sent."""
        return _UNTIL_LOCKS_ARE_KNOWN_S if self.lock_s is None else self.lock_s / 2

    def _by_place(
        self, due: Sequence[TopicPartition], deadline: Deadline
    ) -> dict[Endpoint, dict[TopicPartition, Led]]:
        if not due:
            return {}
        began = time.monotonic()
        try:
            leaders, failures = self._leaders.of(due, deadline)
        except KafkaProtoError as error:
            self._rest(due, time.monotonic() - began)
            if not is_retriable(error):
                raise
            self._failing.note(set(due), error, began)
            return {}
        for partition, failure in failures.items():
            self._fail({partition}, failure, began)
        places: dict[Endpoint, dict[TopicPartition, Led]] = {}
        for partition, led in leaders.items():
            places.setdefault(led.endpoint, {})[partition] = led
        return places

    def _session(
        self, endpoint: Endpoint, led: Collection[TopicPartition], deadline: Deadline
    ) -> ShareSession | None:
        """The one with this broker; None where it cannot be reached now."""
        one = self._sessions.get(endpoint)
        if one is not None and one.pending is None and not one.connection.is_idle:
            # The broker has closed it, and with it the session.
            self._lose(one, _closed(one))
            one = None
        if one is not None:
            return one
        wire = self._wires.setdefault(endpoint, Router(self._config.client))
        began = time.monotonic()
        try:
            connection = wire.connect(endpoint, deadline)
            self._check_versions(connection)
        except KafkaProtoError as error:
            # As long as it was waited for: else the others would hardly ever be read.
            self._fail(set(led), error, began, time.monotonic() - began)
            return None
        one = self._sessions[endpoint] = ShareSession(endpoint, connection, self._who)
        return one

    def _check_versions(self, connection: Connection) -> None:
        """Whether the broker can be asked at all, and as it is wanted.

        Raises:
            UnsupportedVersion: it cannot.
        """
        try:
            version = connection.version_for(ShareFetchRequest)
        except UnsupportedVersion as error:
            raise UnsupportedVersion(f"{error}: {TOO_OLD}") from error
        if self._config.takes_few and version < _FIRST_WITH_RENEWALS:
            text = "share.acquire.mode=record_limit needs brokers of Kafka 4.2"
            raise UnsupportedVersion(f"broker {connection.endpoint}: {text}")

    def _send(self, one: ShareSession, request: Any, deadline: Deadline) -> None:
        try:
            one.connection.send(request, deadline)
        except KafkaProtoError as error:
            self._lose(one, error)

    # Answers

    def _check_time(self, one: ShareSession, by_then: Deadline | None = None) -> None:
        """A broker that has said nothing for request.timeout.ms, or `by_then`, is left."""
        if one.pending is None:
            return
        patience_s = self._config.client.request_timeout_s
        patience_s += self._config.fetch_max_wait_s if one.pending.is_fetch else 0.0
        end = Deadline(one.pending.since + patience_s, patience_s)
        if by_then is not None and by_then.at < end.at:
            end = by_then
        try:
            end.check(f"broker {one.endpoint}: receive")
        except KafkaProtoError as error:
            self._lose(one, error)

    def _take(self, one: ShareSession) -> None:
        """The answer to its last request, which is there."""
        pending = one.pending
        if pending is None:
            return
        try:
            soon = Deadline.after(self._config.client.request_timeout_s)
            answer = one.connection.receive(soon).message
        except KafkaProtoError as error:
            self._lose(one, error)
            return
        if answer.error_code:
            kind = type(answer).API_NAME
            subject = f"group {self._config.group_id!r}"
            text = advised(answer.error_message, answer.error_code)
            self._lose(
                one, BrokerError(answer.error_code, kind, subject, text).at(str(one.endpoint))
            )
            return
        if answer.acquisition_lock_timeout_ms > 0:
            self.lock_s = answer.acquisition_lock_timeout_ms / 1000
        self._judge(one, pending, answer)
        one.answered()  # now: of what an interrupt kept from being judged nobody would hear

    def _judge(self, one: ShareSession, pending: Pending, answer: Any) -> None:
        """Each partition of an answer: what became of what we said, and what there is new."""
        unheard = {item for item, _ in pending.said}
        failed: dict[TopicPartition, BrokerError] = {}
        kind = type(answer).API_NAME
        for partition, topic_id, data in parts_of_answer(one, answer):
            if partition in unheard:
                unheard.discard(partition)
                self._note(partition, error_of_acknowledging(partition, data, kind))
            if data.error_code:
                failed[partition] = partition_error(
                    partition, data.error_code, data.error_message, kind
                )
                self._note_moved(failed[partition], partition, data, answer)
            elif pending.is_fetch and data.acquired_records:
                self._hold(one, pending, partition, topic_id, data)
        for partition in unheard:
            where = f"{kind}, partition {partition}"
            self._note(partition, RemoteProtocolError("acknowledged, not answered", where=where))
        if pending.is_fetch:
            self._keep_pace(one, answer)
            for partition, error in failed.items():
                self._fail({partition}, error, pending.since)
            self._failing.note_answered(one.asked, failed)

    def _keep_pace(self, one: ShareSession, answer: ShareFetchResponse) -> None:
        """Rest as long as the broker's quota, if there is one, wants."""
        if self._withheld.note(one.endpoint, one.asked, answer):
            rest_s = self._pace.rest_throttled(one.endpoint, answer.throttle_time_ms / 1000)
        else:
            size = sum(len(data.records or b"") for *_, data in parts_of_answer(one, answer))
            rest_s = self._pace.rest_after(one.endpoint, size)
        if rest_s:
            self._rest(one.asked, rest_s)

    def _note_moved(
        self, error: BrokerError, partition: TopicPartition, data: Any, answer: Any
    ) -> None:
        if error.error.refreshes_metadata:
            places = {
                item.node_id: Endpoint(item.host, item.port) for item in answer.node_endpoints
            }
            to = data.current_leader
            self._leaders.note_moved(partition, places.get(to.leader_id), to.leader_epoch)

    def _hold(
        self,
        one: ShareSession,
        pending: Pending,
        partition: TopicPartition,
        topic_id: bytes,
        data: ShareFetchResponse.Topic.Partition,
    ) -> None:
        try:
            helds = helds_of(partition, topic_id, data)
        except RemoteProtocolError as error:
            self._tell(error)
            return
        one.hold(helds)
        parts = parts_of(data, helds, self._layout, self._config.client)
        until = pending.since + (self.lock_s or 0.0)
        self.coming.add(one, parts, helds, until)

    # Failures

    def _lose(self, one: ShareSession, error: KafkaProtoError) -> None:
        """A session is over: what it gave to us goes back to the group."""
        _log.debug("share session with %s is over: %s", one.endpoint, error)
        is_fetch = one.pending is not None and one.pending.is_fetch
        asked, since = one.asked, one.pending.since if one.pending else time.monotonic()
        # In an order that can be gone through again, where an interrupt comes in between.
        kept = copy(error)  # nobody may ever ask: a traceback holds the frames of who polled
        self._note_lost(one.unheard, kept)
        one.lose(kept)
        if one.helds and one not in self._lost:
            self._lost.append(one)
        if self._sessions.get(one.endpoint) is one:
            del self._sessions[one.endpoint]
        is_session = isinstance(error, BrokerError) and error.code in _BEGINS_ANEW
        if is_session and one.epoch != FIRST_EPOCH:
            return  # the next one is begun at once
        if isinstance(error, BrokerError) and error.error.refreshes_metadata:
            # All of a request is refused so for one id of a topic that is gone: which one it is,
            # and by which it goes if it was made anew, metadata tells.
            self._leaders.drop(asked)
        if (is_fetch and asked) or not is_retriable(error):  # interrupted, it may name nothing yet
            self._fail(asked, error, since)

    def _fail(
        self,
        partitions: set[TopicPartition],
        error: KafkaProtoError,
        since: float,
        least_s: float = 0.0,
    ) -> None:
        """Leave them alone for a while; what does not pass, or lasts, is an error of the reader."""
        self._rest(partitions, least_s)
        if not isinstance(error, BrokerError):
            self._leaders.forget(partitions)
        elif error.error.refreshes_metadata and not self._leaders.knows_all(partitions):
            self._leaders.forget(partitions)  # nor has it told who leads
        if not is_retriable(error):
            self._tell(error)
            return
        try:
            self._failing.note(partitions, error, since)
        except KafkaProtoError as lasting:
            self._tell(lasting)

    def _tell(self, error: KafkaProtoError) -> None:
        """Have a poll raise it; once, where it is about all partitions of a topic."""
        if str(error) not in map(str, self._errors):
            self._errors.append(error)

    def _rest(self, partitions: Collection[TopicPartition], least_s: float = 0.0) -> None:
        again = Deadline.after(max(least_s, self._config.client.retry_backoff_s))
        self._resting |= dict.fromkeys(partitions, again)


_BEGINS_ANEW: Final = (INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND)


def _check_renews(connection: Connection) -> None:
    if connection.version_for(ShareAcknowledgeRequest) < _FIRST_WITH_RENEWALS:
        text = f"broker {connection.endpoint}: RENEW needs brokers of Kafka 4.2"
        raise UnsupportedVersion(text)


def _interrupted(one: ShareSession) -> KafkaProtoError:
    why = "an error or a signal interrupted the call that was at it: what it gave to us comes again"
    return ConnectionFailed(str(one.endpoint), "receive", why)


def _closed(one: ShareSession) -> KafkaProtoError:
    return ConnectionFailed(str(one.endpoint), "receive", "the broker has closed the connection")

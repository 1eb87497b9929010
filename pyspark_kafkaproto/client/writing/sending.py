"""Finished batches to the leaders of their partitions: pipelined, in order, each written once.

A `Sender` has up to max.in.flight.requests.per.connection requests outstanding at each leader, one
request with a batch each of many partitions. It runs in the caller's thread: `pump` does what can
be done at once, `drain` waits.

What `net/retry.py` is for one request, this is for many partitions at a time: one that fails waits
its own time while the others go on. The same table says what is tried again, the same backoff how
soon, and delivery.timeout.ms ends it. No request made from here is retried by anybody else.

Protocol: Produce (KIP-98, KIP-467 record errors, KIP-516 topic ids, KIP-951 new leaders).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.links import Link, SentProduce
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.sequences import Identity
from pyspark_kafkaproto.client.writing.verdicts import (
    Failure,
    Verdict,
    after_last_try,
    cannot_go_on,
    given_up,
    out_of_order,
    verdict_on,
)
from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import (
    Connection,
    Deadline,
    Endpoint,
    ProducerConfig,
    wait_for_answers,
)
from pyspark_kafkaproto.net.retry import is_retriable

_log = logging.getLogger(__name__)

Answered = ProduceResponse.Topic.Partition
# Called with a queue, a batch of it in flight, what the broker said of it, and that as an error:
# gives the batches that it put in its place, or raises.
Refuse = Callable[[PartitionQueue, Batch, Answered, BrokerError], list[Batch]]
# Called with partitions before something is sent to them.
Admit = Callable[[Sequence[TopicPartition]], None]
# Called with the identity that a broker no longer takes, and its error: gives the next one.
Renew = Callable[[Identity, BrokerError], Identity]

_MOMENT_S = 0.02  # between looks at answers, while rows come
_PAUSE_S = 0.02  # between looks at a broker that wants silence
# A topic that is not there any more: it was when it was first written to.
_FOUND_BEFORE_S = 10.0
_PAUSES_MAX = 30  # in a row: the longest one is reached by then
_ABSENCE_S = 1.0  # shorter ones are no reason that a batch was not delivered in its time


class Sender:
    """Sends what `offer` is told of.

    Args:
        config: of the producer.
        router: finds leaders; its connections are used.
        refuse: what becomes of a batch with records that the broker does not take.
        renew: gives the identity after one that is no longer good.
        transactional_id: goes into requests; None without transactions.
        most_version: the highest version of Produce to use; None for the highest there is.
        admit: takes partitions into the transaction.
        queues: all that there are.
    """

    def __init__(
        self,
        config: ProducerConfig,
        router: Router,
        refuse: Refuse,
        renew: Renew,
        *,
        transactional_id: str | None = None,
        most_version: int | None = None,
        admit: Admit | None = None,
        queues: Callable[[], Iterable[PartitionQueue]],
    ) -> None:
        self._config = config
        self._router = router
        self._refuse = refuse
        self._renew = renew
        self._transactional_id = transactional_id
        self._most_version = most_version
        self._admit = admit
        self._queues = queues
        self._links: dict[Endpoint, Link] = {}
        self._ready: dict[TopicPartition, PartitionQueue] = {}
        self.held_bytes = 0
        self.offered_bytes = 0  # since the last look
        self.may_come_late = False  # something was sent that nobody answered
        self._moment_s = min(_MOMENT_S, config.linger_s)
        self._left_at = time.monotonic()
        self._pauses: dict[int, tuple[float, float]] = {}  # the latest, by failures in a row

    def offer(self, queue: PartitionQueue, batch: Batch) -> None:
        """A batch was finished, to be sent after all others of its partition."""
        queue.waiting.append(batch)
        self.held_bytes += batch.size_bytes
        self.offered_bytes += batch.size_bytes
        self._ready[queue.partition] = queue

    def pump(self) -> None:
        """Take the answers that are there, send what is worth a request.

        Waits for nothing.
        """
        self._turn(0.0, is_pressing=False)

    def pump_seldom(self) -> None:
        """`pump`, unless that was a moment ago: a look has its price, whatever there is to do."""
        if time.monotonic() - self._left_at >= self._moment_s:
            self.pump()

    def drain(self, most_bytes: int = 0) -> None:
        """Send and wait until no more than `most_bytes` are held; 0 is until all is written.

        Raises:
            KafkaProtoError: a batch cannot be written; names its partition, rows and size.
        """
        self._turn(0.0, is_pressing=True)
        while self.held_bytes > most_bytes:
            self._turn(self._idle_s(), is_pressing=True)

    def _turn(self, timeout_s: float, *, is_pressing: bool) -> None:
        """Take answers, waiting for one at most `timeout_s`, and send what may go."""
        self._excuse_absence()
        self.offered_bytes = 0
        self._receive(timeout_s)
        self._send(is_pressing=is_pressing)
        self._left_at = time.monotonic()

    def _excuse_absence(self) -> None:
        """While the caller did something else nothing could be sent: no broker is to blame.

        The first moment counts all the same, or of who comes seldom no batch would ever be given
        up, however often brokers refuse it.
        """
        away_s = time.monotonic() - self._left_at
        if away_s < _ABSENCE_S:
            return
        away_s -= min(_ABSENCE_S, self._config.delivery_timeout_s / 2)
        sent = chain.from_iterable(link.sent for link in self._links.values())
        queues = {partition: pair[0] for one in sent for partition, pair in one.batches.items()}
        for queue in (queues | self._ready).values():
            queue.excuse(away_s)
        for link in self._links.values():
            link.excuse(away_s)

    def settle(self, deadline: Deadline) -> None:
        """Have what is in flight answered, whatever is said: it will not arrive later then.

        What is written counts.
        """
        for link in self._links.values():
            for sent, answer in link.hear_out(deadline):
                try:
                    for queue, batch, data in self._count_written(sent, answer):
                        if verdict_on(queue, batch, data)[0] is Verdict.WRITTEN:
                            self._delivered(queue, batch, -1)
                except KafkaProtoError as error:
                    _log.debug("%s: %s", link.endpoint, error)

    def abandon(self) -> None:
        """Give up what is in flight: its answers must not be taken for somebody else's."""
        for link in self._links.values():
            link.drop()
        self._links = {}
        self._ready = {}
        self.held_bytes = 0

    # Sending

    def _send(self, *, is_pressing: bool) -> None:
        """Send what may go; unless somebody waits for it, only what is worth a request."""
        if self._config.acks == 0:
            self._doubt_leaders()
        now = time.monotonic()
        sendable = [queue for queue in self._ready.values() if self._may_go(queue, now)]
        self._find_leaders([queue for queue in sendable if queue.leader is None])
        if self._admit is not None and sendable:
            self._admit([queue.partition for queue in sendable])
        by_leader: dict[Endpoint, list[PartitionQueue]] = {}
        throttling = self._router.connections.throttling
        for queue in sendable:
            if queue.leader is not None:
                by_leader.setdefault(queue.leader.endpoint, []).append(queue)
        for endpoint, queues in by_leader.items():
            link = self._links.setdefault(endpoint, Link(endpoint))
            if not (is_pressing or self._is_worth_a_request(link, queues)):
                continue
            if is_pressing and link.is_throttled(throttling):
                self._wait_for_quota(link, queues[0])
            others_wait = len(by_leader) > 1 or any(
                other.sent for other in self._links.values() if other is not link
            )
            left = queues
            while left and link.has_room(self._config.max_in_flight, throttling):
                if not self._send_one(link, self._fill(left), others_wait=others_wait):
                    break
                now = time.monotonic()
                left = [queue for queue in left if queue.can_send(now)]
        self._forget_idle()

    def _wait_for_quota(self, link: Link, queue: PartitionQueue) -> None:
        """The broker wants silence, which counts as tries do for what is to be sent next.

        Not for what comes behind it: under a steady quota that has its turn later.
        """
        head = queue.head
        if head is not None and not queue.in_flight:
            head.tried_within(self._config.delivery_timeout_s)
            why = f"broker {link.endpoint} throttles this client: over a quota of its user or id"
            head.note(KafkaProtoError(why), was_sent=False)

    def _is_worth_a_request(self, link: Link, queues: Sequence[PartitionQueue]) -> bool:
        """Whether the leader has nothing to do, or a full request waits for it.

        Each request has its price here and at the broker, whatever it holds: while one is under
        way, what was finished meanwhile gathers.
        """
        if not link.sent:
            return True
        missing_bytes = self._config.max_request_size
        for batch in chain.from_iterable(queue.unsent() for queue in queues):
            missing_bytes -= batch.size_bytes
            if missing_bytes <= 0:  # there may be thousands more
                return True
        return False

    def _may_go(self, queue: PartitionQueue, now: float) -> bool:
        head = queue.head
        if head is not None and not queue.in_flight and head.is_overdue:
            raise given_up(queue, head, self._config)
        return queue.can_send(now)

    def _forget_idle(self) -> None:
        done = [partition for partition, queue in self._ready.items() if queue.head is None]
        for partition in done:
            del self._ready[partition]

    def _fill(self, queues: Sequence[PartitionQueue]) -> list[tuple[PartitionQueue, Batch]]:
        """A batch of each, in turn, as many as one request holds; one in any case."""
        chosen: list[tuple[PartitionQueue, Batch]] = []
        room_bytes = self._config.max_request_size
        for queue in queues:
            head = queue.head
            if head is None or (chosen and head.size_bytes > room_bytes):
                continue
            room_bytes -= head.size_bytes
            chosen.append((queue, queue.take()))
        return chosen

    def _send_one(
        self, link: Link, chosen: list[tuple[PartitionQueue, Batch]], *, others_wait: bool
    ) -> bool:
        """One request; whether it went out."""
        deadline = Deadline.after(self._config.client.request_timeout_s)
        for _, batch in chosen:
            own = batch.tried_within(self._config.delivery_timeout_s)
            deadline = own if own.at < deadline.at else deadline
        try:
            link.send(
                self._router, self._config, chosen, deadline, self._id_and_version(),
                others_wait=others_wait,
            )  # fmt: skip
        except (ConnectionFailed, DeadlineExceeded) as error:
            link.has_failed = True
            asked_bytes = _asked_bytes(error, link, sum(batch.size_bytes for _, batch in chosen))
            for queue, batch in chosen:  # a part of a request at most: brokers wait for the rest
                self._try_later(
                    queue, batch, error, link.endpoint, was_sent=False, asked_bytes=asked_bytes
                )
            self._lose(link, error)
            return False
        for queue, batch in chosen:
            # The others first the next time.
            self._ready[queue.partition] = self._ready.pop(queue.partition)
            if self._config.acks == 0:
                self._delivered(queue, batch, -1)
        return True

    def _id_and_version(self) -> tuple[str | None, int | None]:
        return self._transactional_id, self._most_version

    # Leaders

    def _doubt_leaders(self) -> None:
        """With acks=0 brokers tell of errors, as that they lead no more, by hanging up alone."""
        for link in self._links.values():
            if link.was_ended:
                link.drop()
                for queue in self._queues():
                    if queue.is_led_by(link.endpoint):
                        queue.leader = None

    def _find_leaders(self, queues: list[PartitionQueue]) -> None:
        """Look up who leads, one request for all; whoever has no leader waits."""
        if not queues:
            return
        deadline = Deadline.after(self._config.client.request_timeout_s)
        try:
            topology = self._router.topology({item.partition.topic for item in queues}, deadline)
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            for queue in queues:
                self._pause(queue, error)
            return
        is_dated = False  # brokers hear of elections and topics one by one: then another is asked
        for queue in queues:
            try:
                leader = topology.leader(queue.partition)
                queue.topic_id = topology.topic(queue.partition.topic).topic_id
            except BrokerError as error:
                if not is_retriable(error):
                    raise
                is_dated = True
                error.patience_s = max(error.patience_s, _FOUND_BEFORE_S)
                self._pause(queue, error)
            else:
                is_dated = is_dated or queue.doubts(leader)
                queue.leader = leader
        if is_dated:
            self._router.distrust_last()

    # Answers

    def _receive(self, timeout_s: float) -> None:
        """Take every answer that is there; wait for one at most `timeout_s`."""
        busy = {
            link.connection: link
            for link in self._links.values()
            if link.sent and link.connection is not None
        }
        if not busy:
            if timeout_s > 0:
                time.sleep(timeout_s)
            return
        for connection in wait_for_answers(list(busy), timeout_s):
            self._take_answers(busy[connection], connection)
        now = time.monotonic()
        for connection, link in busy.items():
            is_late = bool(link.sent) and link.sent[0].deadline.at <= now
            # Looked at anew: it may have come while another broker's was taken.
            if is_late and not connection.take_in():
                timeout_s = link.sent[0].deadline.timeout_s
                what = f"broker {link.endpoint}: an answer to Produce"
                self._lose(link, DeadlineExceeded(what, timeout_s))

    def _take_answers(self, link: Link, connection: Connection) -> None:
        while link.sent and connection.take_in():
            try:
                answer = connection.receive(link.sent[0].deadline).message
            except (ConnectionFailed, DeadlineExceeded) as error:
                self._lose(link, error)
                return
            self._read(link, link.sent.popleft(), answer)

    def _read(self, link: Link, sent: SentProduce, answer: ProduceResponse) -> None:
        endpoints = {node.node_id: Endpoint(node.host, node.port) for node in answer.node_endpoints}
        for queue, batch, data in self._count_written(sent, answer):
            leader = _new_leader(data, endpoints, queue)
            self._judge(queue, batch, data, link.endpoint, leader)

    def _count_written(
        self, sent: SentProduce, answer: ProduceResponse
    ) -> list[tuple[PartitionQueue, Batch, Answered]]:
        """Count what is written; all else comes last, as it may end the writer."""
        left = dict(sent.batches)
        refused = []
        errors = []
        for topic in answer.responses:
            name = topic.name or sent.topics.get(topic.topic_id, "")
            for data in topic.partition_responses:
                partition = TopicPartition(name, data.index)
                if partition not in left:
                    raise RemoteProtocolError(f"{partition} was not sent", where="Produce")
                queue, batch = left.pop(partition)
                if data.error_code:
                    refused.append((queue, batch, data))
                    continue
                try:
                    self._delivered(queue, batch, data.base_offset)
                except BrokerError as error:
                    errors.append(error)
        if errors:
            raise errors[0]
        if left:
            raise RemoteProtocolError(f"no answer for {', '.join(map(str, left))}", where="Produce")
        return refused

    def _delivered(self, queue: PartitionQueue, batch: Batch, base_offset: int) -> None:
        self.held_bytes -= batch.size_bytes
        overtaken = queue.overtaken_by(batch)
        queue.deliver(batch, base_offset, time.monotonic())
        if overtaken is not None:
            raise out_of_order(queue, overtaken, batch)

    def _judge(
        self,
        queue: PartitionQueue,
        batch: Batch,
        data: Answered,
        asked: Endpoint,
        leader: Leader | None,
    ) -> None:
        """What becomes of a batch that the broker gave an error for."""
        verdict, error = verdict_on(queue, batch, data)
        error = error.at(str(asked))
        _log.debug("%s: %s", verdict.name, error)
        if verdict is Verdict.WRITTEN:
            self._delivered(queue, batch, -1)
        elif verdict is Verdict.OVERTOOK:
            queue.give_back(batch)
            queue.dismiss(batch)
            batch.deadline = None  # nothing is wrong with it: its time begins after that one's
        elif verdict is Verdict.UNSURE:
            queue.give_back(batch)
            queue.call_witnesses(batch)
        elif verdict is Verdict.REFUSED:
            parts = self._refuse(queue, batch, data, error)
            self.held_bytes += sum(part.size_bytes for part in parts) - batch.size_bytes
            if sum(part.records for part in parts) < batch.records:
                self._rows_fell_out(queue, batch, parts, error)
        elif verdict is Verdict.FORGOTTEN:
            _log.warning("%s: sequences begin anew", error)
            self._try_later(queue, batch, error, asked)
            queue.sequences.restart(self._renew(queue.identity, error), batch.order)
        elif verdict is Verdict.LATER:
            self._try_later(queue, batch, error, asked, leader)
        else:
            raise error
        if queue.head is not None:
            self._ready[queue.partition] = queue

    def _rows_fell_out(
        self, queue: PartitionQueue, batch: Batch, parts: list[Batch], error: BrokerError
    ) -> None:
        """Have nothing take sequences that something else was sent with, and may be written.

        What comes behind was sent with others; and where nothing is left of a batch that may be
        written itself, a broker could take the next one for that.
        """
        is_transactional = queue.identity.is_transactional
        place = batch.order
        if queue.has_vanished(batch, parts):
            # What was not sent yet goes under the next epoch: behind a row that is not written, and
            # is passed over, a broker would refuse it as if it were written itself.
            doubtful = batch if is_transactional else queue.doubtful_after(batch)
            is_passed_over = doubtful is not None and not is_transactional and batch.may_be_written
            if is_passed_over and queue.sequences.pass_over(batch):
                return
        elif queue.may_come_twice:
            doubtful = queue.coming_after(batch) if is_transactional else None
            if batch.is_doubtful:
                # What is left of one that may be written goes before the next epoch: under the
                # sequences of that one the broker refuses it, if it has that one.
                *above, last = batch.order if parts else batch.doubtful
                place = (*above, last + 1)
        else:
            return
        if doubtful is not None:
            raise cannot_go_on(queue, doubtful) from error
        if not is_transactional:
            queue.sequences.restart(self._renew(queue.identity, error), place)

    # Failures

    def _lose(self, link: Link, error: ConnectionFailed | DeadlineExceeded) -> None:
        """The connection is of no use any more: everything in flight on it is sent again."""
        lost = [pair for sent in link.sent for pair in sent.batches.values()]
        asked_bytes = _asked_bytes(error, link)
        self.may_come_late |= bool(lost)
        link.drop()
        self._router.note_failure(link.endpoint, error)
        for queue, batch in lost:
            if queue.sequences.is_shortened and queue.identity.is_transactional:
                raise cannot_go_on(queue, batch) from error
            batch.may_be_written = batch.may_come = True
            self._try_later(queue, batch, error, link.endpoint, asked_bytes=asked_bytes)
        for queue in self._ready.values():
            if queue.is_led_by(link.endpoint):
                queue.depose()

    def _try_later(
        self,
        queue: PartitionQueue,
        batch: Batch,
        error: Failure,
        asked: Endpoint,
        leader: Leader | None = None,
        *,
        was_sent: bool = True,
        asked_bytes: int | None = None,
    ) -> None:
        """Send a batch in flight again, at once where it is known who leads instead of `asked`.

        was_sent, asked_bytes: see `Batch.note` and `Batch.note_hang_up`.
        """
        is_first = not queue.has_failed  # of several in flight: they fail for one reason
        queue.give_back(batch)
        self._ready[queue.partition] = queue
        batch.note(error, was_sent=was_sent)
        if not isinstance(error, DeadlineExceeded):  # that tells neither
            batch.note_hang_up(asked_bytes)
        if batch.tries > self._config.retries:
            raise after_last_try(error, queue, batch, self._config) from error
        is_about_leader = not isinstance(error, BrokerError) or error.error.refreshes_metadata
        if is_about_leader and (leader is not None or queue.is_led_by(asked)):
            queue.depose(leader)
        if is_first and not (is_about_leader and queue.leader is not None):
            self._pause(queue, error)

    def _pause(self, queue: PartitionQueue, error: KafkaProtoError) -> None:
        """Leave a partition alone for a while, longer from failure to failure."""
        head = queue.head
        assert head is not None  # noqa: S101 - it is the batch that failed, or waits for a leader
        now = time.monotonic()
        queue.failures_in_a_row += 1
        end_of_patience = queue.first_seen.setdefault(str(error), now) + error.patience_s
        if now >= end_of_patience:
            raise error
        until = min(self._end_of_pause(queue.failures_in_a_row, now), end_of_patience)
        if until > head.tried_within(self._config.delivery_timeout_s).at:
            head.note(error)
            raise given_up(queue, head, self._config) from error
        queue.paused_until = until

    def _end_of_pause(self, failures: int, now: float) -> float:
        """Until when who has failed so often in a row is left alone: a monotonic time.

        Who fails together, as all partitions of a broker do, is tried again together. If each drew
        a pause of its own, leaders would be looked up for each alone: hundreds of times a second,
        and every answer is about all partitions of the topic.
        """
        level = min(failures, _PAUSES_MAX)
        began, end = self._pauses.get(level, (now, now))
        if end - now <= (end - began) / 2:
            end = now + self._config.client.backoff.wait_s(level)
            self._pauses[level] = now, end
        return end

    def _idle_s(self) -> float:
        """How long nothing is to be done unless an answer comes."""
        now = time.monotonic()
        moments = [link.sent[0].deadline.at for link in self._links.values() if link.sent]
        moments += [
            queue.paused_until if queue.paused_until > now else now + _PAUSE_S
            for queue in self._ready.values()
            if queue.head is not None and not queue.in_flight
        ]
        return max(0.0, min(moments, default=now + _PAUSE_S) - now)


def _asked_bytes(error: KafkaProtoError, link: Link, begun_bytes: int = 0) -> int | None:
    """The largest request under way on a connection that was ended; None if that is not why.

    begun_bytes: of one that did not leave as a whole.
    """
    if not isinstance(error, ConnectionFailed) or error.stage not in ("send", "receive"):
        return None
    return max([begun_bytes, *(sent.size_bytes for sent in link.sent)])


def _new_leader(
    data: Answered, endpoints: dict[int, Endpoint], queue: PartitionQueue
) -> Leader | None:
    """The leader that an answer names, if it is newer than the one that was asked (KIP-951)."""
    named = data.current_leader
    if named.leader_id not in endpoints:
        return None
    if queue.leader is not None and named.leader_epoch <= queue.leader.epoch:
        return None
    return Leader(named.leader_id, endpoints[named.leader_id], named.leader_epoch)

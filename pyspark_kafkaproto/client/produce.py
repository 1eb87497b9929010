"""Producer: Arrow batches or plain records in, offsets out.

The way of the rows: `intake` makes Arrow batches of what is sent, `appending` brings each row to
the open batch of its partition (`picking` knows the topics that rows name, `placement` chooses
partitions), `accumulate` encodes them into record batches, `sending` brings those to the leaders.
All of it in the caller's thread, but for compression where there are processors to spare
(`compressing`); no Python object per record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyspark_kafkaproto.client.alone import Alone
from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.client.transactions import Transactions, check_group, transactions_for
from pyspark_kafkaproto.client.weakly import weakly
from pyspark_kafkaproto.client.writing.accumulate import batch_limit_bytes
from pyspark_kafkaproto.client.writing.appending import Appending
from pyspark_kafkaproto.client.writing.coalescing import Part
from pyspark_kafkaproto.client.writing.compressing import compressing_for
from pyspark_kafkaproto.client.writing.forgotten import Unwritten
from pyspark_kafkaproto.client.writing.identity import Lease, later_identity, next_identity
from pyspark_kafkaproto.client.writing.intake import Intake, iterator_of, next_of
from pyspark_kafkaproto.client.writing.plain import ProducerRecord
from pyspark_kafkaproto.client.writing.queues import Written
from pyspark_kafkaproto.client.writing.refusals import Refusals
from pyspark_kafkaproto.client.writing.sending import Sender
from pyspark_kafkaproto.client.writing.sequences import Identity
from pyspark_kafkaproto.client.writing.targets import Targets
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.cluster.given import Offsets, checked_offsets
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.cluster.transactions import Writer
from pyspark_kafkaproto.errors import KafkaProtoError, LocalProtocolError
from pyspark_kafkaproto.net import Connections, Deadline, Endpoint, ProducerConfig

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_SETTLE_S = 5.0  # for answers before an abort, or after an error
_ABORT_S = 5.0  # for the abort after an error: whoever waits for that error should not wait long


class Producer:
    """Writes records to topics. For one thread at a time, in the process that made it.

        with Producer({"bootstrap.servers": "broker-1:9092"}, topic="orders") as producer:
            producer.send([ProducerRecord("value", key="key")])
            print(producer.flush())

    What is sent is written in the order of the rows, per partition, once: the producer is
    idempotent unless its properties say otherwise. Nothing happens behind the caller's back: rows
    wait in open batches until these are full, `linger.ms` old when more rows come, or `flush`; what
    is finished goes with the next `send` that comes 20 ms after the last one that looked (with
    `linger.ms=0` at once), when it fills a request, or with `flush`.

    With the property `transactional.id` everything is sent inside transactions, which readers with
    isolation.level=read_committed see whole or not at all:

        producer.begin_transaction()
        producer.send(rows)
        producer.send_offsets_to_transaction({TopicPartition("orders", 0): 17}, "my-group")
        producer.commit_transaction()

    Args:
        config: Kafka's producer and client properties, or them already read.
        topic: where rows go; None takes each row's own, from its column `topic`.
        timestamp_column: the Arrow column with the records' timestamps; None for now.
        dead_letter_topic: takes records that can never be written, with the reason in their
            headers; None fails with the first one.
        connections: to use, and to leave open at the end; None makes its own.
        brokers: of the cluster, where somebody has met it already: these are asked, too, and waited
            for as long as any operation, where a first contact has a shorter time.
        compression_threads: how many threads of its own compress batches; 0: the caller's does.
            None: one for each processor that this process may use but one (with snappy and lz4 but
            two), up to four.
        spare_id: makes another transactional id of one that was begun with, where no answer came.
            None: the same is tried again, which whoever had it before is fenced by.
    """

    def __init__(
        self,
        config: Mapping[str, object] | ProducerConfig,
        *,
        topic: str | None = None,
        timestamp_column: str | None = None,
        dead_letter_topic: str | None = None,
        connections: Connections | None = None,
        brokers: Collection[Endpoint] = (),
        compression_threads: int | None = None,
        spare_id: Callable[[str], str] | None = None,
    ) -> None:
        say_which_codec()
        self.config = ProducerConfig.of_producer(config)
        self._topic = topic
        self._owns_connections = connections is None
        self._router = Router(self.config.client, connections, brokers=brokers)
        self._refusals = Refusals(self.config, dead_letter_topic)
        self._transactions = transactions_for(self.config, self._router, spare_id)
        self._identity: Identity | None = None
        self._lease = Lease(self._router)
        self._intake = Intake(
            self.config.linger_s,
            batch_limit_bytes(self.config),
            self.config.buffer_memory,
            timestamp_column,
        )
        self._targets = Targets(self.config, self._router)
        self._compressing = compressing_for(self.config, compression_threads)
        self._start_over()
        self._ended_by: str | None = None
        self._unwritten = Unwritten(self, self.config.transactional_id)
        # A handler of signals may call in the midst of anything: what is in hand there is in no
        # queue, so it would be waited for without end, or be missing from what `flush` returns.
        self._alone = Alone("producer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._end_open()
            self.abandon()

    @property
    def dead_letters(self) -> int:
        """How many records went to the dead letter topic instead of where they were to go."""
        return self._refusals.count

    def send(self, data: pa.RecordBatch | pa.Table | Iterable[ProducerRecord]) -> None:
        """Take rows to be written.

        Args:
            data: an Arrow batch or table with a column value (string or binary; null is a
                tombstone) and some of the columns key (the same), topic (string), partition (int),
                headers (list of structs of key and value), others are left; or records, which are
                gathered first where they follow others fast (see `client/writing/intake`). Small
                batches may be held for a while: memory that they wrap has to stay as it is. Those
                of an iterator are drawn some at a time: there may be any number of them.

        Raises:
            ConfigError: there is no column value, or a column of a type that no record has.
            LocalProtocolError: another thread uses the producer, which goes on for that one.
            KafkaProtoError: a row cannot be written, or one sent before. The producer has ended
                then: what was not yet written is lost. Without transactions `usable` has what
                `flush` would tell, of what was answered.
        """
        if hasattr(data, "to_batches"):
            for batch in data.to_batches():
                self.send(batch)
            return
        records = data if isinstance(data, list) else None
        if records is None and not hasattr(data, "num_rows"):
            self._send_drawn(data)
            return
        if self._transactions is not None:
            self._check_open(self._transactions)
        with self._alone(), self._ending():
            intake = self._intake
            given = intake.given
            parts = intake.take_batch(data) if records is None else intake.take_records(records)
            if intake.given > given:
                self._unwritten.is_some = True
            if parts is None:
                return
            self._append(parts)
            self._appending.append_letters()
            self._appending.open_batches.finish_overdue()
            self._sender.pump_seldom()

    def _send_drawn(self, data: object) -> None:
        with self._alone(), self._ending():
            left = iterator_of(data)
        drawn = None
        while drawn != []:
            with self._alone(), self._ending():
                # What makes them may send others: nothing is begun yet.
                drawn = self._alone.letting_in(next_of)(left)
            self.send(drawn)

    def flush(self) -> dict[TopicPartition, Written]:
        """Wait until everything sent is written; what that was, by partition, since the last time.

        Between transactions there is nothing to write.

        Raises:
            KafkaProtoError: something cannot be written; see `send`.
        """
        with self._alone():
            return self._flush()

    def _flush(self) -> dict[TopicPartition, Written]:
        with self._ending():
            if self._transactions is not None and not self._transactions.is_open:
                return {}
            self._write_out()
        if self._transactions is None:
            self._unwritten.is_some = False
            self._forget_gone()
        return self._take_written()

    def begin_transaction(self) -> None:
        """Begin a transaction. The first one takes over the transactional id from whoever had it.

        Raises:
            LocalProtocolError: a transaction is open, or there is no transactional.id.
            BrokerError: this user may not, or transaction.timeout.ms is more than brokers allow.
        """
        transactions = self._transactional
        transactions.check_ready()
        with self._alone(), self._ending():
            # Of what is forgotten then sequences begin anew.
            identity = transactions.begin(is_anew=self._targets.has_gone)
            if identity != self._identity:
                self._identity = identity
                self._start_over()

    def send_offsets_to_transaction(
        self,
        offsets: Offsets,
        group: str,
        member: GroupMember | None = None,
    ) -> None:
        """Commit the offsets of a consumer group with this transaction.

        Args:
            offsets: the next ones to read, as `Consumer.commit` takes them.
            group: the consumer group.
            member: who read them (`Consumer.group_member`), so that the group can refuse one that
                is no member any more; None is nobody, which a group with members takes as well.

        Raises:
            LocalProtocolError: no transaction is open. Or it has offsets of the same partition and
                group, asked for by a request that was not answered: that one may come late, and put
                the group back. The transaction can only be aborted then.
            ConfigError: such an offset, partition, group or member there cannot be; the transaction
                stays open.
            BrokerError: they cannot be committed; the transaction can only be aborted then.
        """
        transactions = self._transactional
        self._check_open(transactions)
        given = checked_offsets(offsets)
        check_group(group, member)
        with self._alone(), self._ending():
            if given:
                self._unwritten.is_some = True
            transactions.add_offsets(given, group, member)

    def commit_transaction(self, *, within_s: float | None = None) -> dict[TopicPartition, Written]:
        """Write what was sent, and commit; what was written, by partition.

        Returns when it is committed. Where that is not known because nobody answers, call it
        again: nothing else can be done with this producer until then.

        Args:
            within_s: how long the commit is tried, instead of default.api.timeout.ms.

        Raises:
            LocalProtocolError: no transaction is open.
            BrokerError: it timed out, or another producer took over: nothing is committed, unless
                it says that an earlier try, which nobody answered, may have done so. After a
                time-out the next transaction can be begun, if transactions are of version 2: those
                of version 1 do not tell the one from the other.
            KafkaProtoError: nobody answered, or the coordinator was not available (a BrokerError
                whose `error.is_retriable`): it may be committed.
        """
        transactions = self._transactional
        with self._alone():
            if transactions.is_open:
                with self._ending():
                    self._write_out()
            elif transactions.is_ready:
                self._check_going()
            may_come_late = self._sender.may_come_late
            self._end(transactions, commit=True, within_s=within_s, may_come_late=may_come_late)
            return self._take_written()

    def abort_transaction(self) -> None:
        """Give up the transaction, after an error too: the producer can go on with the next one.

        Where the outcome is not known because nobody answers, call it again.

        Raises:
            LocalProtocolError: no transaction is open.
            BrokerError: another producer took over.
        """
        transactions = self._transactional
        with self._alone():
            self._abort(transactions)

    def _end(
        self,
        transactions: Transactions,
        *,
        commit: bool,
        within_s: float | None = None,
        may_come_late: bool = False,
    ) -> None:
        """End it; nothing of it is unwritten then, also where others have ended it before."""
        try:
            transactions.end(commit=commit, within_s=within_s, may_come_late=may_come_late)
        except KafkaProtoError:
            self._unwritten.is_some &= transactions.is_to_end
            raise
        self._unwritten.is_some = False

    def _abort(self, transactions: Transactions) -> None:
        self._leave_unsent()
        self._end(transactions, commit=False)
        # Not before: whoever had nothing to abort goes on with the sequences that brokers know.
        self._identity = None
        self._start_over()
        if self._ended_by is not None:
            self._targets.forget()  # a topic may be another one by now
        self._ended_by = None

    def leave_transaction(self) -> Writer | None:
        """Write what was sent and leave the transaction open, to be ended by somebody else.

        Returns:
            Who has written, which is what ends it (`cluster.transactions`); None where nothing was
            sent.
        """
        transactions = self._transactional
        with self._alone():
            self._flush()
            writer = transactions.leave()
            self._unwritten.is_some = False
            return writer

    def close(self) -> None:
        """Flush and end; an open transaction is aborted. Again does no harm.

        One whose end nobody has answered is ended as it was to be, in one more try.

        A child process only lets go of it.

        Raises:
            LocalProtocolError: another thread uses the producer.
            KafkaProtoError: something cannot be written; see `send`.
        """
        if self._is_inherited:
            self.abandon()
            return
        with self._alone():
            try:
                if self._ended_by is not None:
                    self._end_open()
                elif self._transactions is None:
                    self._flush()
                    self._lease.give_back(self._identities())
                elif self._transactions.is_open:
                    self._abort(self._transactions)
                else:
                    self._end_open()
            finally:
                self.abandon()

    def abandon(self) -> None:
        """End without writing what is not yet written."""
        self._ended_by = self._ended_by or "it was closed"
        self._unwritten.is_some = False  # whoever ends it knows
        self._leave_unsent()
        if not self._is_inherited:  # whose threads are the parent's
            self._compressing.close()
        if self._owns_connections:
            self._router.close()

    def _leave_unsent(self) -> None:
        """Send nothing more, and before an abort of version 1 hear of what was sent.

        A leader that appends a batch behind the abort's marker would hold up readers for ever. In
        version 2 it asks the coordinator first.
        """
        transactions = self._transactions
        is_open = transactions is not None and transactions.is_open_in_version_1
        if is_open and not self._is_inherited:
            self._sender.settle(Deadline.after(_SETTLE_S))
        self._sender.abandon()

    def _end_open(self) -> None:
        """Abort what is open: readers with read_committed would wait for it to time out.

        An end that nobody has answered is asked for once more, as it was: whoever asked knows.
        """
        transactions = self._transactions
        if transactions is None or not transactions.is_to_end or self._is_inherited:
            return
        is_commit = transactions.is_committing
        if transactions.is_open:
            self._leave_unsent()
        try:
            transactions.end(commit=is_commit, within_s=_ABORT_S)
        except KafkaProtoError as error:
            name = transactions.transactional_id
            if is_commit:
                _log.warning("the transaction %r was to be committed: %s", name, error)
                if transactions.is_open:  # it can only be aborted, by that error
                    self._end_open()
            elif not transactions.is_fenced:
                _log.warning("the transaction %r stays open until it times out: %s", name, error)

    def check_topics(self, names: Collection[str]) -> dict[str, int]:
        """Look topics up before anything is sent; how many partitions each has.

        Raises:
            BrokerError: one does not exist or may not be seen.
            LocalProtocolError: another thread uses the producer, or it has ended.
        """
        with self._alone():
            self._check_going()
            self._targets.find(names)
            return {name: len(self._targets[name].topic.partitions) for name in names}

    @property
    def waits_for(self) -> str:
        """The addresses that have not answered, as `KafkaCluster.waits_for` has them."""
        return self._router.waits_for_text()

    @property
    def _is_inherited(self) -> bool:
        """Whether this is a child process: rows, producer id and transaction are the parent's."""
        return self._alone.is_a_copy

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """An error ends the producer; of one without transactions it says what is written."""
        self._check_going()
        try:
            yield
        except BaseException as error:
            self._end_by(error)
            raise

    def _check_going(self) -> None:
        if self._ended_by is not None:
            is_open = self._transactions is not None and self._transactions.is_open
            way_on = "abort_transaction, and begin another" if is_open else "make a new one"
            raise LocalProtocolError(f"this producer has ended, {self._ended_by}: {way_on}")

    def _check_open(self, transactions: Transactions) -> None:
        """Refuse what has to happen inside a transaction; who has ended is not told to begin one.

        Raises:
            LocalProtocolError: none is open.
        """
        if transactions.is_ready:
            self._check_going()
        transactions.check_open()

    def _end_by(self, error: BaseException) -> None:
        # Of a child process the answers are its parent's. And a call from what makes the rows may
        # have ended it, and told what is written.
        is_to_tell = self._ended_by is None and not self._is_inherited
        self._ended_by = f"with {type(error).__name__}"
        try:
            if isinstance(error, KafkaProtoError) and self._transactions is None and is_to_tell:
                self._sender.settle(Deadline.after(_SETTLE_S))
                error.usable = self._take_written()
        finally:
            self.abandon()

    @property
    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise LocalProtocolError("there are no transactions without transactional.id")
        self._alone.check_process()
        return self._transactions

    def _start_over(self) -> None:
        """Begin with nothing sent, under whatever identity comes next."""
        transactions = self._transactions
        self._intake.start_over()
        self._refusals.forget_letters()
        self._sender = Sender(
            self.config,
            self._router,
            self._refusals.refuse_batch,
            partial(next_identity, self._router),
            transactional_id=None if transactions is None else transactions.transactional_id,
            most_version=None if transactions is None else transactions.most_produce_version,
            admit=None if transactions is None else transactions.admit,
            queues=self._targets.queues,
        )
        self._compressing.close()
        self._appending = Appending(
            self.config,
            self._topic,
            self._targets,
            self._refusals,
            self._sender,
            self._compressing,
            weakly(self._who),
            self._intake.given,
        )
        self._targets.forget_queues()
        self._targets.forget_gone()

    def _append(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._intake.note_spread(self._appending.append(part))

    def _write_out(self) -> None:
        self._append(self._intake.take_all())
        open_batches = self._appending.open_batches
        while True:
            open_batches.finish_all()
            open_batches.drain()
            if not self._refusals.letters and open_batches.is_empty:
                return
            self._appending.append_letters()

    def _take_written(self) -> dict[TopicPartition, Written]:
        written = {}
        for queue in self._targets.queues():
            if queue.written.batches:
                written[queue.partition] = queue.written
                queue.written = Written()
        return written

    # Identity

    def _who(self) -> Identity:
        if self._identity is None:
            is_idempotent = self.config.enable_idempotence
            self._identity = self._lease.take() if is_idempotent else Identity()
        return self._identity

    def _identities(self) -> list[Identity]:
        """Of all partitions that are written to, and of the next one."""
        next_one = [] if self._identity is None else [self._identity]
        return next_one + [queue.identity for queue in self._targets.queues()]

    def _forget_gone(self) -> None:
        """Forget topics that are gone: everything is written.

        A topic may be there all the same, or again: its sequences begin under an epoch that it has
        not seen.
        """
        used = [queue.identity for queue in self._targets.forget_gone()]
        if used and self._identity is not None and self._identity.is_idempotent:
            self._identity = later_identity([self._identity, *used])

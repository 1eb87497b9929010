"""ShareConsumer: a member of a share group, which acknowledges record by record (KIP-932).

    config = {"bootstrap.servers": "broker-1:9092", "group.id": "mails"}
    with ShareConsumer(config, {"orders"}) as consumer:
        for batch in consumer:
            ...

Several members may read the same partition: a record is one's alone for the time of its lock, and
comes again, to whichever member, where it was not acknowledged by then. The thread that keeps the
membership is its own; the consumer is for use by one thread at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark_kafkaproto.arrow import RECORD_COLUMNS
from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.client.group.keeper import Closing
from pyspark_kafkaproto.client.group.membership import Membership, State, View
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern, checked_names
from pyspark_kafkaproto.client.polled import Polled
from pyspark_kafkaproto.client.share.exchange import Results, ShareExchange
from pyspark_kafkaproto.client.share.held import Acknowledge, Acquired
from pyspark_kafkaproto.client.share.membership import ShareKeeper
from pyspark_kafkaproto.client.share.rows import DELIVERY_COUNT, Layout
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.cluster.given import checked_partition
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.errors import ConfigError, LocalProtocolError, another
from pyspark_kafkaproto.net import Deadline, ShareConfig

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = (*RECORD_COLUMNS, DELIVERY_COUNT)
# The longest that a poll waits for rows before it looks at the membership.
_LOOK_S: Final = 0.5


class ShareConsumer(Polled):
    """A member of a share group.

    Args:
        config: Kafka's consumer properties (`bootstrap.servers`, `group.id`, …), or them already
            read; docs/share-groups.md has a table.
        topics: names. One that is not there is read once it is.
        columns: of the batches: topic, partition, offset, timestamp, timestampType, key, value,
            headers, deliveryCount (int32: 1 where a record is given out for the first time).

    Raises:
        ConfigError: a property or a topic that cannot be used.
    """

    def __init__(
        self,
        config: Mapping[str, object] | ShareConfig,
        topics: Collection[str],
        *,
        columns: Sequence[str] = COLUMNS,
    ) -> None:
        self.config = config if isinstance(config, ShareConfig) else ShareConfig.parse(config)
        if isinstance(topics, SubscriptionPattern):
            raise ConfigError("topics", topics, "share groups know no patterns: expected names")
        member = self.config.member
        wanted = checked_names(topics)
        check_set("columns", columns)
        layout = Layout(columns)
        say_which_codec()
        super().__init__(Membership())
        self._keeper = ShareKeeper(member, wanted, self._membership)
        self._router = Router(self.config.client)
        self._exchange = ShareExchange(self.config, self._router, self._keeper.member_id, layout)
        self._last: Acquired | None = None  # what `poll` gave
        self._keeper.start()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read at this moment; other members may read them, too."""
        return self._membership.assignment

    @property
    def member_id(self) -> str:
        """Who this is to the brokers."""
        return self._keeper.member_id

    @property
    def acquired(self) -> list[Acquired]:
        """What `poll` has given that is not acknowledged for good, or was not sent yet.

        Ranges of offsets that have records, each with how often they were delivered.
        """
        return self._exchange.kept()

    @property
    def lock_s(self) -> float | None:
        """For how long a record is this member's, in seconds; None before any has come."""
        return self._exchange.lock_s

    # Reading

    def poll(self, timeout_s: float = 1.0) -> pa.RecordBatch | None:
        """Rows of one partition that are this member's for now; None where none came in time.

        All rows of a batch have been delivered equally often. With
        share.acknowledgement.mode=implicit what the call before gave counts as accepted. That is
        sent with the next request for more, at the latest by `commit` and `close`. Has to be called
        at least every max.poll.interval.ms. Takes longer than `timeout_s` where it has to connect
        or to look up leaders.

        Raises:
            BrokerError: the group does not take us, or a partition cannot be read.
            CorruptRecords: names topic, partition and base offset. The batch goes back to the
                group, and is tried as often as group.share.delivery.count.limit says.
            DeadlineExceeded, ConnectionFailed: nobody, or one of the leaders, answered for
                default.api.timeout.ms. Partitions of other leaders are read meanwhile.
            ConfigError: `timeout_s` is no number of seconds.
            LocalProtocolError: share.acknowledgement.mode is explicit, and not all that was given
                is acknowledged.
            UnsupportedVersion: the brokers have no share groups.
        """
        return self._poll_alone(timeout_s)

    def _note_arrived(self) -> None:
        self._exchange.coming.note_arrived()

    def _take_back(self) -> None:
        self._exchange.coming.take_back()

    def _poll(self, deadline: Deadline) -> pa.RecordBatch | None:
        self._membership.check_open()
        self._settle_given()
        self._exchange.say_in_time()
        self._last = None
        self._keeper.say_nobody_answers()
        while True:
            self._membership.polled()
            view = self._follow()
            part = self._exchange.next_part()
            if part is None:
                turn = deadline.sooner(min(_LOOK_S, self.config.max_poll_interval_s / 2))
                if view.assignment or self._exchange.is_busy:
                    self._exchange.turn(view.assignment, turn)
                    part = self._exchange.next_part()
                elif not deadline.has_passed:
                    self._membership.wait_for_change(view, turn)
            if part is not None:
                self._last = part.acquired
                return part.batch
            if deadline.has_passed:
                return None

    def _settle_given(self) -> None:
        if not self.config.is_explicit:
            self._exchange.accept_given()
        elif self._exchange.is_open:
            raise LocalProtocolError(
                "share.acknowledgement.mode is explicit: acknowledge all that poll gave before, "
                f"of {self._last or 'it'}"
            )

    def _follow(self) -> View:
        """Join again where the membership was lost; what we hold stays ours all the same.

        Raises:
            KafkaProtoError: why there is no membership.
        """
        member = self._membership
        view = member.view
        if view.state is State.FAILED and member.error is not None:
            error = another(member.error)
            member.released()
            raise error
        if view.state in (State.LOST, State.REBALANCING):
            member.released()
            view = member.view
        return view

    # Acknowledging

    def acknowledge(
        self,
        how: Acknowledge = Acknowledge.ACCEPT,
        partition: tuple[str, int] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> None:
        """Say what becomes of records, with share.acknowledgement.mode=explicit.

        What was said of a record may be said otherwise until it is sent: by the next request to its
        leader, or by `commit`. A record that is renewed stays to be acknowledged, also behind
        further polls.

        Args:
            how: ACCEPT, RELEASE, REJECT or RENEW.
            partition: TopicPartition, or (topic, number). None: all of the last batch.
            first: the first offset. None: all that was given of the partition.
            last: the last offset, itself included. None: the first one alone.

        Raises:
            ConfigError: such a partition, or such offsets, there cannot be.
            LocalProtocolError: none of these records is this member's to acknowledge; or the mode
                is implicit.
            UnsupportedVersion: RENEW needs brokers of Kafka 4.2.
        """
        with self._alone():
            self._membership.check_open()
            if not self.config.is_explicit:
                text = "share.acknowledgement.mode is implicit: set it to explicit"
                raise LocalProtocolError(f"nothing is acknowledged by name: {text}")
            kind = _checked_type(how)
            for item, begin, end in self._meant(partition, first, last):
                if not self._exchange.mark(kind, item, begin, end):
                    shown = f"{item}, offsets {begin} to {end}"
                    raise LocalProtocolError(f"not given to this member, or acknowledged: {shown}")

    def _meant(
        self, partition: tuple[str, int] | None, first: int | None, last: int | None
    ) -> list[tuple[TopicPartition, int, int]]:
        if partition is None:
            if first is not None or last is not None:
                raise ConfigError("partition", None, "required: offsets are those of a partition")
            if self._last is None:
                raise LocalProtocolError("there is no last batch: poll first")
            return [self._last[:3]]
        item = checked_partition(partition)
        if first is None and last is None:
            ranges = [(kept.first, kept.last) for kept in self.acquired if kept.partition == item]
            if not ranges:
                raise LocalProtocolError(f"nothing of {item} is this member's to acknowledge")
            return [(item, begin, end) for begin, end in ranges]
        if first is None or first < 0:
            raise ConfigError("first", first, "expected an offset, 0 or more")
        end = first if last is None else last
        if end < first:
            raise ConfigError("last", last, f"expected {first}, the first offset, or more")
        return [(item, first, end)]

    def commit(self) -> Results:
        """Have all acknowledgements taken now: those made, and (implicit mode) of the last batch.

        Returns:
            Per partition None, or the error of acknowledgements that were not taken; also of those
            sent by polls since the last call. Such records come again. INVALID_RECORD_STATE: their
            lock ran out. None, too, where it did and another member has done with them since. Of a
            partition all go in one request, which is taken or refused as a whole.

        Raises:
            LocalProtocolError: the consumer is closed.
        """
        with self._alone():
            self._membership.check_open()
            if not self.config.is_explicit:
                self._exchange.accept_given()
            self._exchange.say_all(Deadline.after(self.config.client.default_api_timeout_s))
            return self._exchange.take_results()

    # The end

    def _leave_block(self, *, is_done: bool) -> None:
        self.close(accept=is_done)

    def close(self, *, accept: bool = False) -> Results:
        """Send what is acknowledged, give all else back to the group, and leave it. Again: nothing.

        Takes 30 s at most, or default.api.timeout.ms where that is less: what was not answered by
        then has failed, and where nobody answers the group notices when the session ends.

        Args:
            accept: True: with share.acknowledgement.mode=implicit the last batch is accepted, and
                not given back. The end of a `with` block does so, unless it is an error.

        Returns:
            As `commit`.

        Raises:
            LocalProtocolError: another thread uses the consumer.
        """
        return self._close_once(partial(self._close, accept=accept)) or {}

    def _close(self, *, accept: bool) -> Results:
        closing = Closing.within(self.config.client.default_api_timeout_s)
        try:
            if accept and not self.config.is_explicit:
                self._exchange.accept_given()
            self._exchange.close(closing.commits)
        finally:
            self._membership.close()
            self._exchange.drop()
            self._router.close()
            self._keeper.end(closing.end)
            self._has_ended = True
        return self._exchange.take_results()


def _checked_type(how: object) -> Acknowledge:
    if not isinstance(how, Acknowledge):
        names = ", ".join(item.name for item in Acknowledge)
        raise ConfigError("how", how, f"expected Acknowledge.{names}")
    return how

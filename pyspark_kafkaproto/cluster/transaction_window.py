"""The part of KafkaCluster about transactions: which there are, who holds readers up, and the ends.

What it asks with is loaded where it is asked, as in `access_window`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.given import (
    checked_offset,
    checked_partition,
    checked_partitions,
    checked_producer_ids,
    checked_span,
    checked_words,
)
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router, one_call
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.admin.hanging import HangingTransaction
    from pyspark_kafkaproto.cluster.admin.producers import ActiveProducer
    from pyspark_kafkaproto.cluster.transactions import (
        DescribedTransaction,
        ListedTransaction,
        Writer,
    )


class TransactionWindow:
    """What KafkaCluster does about transactions and those who write in them."""

    _router: Router

    def list_transactions(
        self,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        longer_than_s: float | None = None,
        pattern: str | None = None,
    ) -> list[ListedTransaction]:
        """The transactions of all coordinators, sorted by transactional id (KIP-664).

        Those on which this user has not the right DESCRIBE are left out, without an error.

        Args:
            states: of `TRANSACTION_STATES`: Ongoing, CompleteCommit, …; none: all.
            producer_ids: whose; none: all.
            longer_than_s: those that have not ended, and began longer ago; with `states`, those of
                them that began longer ago, ended or not (KIP-994, Kafka 3.8).
            pattern: an expression of RE2's syntax for the whole of a transactional id (KIP-1152,
                Kafka 4.1).

        Raises:
            BrokerError: the pattern is none.
            ConfigError: there is no such state, or cannot be such a producer id or time.
            UnsupportedVersion: a broker is too old for a filter, or (before 3.0) for any list.
        """
        from pyspark_kafkaproto.cluster.transactions import TRANSACTION_STATES, list_transactions

        if pattern == "":
            raise ConfigError("pattern", pattern, "expected a regular expression, not nothing")
        return list_transactions(
            self._router,
            states=checked_words("state", states, TRANSACTION_STATES),
            producer_ids=checked_producer_ids(producer_ids),
            longer_than_s=None
            if longer_than_s is None
            else checked_span("longer_than_s", longer_than_s),
            pattern=pattern,
        )

    @one_call
    def describe_transactions(
        self, transactional_ids: Collection[str]
    ) -> dict[str, DescribedTransaction]:
        """What each transactional id is at: its producer, since when, where, who coordinates it.

        Raises:
            BrokerError: there is no such transactional id, or it may not be seen; `usable` has the
                others.
            UnsupportedVersion: brokers before Kafka 3.0 cannot tell.
        """
        from pyspark_kafkaproto.cluster.admin.transactions import describe_with_coordinators

        return describe_with_coordinators(self._router, transactional_ids)

    def describe_producers(
        self, partitions: Collection[tuple[str, int]]
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        """The idempotent and transactional producers that each leader remembers (KIP-664).

        Raises:
            BrokerError: there is no such partition, or this user may not read it; `usable` has the
                others.
        """
        from pyspark_kafkaproto.cluster.admin.producers import describe_producers

        return describe_producers(self._router, checked_partitions(partitions))

    @one_call
    def find_hanging_transactions(
        self,
        partitions: Collection[tuple[str, int]] | None = None,
        topics: Collection[str] | None = None,
        *,
        longer_than_s: float = 900.0,
    ) -> list[HangingTransaction]:
        """Transactions that are open in a partition, and that no coordinator will end there.

        They keep `read_committed` readers from all that comes behind, for good. As Kafka's own
        tool has it, the leader has them open, and no coordinator knows the producer, or the one
        that does has not got that partition (KIP-664).

        Args:
            partitions: where to look.
            topics: and all of theirs; None for both: everywhere, internal topics included.
            longer_than_s: how old the last record is at least: transaction.max.timeout.ms of the
                brokers, after which one that does not hang is ended.

        Raises:
            BrokerError: a partition is not there, or may not be read; `usable` has what hangs in
                the others. Or a coordinator is away, which may know what seems to hang.
            UnsupportedVersion: brokers before Kafka 3.0 cannot tell.
        """
        from pyspark_kafkaproto.cluster.admin.hanging import find_hanging_transactions

        span_s = checked_span("longer_than_s", longer_than_s)
        if partitions is None and topics is None:
            topology = self._router.described(None)
            known = (name for name, topic in topology.topics.items() if not topic.error_code)
            return find_hanging_transactions(self._router, topology.partitions_of(known), span_s)
        chosen = set(() if partitions is None else checked_partitions(partitions))
        if topics:
            check_set("topics", topics)
            chosen |= self._router.described(topics, must_exist=True).partitions_of(topics)
        return find_hanging_transactions(self._router, chosen, span_s)

    @one_call
    def abort_transaction(
        self, partition: tuple[str, int], start_offset: int, *, even_if_live: bool = False
    ) -> ActiveProducer:
        """Abort, in one partition, the transaction that hangs there from `start_offset` on.

        The leader writes the marker that no coordinator will; readers go on by it, and none of the
        transaction's records there is ever seen under read_committed. It cannot be undone.

        Args:
            partition: where.
            start_offset: `transaction_start_offset` of the producer (`find_hanging_transactions`).
            even_if_live: whether to abort one that its coordinator will end: that may commit it in
                its other partitions; or one that it says is committed, whose records are lost then.

        Returns:
            Whose transaction it was, as `describe_producers` told.

        Raises:
            BrokerError: there is no such partition, or this user may not; or a coordinator is
                away, which may know the transaction, and not `even_if_live`.
            ConfigError: no transaction is open there; names those that are.
            LocalProtocolError: its coordinator will end it, or says that it is committed; says how
                to have that done.
            UnsupportedVersion: brokers before Kafka 3.0 cannot tell whose it is.
        """
        from pyspark_kafkaproto.cluster.admin.hanging import abort_transaction

        place, start = checked_partition(partition), checked_offset("start_offset", start_offset)
        return abort_transaction(self._router, place, start, even_if_live=even_if_live)

    @one_call
    def fence_producers(self, transactional_ids: Collection[str]) -> dict[str, Writer]:
        """Fence whoever writes with each transactional id, and have what is open aborted.

        For a producer that lives on somewhere and holds readers up: it fails by this. Returns once
        the markers are written.

        Returns:
            The producer id and epoch that each transactional id has now.

        Raises:
            BrokerError: there is no such transactional id, or this user may not write with it;
                `usable` has those that were fenced.
            UnsupportedVersion: brokers before Kafka 3.0 cannot tell which there are.
        """
        from pyspark_kafkaproto.cluster.admin.transactions import fence_producers

        return fence_producers(self._router, transactional_ids)

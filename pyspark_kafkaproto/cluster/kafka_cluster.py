"""KafkaCluster: the window on a cluster, in the spirit of the helper of Spark's first connector.

Sets in, maps out. What is asked is grouped by leader or coordinator, sent to all of them at once,
and tried again where something moved; an error names what was asked and each broker that was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar

from pyspark_kafkaproto.cluster.access_window import AccessWindow
from pyspark_kafkaproto.cluster.broker_window import BrokerWindow
from pyspark_kafkaproto.cluster.diagnosis import Finding, diagnose
from pyspark_kafkaproto.cluster.given import by_partition, checked_partitions, checked_timestamp
from pyspark_kafkaproto.cluster.group_window import GroupWindow
from pyspark_kafkaproto.cluster.health import Problem, find_problems
from pyspark_kafkaproto.cluster.log_sizes import log_sizes
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    Found,
    list_bounds,
    list_epoch_ends,
    list_found,
    list_offsets,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.standing import StandingEnds
from pyspark_kafkaproto.cluster.topic_window import TopicWindow
from pyspark_kafkaproto.cluster.topology import Leader, TopicPartition, Topology
from pyspark_kafkaproto.cluster.transaction_window import TransactionWindow
from pyspark_kafkaproto.errors import ConfigError, UnsupportedVersion
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.net.secret import HIDDEN

_T = TypeVar("_T")


class KafkaCluster(GroupWindow, TopicWindow, AccessWindow, BrokerWindow, TransactionWindow):
    """Metadata and offsets of one cluster; its groups, topics, rights, brokers and transactions.

    Those are in `GroupWindow`, `TopicWindow` (with records and configurations), `AccessWindow`
    (with users, tokens and quotas), `BrokerWindow` (with replicas, leaders and features) and
    `TransactionWindow`.

    Connections open on first use and stay open until `close`; a pickled cluster carries its
    configuration alone. For use by one thread at a time. A partition may be given as a
    TopicPartition or as (topic, number).

    Args:
        config: Kafka's client properties (`bootstrap.servers`, `request.timeout.ms`, …), or them
            already read.

    Raises:
        ConfigError: a property that cannot be used; from the methods, what cannot be asked.
    """

    def __init__(self, config: Mapping[str, object] | ClientConfig) -> None:
        self.config = config if isinstance(config, ClientConfig) else _parsed(config)
        self._router = Router(self.config)
        self._ends = StandingEnds(self._router)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[KafkaCluster], tuple[ClientConfig]]:
        return KafkaCluster, (self.config,)

    def close(self) -> None:
        """Close all connections; the cluster can be used again, which opens new ones."""
        self._router.close()

    @property
    def waits_for(self) -> str:
        """The addresses that have not answered, with why; empty once any broker has answered.

        May be asked from another thread while a call waits.
        """
        return self._router.waits_for_text()

    # Metadata

    def describe(
        self, topics: Collection[str] | None = None, *, must_exist: bool = False
    ) -> Topology:
        """Brokers, and `topics` (None: all) with their partitions. Never creates a topic.

        Args:
            topics: names.
            must_exist: whether a topic with an error fails the call; else the error stays beside
                the topic's name in the result.

        Raises:
            BrokerError: with `must_exist`, a topic does not exist or may not be seen.
        """
        if topics is not None:
            check_set("topics", topics)
        return self._router.described(topics, must_exist=must_exist)

    def opinions(self) -> Iterator[bool]:
        """Rounds in which to ask until what is said is believed; True: the last one.

        Loop over it where brokers say that something is gone: one that has just started, or was
        away for a while, knows leaders, ends and topics of the past for a moment. Each round begins
        at another broker, where there is one, 0.3 s after the one before.
        """
        return self._router.opinions()

    def believed(self, ask: Callable[[], _T], is_believable: Callable[[_T], bool]) -> _T:
        """What `ask` gives once it is believable, or else the last of its `opinions`."""
        return self._router.believed(ask, is_believable)

    def doubting(self, code: int, ask: Callable[[], _T]) -> _T:
        """What `ask` gives; an error of this code is believed of the last of its `opinions` alone.

        Raises:
            BrokerError: that one, or any other.
        """
        return self._router.doubting(code, ask)

    def get_partitions(self, topics: Collection[str]) -> set[TopicPartition]:
        """All partitions of `topics`.

        Raises:
            BrokerError: a topic does not exist or may not be seen.
        """
        check_set("topics", topics)
        if not topics:
            return set()
        return self.describe(topics, must_exist=True).partitions_of(topics)

    def find_leaders(self, partitions: Collection[tuple[str, int]]) -> dict[TopicPartition, Leader]:
        """Each partition's leader; waits for an election that is going on.

        Raises:
            BrokerError: there is no such topic or partition, or it stays without a leader.
        """
        chosen = checked_partitions(partitions)
        deadline = self._router.deadline()

        def attempt() -> dict[TopicPartition, Leader]:
            self._router.topology({partition.topic for partition in chosen}, deadline)
            return self._router.leaders(chosen, deadline)

        return self._router.retrying("find leaders", attempt, deadline) if chosen else {}

    def get_log_sizes(self, partitions: Collection[tuple[str, int]]) -> dict[TopicPartition, int]:
        """How many bytes each partition's log takes at its leader, compressed as it lies there.

        Raises:
            BrokerError: this user needs the right DESCRIBE on the cluster.
        """
        return log_sizes(self._router, checked_partitions(partitions))

    def find_problems(self, topics: Collection[str] | None = None) -> list[Problem]:
        """What is wrong with `topics` (None: all): no leader, no replica in sync, too few, ….

        Each problem names the partition with its replicas, those in sync, and those offline.
        """
        return find_problems(self.describe(topics))

    def diagnose(self, topics: Collection[str] = (), groups: Collection[str] = ()) -> list[Finding]:
        """Go the way of a client hop by hop, and say which one is broken and what to do.

        resolve → connect → TLS → SASL → versions for each bootstrap server, then the addresses that
        the brokers advertise, then the rights on `topics` and `groups`. Never raises for what is
        wrong with the cluster: that is in the findings. Each broker gets
        socket.connection.setup.timeout.ms.
        """
        check_set("topics", topics)
        check_set("groups", groups)
        return diagnose(self.config, topics, groups)

    # Offsets

    def get_earliest_leader_offsets(
        self, partitions: Collection[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """The first offset that is still there, per partition."""
        chosen = checked_partitions(partitions)
        return list_bounds(self._router, chosen, EARLIEST_TIMESTAMP)

    def get_latest_leader_offsets(
        self, partitions: Collection[tuple[str, int]], *, waits_for_leaders: bool = True
    ) -> dict[TopicPartition, int]:
        """The offset after the last record (read_committed: after the last stable one).

        Asked for the same list of partitions again and again, thousands of them cost little.

        Args:
            partitions: whose.
            waits_for_leaders: False leaves out those that nobody leads, in place of waiting.
        """
        if not waits_for_leaders:
            return self._ends.ask_led(partitions)
        return self._ends.ask(partitions)

    def find_cut_off(
        self, positions: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Where logs were cut off (an unclean election: KIP-320) before what was read of them.

        What has been written there since does not hide it.

        Args:
            positions: the next offset to read of each, no later than an end that was told.
            epochs: what `end_epochs` said then. Only who is led anew since is asked about.
        """
        led = self.end_epochs
        asked = {
            item: before
            for item, before in epochs.items()
            if item in positions and -1 < before < led.get(item, -1)
        }
        try:
            ends = list_epoch_ends(self._router, asked)
        except UnsupportedVersion:  # no Apache Kafka: nobody can tell, and reading goes on
            return {}
        return {item: end for item, end in sorted(ends.items()) if -1 < end < positions[item]}

    @property
    def end_epochs(self) -> Mapping[TopicPartition, int]:
        """Of the leaders that told `get_latest_leader_offsets` last; stays one object till news."""
        return self._ends.epochs

    def get_leader_offsets(
        self, partitions: Collection[tuple[str, int]], timestamp: int
    ) -> dict[TopicPartition, int | None]:
        """The first offset whose timestamp is `timestamp` (ms since 1970) or later.

        None where no record is that late.
        """
        return self.get_leader_offsets_at(dict.fromkeys(partitions, timestamp))

    def get_leader_offsets_at(
        self, timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, int | None]:
        """As `get_leader_offsets`, with a timestamp per partition."""
        checked = {item: checked_timestamp(at) for item, at in by_partition(timestamps).items()}
        return list_offsets(self._router, checked)

    def get_last_stable_offsets(
        self, partitions: Collection[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """The offset before which no transaction is open, whatever isolation.level says."""
        chosen = checked_partitions(partitions)
        return list_bounds(self._router, chosen, LATEST_TIMESTAMP, read_committed=True)

    def get_high_watermarks(
        self, partitions: Collection[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """The offset after the last record, of open transactions too, whatever isolation.level."""
        chosen = checked_partitions(partitions)
        return list_bounds(self._router, chosen, LATEST_TIMESTAMP, read_committed=False)

    def get_max_timestamp_offsets(
        self, partitions: Collection[tuple[str, int]]
    ) -> dict[TopicPartition, Found | None]:
        """The record with the largest timestamp: its offset, and that timestamp (ms since 1970).

        None where a partition is empty.

        Raises:
            UnsupportedVersion: brokers before Kafka 3.0 cannot tell.
        """
        timestamps = dict.fromkeys(checked_partitions(partitions), MAX_TIMESTAMP)
        return list_found(self._router, timestamps)


def _parsed(config: object) -> ClientConfig:
    if not isinstance(config, Mapping):
        # The text of a file of properties may hold passwords, other types as well.
        is_address = isinstance(config, str) and "=" not in config and "\n" not in config
        shown = config if is_address or config is None else HIDDEN
        servers = config if is_address else "host:9092"
        example = f"expected client properties: {{'bootstrap.servers': {servers!r}}}"
        raise ConfigError("config", shown, example)
    return ClientConfig.parse(config)

"""The decision log: which transactions of many producers belong together and are to be committed.

A transaction belongs to one producer, and a batch is written by many. That all of theirs are to be
committed is therefore one record in a compacted topic, written before the first of them is: who
finds it after a crash ends the rest of them the same way. A record's key is (prefix, name), `name`
being a query's or that of batch jobs, its value the last batch that was decided: batches of one
name come one after the other, so compaction keeps exactly what matters.

Decisions are written by a producer whose transactional id is made of prefix and name: who begins
fences whoever decided for that name before, and reads behind that whatever was decided. Records
that decide nothing, by which a log's end or a batch that was given up is known, may have any
producer. Knows nothing of Spark and of rows.
"""

from __future__ import annotations

import json
import logging
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Self

from pyspark_kafkaproto.client.decision_topic import MOST_BYTES, describe_topic, ensure_topic
from pyspark_kafkaproto.client.produce import Producer
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.client.writing.plain import ProducerRecord
from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_bounds
from pyspark_kafkaproto.cluster.transactions import TIMEOUTS_MS, Writer
from pyspark_kafkaproto.error_codes import INVALID_TRANSACTION_TIMEOUT
from pyspark_kafkaproto.errors import (
    BrokerError,
    DataLoss,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.net import ClientConfig, Endpoint, ProducerConfig, connections_for

_log = logging.getLogger(__name__)

# A decision takes milliseconds, or seconds where a broker dies meanwhile. One left open by a dead
# driver is waited for by everybody, so long, and until brokers look for such (every 10 s). Longer
# than brokers that are killed count as alive (broker.session.timeout.ms, 9 s) and are replaced.
_TIMEOUT_S: Final = 15.0
_PAUSE_S: Final = 0.01
_BEHIND_PAUSE_S: Final = 0.1
_SHOWN_BYTES: Final = 100
_MOST_LOGS: Final = 8  # in one process: prefixes, mostly one

_DONE, _DECIDED = "done", "decided"
_NOBODY: Final = ""  # whose records decide nothing
BATCH_JOBS: Final = "batch"  # the name of all of them; streaming queries have one each


@dataclass(frozen=True, slots=True)
class Decision:
    """That a batch is to be committed: which transactions, and whether all of them are.

    rows: how many the batch had; None where whoever decided did not say.
    """

    batch: str
    is_done: bool
    writers: tuple[Writer, ...]
    rows: int | None = None

    def __str__(self) -> str:
        state = _DONE if self.is_done else _DECIDED
        return f"batch {self.batch} ({state}, {len(self.writers)} transactions)"


@dataclass(slots=True)
class _Seen:
    """What of a log was read: up to which offset of which topic, and the last of each name.

    `given_up`: batches that were.
    """

    topic_id: bytes | None
    position: int
    last: dict[str, Decision]
    given_up: set[str] = field(default_factory=set)


# Workers of Spark live from batch to batch: what one has read it need not read again.
_seen: dict[tuple[ClientConfig, str, str], _Seen] = {}


class DecisionLog:
    """The decisions under one prefix.

    Args:
        config: of the client; its connections are shared with others that use the same.
        topic: where decisions are kept; one partition, compacted.
        prefix: of all transactional ids.
        brokers: of the cluster, that somebody has met already (see `Router`).
    """

    def __init__(
        self, config: ClientConfig, topic: str, prefix: str, brokers: Iterable[Endpoint] = ()
    ) -> None:
        self.prefix = prefix
        self.topic = topic
        self.config = config
        self.router = Router(config, connections_for(config), brokers=brokers)
        self._topic_id: bytes | None = None  # of the topic that was read
        self._has_told_of_others = False

    def ids_of(self, name: str, job: str = "") -> str:
        """What the transactional ids of `name` begin with, or those of one of its jobs.

        A job is called by eight hexadecimal digits.
        """
        return f"{self.prefix}-{name}-{job}-" if job else f"{self.prefix}-{name}-"

    def command(self, word: str, *options: str) -> str:
        """`kafkaproto transactions WORD` about this very log, for errors to name.

        With another topic of decisions it would take what was decided for left over, and abort it.
        """
        words = ("kafkaproto", "transactions", word, self.prefix, "--decision-topic", self.topic)
        return f"`{shlex.join((*words, *options))}`"

    def ensure_topic(self) -> None:
        """Make the topic where it is missing.

        Raises:
            BrokerError: it is missing and this user may not make it.
            ConfigError: it is there, but could not keep decisions.
        """
        ensure_topic(self.router, self.topic)

    def read(self, *, surely: bool = False) -> Mapping[str, Decision]:
        """The last decision of each name, as of now: whoever is still deciding is waited for.

        Args:
            surely: whether to make certain that no broker which lags behind has told an old end.
                That takes writing a record, which decides nothing.

        Raises:
            BrokerError: there is no such topic, or this user may not read it, or write to it.
            LocalProtocolError: records of it are gone while they are read: nothing is known then.
        """
        return self._read(self._mark() + 1 if surely else 0)

    def read_up_to(self, mark: int) -> Mapping[str, Decision]:
        """As `read`, certainly with all that stands before the record at offset `mark`."""
        return self._read(mark + 1)

    def _read(self, least: int) -> Mapping[str, Decision]:
        self._topic_id, stop, _ = self.router.believed(
            lambda: self._look(least),
            lambda told: told[2] and not self._has_seen_more(*told[:2]),
        )
        seen = self._seen_before(self._topic_id, stop)
        if stop > seen.position:
            last, given_up = self._last_of(seen.position, stop)
            seen.last |= last
            seen.given_up |= given_up
            seen.position = stop
        return dict(seen.last)

    def _look(self, least: int) -> tuple[bytes | None, int, bool]:
        """The topic's id, its end, and whether they belong together.

        They do not where the topic was made again in between: ends are told by name.
        """
        before = describe_topic(self.router, self.topic).topic_id
        end = self._stable_end(least)
        topic_id = describe_topic(self.router, self.topic).topic_id
        return topic_id, end, before == topic_id

    @property
    def position(self) -> int:
        """Up to where this process has read."""
        return _seen[self._key].position

    def give_up(self, batch: str) -> None:
        """Note that a batch was given up, for what it has under way and comes late to find.

        A record without a value, which decides nothing: compaction takes it away, a day later at
        the earliest (delete.retention.ms). No longer than an election is waited for: a job has
        failed, and its user waits.

        Args:
            batch: which; its name is that of no other one, nor of what decides.
        """
        most = {
            name: min(getattr(self.config, name), _TIMEOUT_S)
            for name in ("request_timeout_s", "default_api_timeout_s")
        }
        with self._plain_producer(replace(self.config, **most)) as producer:
            _written_mark(producer, self.prefix, batch)

    def is_given_up(self, batch: str) -> bool:
        """Whether `give_up` was called for it, as far as `read` has read."""
        return batch in _seen[self._key].given_up

    def check_unseen(self, name: str, start: int, stop: int) -> None:
        """Refuse to decide for `name` behind decisions that were not read.

        Raises:
            LocalProtocolError: there are such from offset `start` to before `stop`.
        """
        # Whoever else decided for this name is fenced: what there is of it has ended.
        records = self._records(start, stop)
        unseen = [found for other, found in records if other == name and found is not None]
        if unseen:
            raise LocalProtocolError(
                f"{name!r} has decided {unseen[-1]}: a broker that was behind told that topic "
                f"{self.topic!r} ends at offset {start}, before that. Nothing is decided now, "
                "and it can be repeated"
            )

    def producer(self, config: ProducerConfig) -> Producer:
        """Who writes to the topic; tries that as long as any other call."""
        timeout_s = max(config.client.default_api_timeout_s, config.least_delivery_s)
        config = replace(config, delivery_timeout_s=timeout_s)
        return Producer(config, topic=self.topic, connections=self.router.connections)

    def deciding(self, name: str) -> Deciding:
        """Who decides for `name` from now on; whoever did before is fenced."""
        return Deciding(self, name)

    # Reading

    def _last_of(self, start: int, stop: int) -> tuple[dict[str, Decision], set[str]]:
        """The last decision of each name between two offsets, whoever leads the topic by now.

        And the names without one, which were given up.
        """
        for _ in self.router.opinions():
            try:
                return _last_said(self._records(start, stop, "read_committed"))
            except DataLoss as error:
                lost = error
        _seen.pop(self._key, None)
        raise LocalProtocolError(
            f"decisions from offset {start} to {stop} of topic {self.topic!r} cannot be read, so "
            f"nothing is decided or aborted: {lost.text}"
        ) from lost

    def _has_seen_more(self, topic_id: bytes | None, stop: int) -> bool:
        """Whether what was read already is not there in a topic with this id and end."""
        seen = _seen.get(self._key)
        return seen is not None and (seen.topic_id != topic_id or seen.position > stop)

    def _seen_before(self, topic_id: bytes | None, stop: int) -> _Seen:
        """What was read already of the topic with this id, which ends at `stop`."""
        seen = _seen.get(self._key)
        if seen is not None and not self._has_seen_more(topic_id, stop):
            return seen
        if seen is not None and seen.topic_id == topic_id:
            _log.warning(
                "topic %r ends at offset %d and was read up to %d: its leader has lost decisions. "
                "Later ones stand where they stood, so all are read again",
                self.topic, stop, seen.position,
            )  # fmt: skip
        if len(_seen) >= _MOST_LOGS:
            _seen.clear()
        seen = _seen[self._key] = _Seen(topic_id, self._bound(EARLIEST_TIMESTAMP), {})
        return seen

    @property
    def _key(self) -> tuple[ClientConfig, str, str]:
        return (self.config, self.topic, self.prefix)

    @property
    def _partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def _bound(self, timestamp: int, *, stable: bool = False) -> int:
        here = self._partition
        return list_bounds(self.router, [here], timestamp, read_committed=stable)[here]

    def _mark(self) -> int:
        """The offset of a record that decides nothing: who took it knows all that is before it."""
        with self._plain_producer(self.config) as producer:
            return _written_mark(producer, self.prefix)

    def _plain_producer(self, client: ClientConfig) -> Producer:
        """For what does no harm where it is written twice."""
        return self.producer(ProducerConfig(client=client, enable_idempotence=False))

    def _stable_end(self, least: int) -> int:
        """The end of the log, `least` or more, once every transaction before it has ended.

        Nobody is fenced for that: who seems dead may be waiting for an election. Whoever decides
        has fenced those of his own name; of others the broker ends what is left.
        """
        deadline = self.router.deadline()
        while (end := self._bound(LATEST_TIMESTAMP)) < least:
            deadline.check(f"finding a broker that knows {self.topic} up to offset {least}")
            self.router.distrust_last()
            self.router.forget_leaders()
            time.sleep(_BEHIND_PAUSE_S)
        while self._bound(LATEST_TIMESTAMP, stable=True) < end:
            deadline.check(f"waiting for open transactions in {self.topic} to end")
            time.sleep(_PAUSE_S)
        return end

    def _records(
        self, start: int, stop: int, isolation_level: str = "read_uncommitted"
    ) -> Iterator[tuple[str, Decision | None]]:
        """Names and what is said of them; None: nothing is decided (see `give_up`)."""
        from pyspark_kafkaproto.arrow import schema_for  # noqa: PLC0415 - pyarrow, for this alone
        from pyspark_kafkaproto.client.reading.decode import read_batches  # noqa: PLC0415 - as above

        config = replace(self.config, isolation_level=isolation_level)
        # Of this router: a new one would ask brokers again that this has passed by.
        ranges = (OffsetRange(self.topic, 0, start, stop),)
        task = ReadTask(ranges, self._leaders(), {self.topic: self._topic_id})
        settings = ReadSettings()
        for batch in read_batches(task, config, settings, schema_for(["key", "value"])):
            for key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                prefix, name = _read_key(key) or self._passed_over(key)
                if prefix == self.prefix and name != _NOBODY:
                    yield name, None if value is None else self._read_value(name, value)

    def _passed_over(self, key: bytes | None) -> tuple[str, str]:
        """Whoever may write here could stop all queries of all prefixes: compaction keeps it."""
        level = logging.DEBUG if self._has_told_of_others else logging.WARNING
        self._has_told_of_others = True  # there may be as many as a topic holds
        shown = (key or b"")[:_SHOWN_BYTES]
        _log.log(level, "topic %r: a record of key %r is no decision, and left", self.topic, shown)
        return self.prefix, _NOBODY

    def _leaders(self) -> Mapping[TopicPartition, Leader]:
        deadline = self.router.deadline()

        def attempt() -> Mapping[TopicPartition, Leader]:
            return self.router.leaders({self._partition}, deadline)

        return self.router.retrying("find the leader of the decision topic", attempt, deadline)

    def _read_value(self, name: str, value: bytes) -> Decision:
        ids = self.ids_of(name)
        try:
            found = json.loads(value)
            writers = tuple(
                Writer(f"{ids}{suffix}", int(producer_id), int(epoch))
                for suffix, producer_id, epoch in found["transactions"]
            )
            rows = found.get("rows")
            return Decision(
                str(found["batch"]),
                found["state"] == _DONE,
                writers,
                rows if rows is None else int(rows),
            )
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            text = f"a record of {name!r} is no decision: {error}"
            raise RemoteProtocolError(text, where=self.topic) from error


class Deciding:
    """The one who decides for a name, until somebody else begins to.

    A context manager; `last` is the last decision that there was at its beginning.
    """

    def __init__(self, log: DecisionLog, name: str) -> None:
        self.log = log
        self.name = name
        try:
            self._producer = self._begun(_TIMEOUT_S)
        except BrokerError as error:
            if error.code != INVALID_TRANSACTION_TIMEOUT:
                raise
            # Brokers allow less (transaction.max.timeout.ms), of tasks as well.
            self._producer = self._begun(min(TIMEOUTS_MS) / 1000)
        self._is_open = True
        self.last = log.read().get(name)
        self._read_to: int | None = log.position  # None once something is written behind it

    def _begun(self, timeout_s: float) -> Producer:
        properties = ProducerConfig(
            client=self.log.config,
            transactional_id=f"{self.log.prefix}-driver-{self.name}",
            transaction_timeout_s=timeout_s,
            compression_type="gzip",
            max_request_size=MOST_BYTES,
        )
        producer = self.log.producer(properties)
        producer.begin_transaction()
        return producer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What is open is aborted: all who read decisions would wait for it.
        self._producer.__exit__(kind, error, trace)

    def write(self, decision: Decision, look: Callable[[], float | None] = lambda: None) -> None:
        """Store a decision; it holds once this returns.

        Args:
            decision: what is decided.
            look: called once the decision is written but for its commit, which is all that takes
                time then; how many seconds that may take, None for as long as any other call. The
                decision does not hold if it raises.

        Raises:
            LocalProtocolError: decisions stand before it that were not read; it does not hold then.
            KafkaProtoError: it cannot be written, and does not hold; or its commit failed: it may
                hold then, as the error says. A try whose answer was lost may have come through,
                also where the next one finds that somebody else decides for this name.
        """
        ids = self.log.ids_of(self.name)
        value: dict[str, Any] = {
            "batch": decision.batch,
            "state": _DONE if decision.is_done else _DECIDED,
            "transactions": [
                [writer.transactional_id.removeprefix(ids), writer.producer_id, writer.epoch]
                for writer in (() if decision.is_done else decision.writers)
            ],
        }
        if decision.rows is not None:
            value["rows"] = decision.rows
        text = json.dumps(value, separators=(",", ":"))
        key = _key(self.log.prefix, self.name)
        self._open()
        self._producer.send([ProducerRecord(text, key=key, partition=0)])
        self._check_unseen(_written_at(self._producer))
        self._commit(decision, look())
        self.last = decision

    def _open(self) -> None:
        """Begin a transaction where none is open.

        Not behind each commit: that may fail, and what was decided holds by then.
        """
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True

    def _commit(self, decision: Decision, within_s: float | None) -> None:
        try:
            self._producer.commit_transaction(within_s=within_s)
        except KafkaProtoError as error:
            error.add_line(
                f"{decision} may hold all the same: {self.log.command('list')} says so. "
                "Look before a batch job is run again"
            )
            raise
        self._is_open = False

    @property
    def ids_to_commit(self) -> frozenset[str]:
        """The transactional ids of the last decision, while it is not done."""
        if self.last is None or self.last.is_done:
            return frozenset()
        return frozenset(writer.transactional_id for writer in self.last.writers)

    def make_sure(self) -> None:
        """Know that nobody else decides for this name until now, and for certain what was decided.

        Raises:
            BrokerError: somebody else does, or this cannot be known.
        """
        self._open()
        mark = _written_mark(self._producer, self.log.prefix)
        self._producer.commit_transaction()
        self._is_open = False
        if self._read_to is not None:
            self.last = self.log.read_up_to(mark).get(self.name)
            self._read_to = None

    def _check_unseen(self, offset: int) -> None:
        """The first record that is written tells the log's end for certain: its leader took it."""
        start, self._read_to = self._read_to, None
        if start is not None and start < offset:
            self.log.check_unseen(self.name, start, offset)


def _last_said(
    records: Iterator[tuple[str, Decision | None]],
) -> tuple[dict[str, Decision], set[str]]:
    last: dict[str, Decision] = {}
    given_up: set[str] = set()
    for name, found in records:
        if found is None:
            given_up.add(name)
        else:
            last[name] = found
    return last, given_up


def _written_mark(producer: Producer, prefix: str, name: str = _NOBODY) -> int:
    """Write a record that decides nothing; its offset."""
    producer.send([ProducerRecord(None, key=_key(prefix, name), partition=0)])
    return _written_at(producer)


def _written_at(producer: Producer) -> int:
    (written,) = producer.flush().values()
    if written.first_offset < 0:
        raise RemoteProtocolError("a broker took a record and does not say at which offset")
    return written.first_offset


def _key(prefix: str, name: str) -> str:
    return json.dumps([prefix, name], separators=(",", ":"))


def _read_key(key: bytes | None) -> tuple[str, str] | None:
    """Prefix and name; None where it is not of a decision."""
    with suppress(ValueError, TypeError, RecursionError):
        prefix, name = json.loads(key or b"")
        return str(prefix), str(name)
    return None

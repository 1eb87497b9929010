"""The network of one member is cut, in each way in which networks are; the other one has another.

What must hold: who was cut off for longer than its session commits nothing any more, is told, and
comes back by itself; nothing is passed over, and nothing is read again that was committed.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from pyspark_kafkaproto import (
    Consumer,
    KafkaCluster,
    Producer,
    ProducerRecord,
    ShareConsumer,
    TopicPartition,
)
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, NewTopic
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import ClientConfig, Deadline, Endpoint, connections_for
from tests.fault.line import Line
from tests.settled import wait_until_settled
from tests.waiting import until

pytestmark = pytest.mark.fault

SESSION_S = 3.0
LOCK_S = 10.0
TRANSACTION_S = 6.0
BACK_S = 15.0  # within which who was cut off reads again
QUICK = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(round(SESSION_S * 1000)),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": str(round(SESSION_S * 1000)),
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(round(LOCK_S * 1000)),
}
CLASSIC = {"session.timeout.ms": round(SESSION_S * 1000), "heartbeat.interval.ms": 300}
INCREMENTAL = {"group.protocol": "consumer"}
KINDS = {
    "eager": CLASSIC,
    "cooperative": CLASSIC | {"partition.assignment.strategy": "cooperative-sticky"},
    "static": CLASSIC | {"group.instance.id": "%s"},
    "incremental": INCREMENTAL,
    "incremental-static": INCREMENTAL | {"group.instance.id": "%s"},
}
PARTITIONS = 4
ROWS = 40  # per partition and time
# The processor time of five members that are cut off, as a part of that time. They need 1 %.
BUSY = 0.15


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    with Line() as made:
        yield made


@pytest.fixture(scope="module")
def broker(line) -> Iterator[DevBroker]:
    """A broker that is heard directly at NEAR, and through `line` at FAR."""
    listeners = dict.fromkeys(["NEAR", "FAR"], "PLAINTEXT")
    far = {"FAR": str(line.endpoint)}
    with DevBroker(listeners=listeners, advertised=far, properties=QUICK) as started:
        line.lead_to(Endpoint.parse(started.addresses("FAR")))
        yield started


@pytest.fixture(scope="module")
def kafka(broker) -> Iterator[KafkaCluster]:
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def healed(line) -> Iterator[None]:
    yield
    line.heal()


@pytest.fixture
def topic(kafka, new_name) -> str:
    name = new_name()
    kafka.create_topics([NewTopic(name, PARTITIONS, 1)])
    return name


@pytest.fixture
def write(broker) -> Iterator[Callable[[str], None]]:
    """Writes ROWS rows to each partition."""
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:

        def send(topic: str) -> None:
            numbers = [n % PARTITIONS for n in range(ROWS * PARTITIONS)]
            producer.send([ProducerRecord(b"v", topic=topic, partition=n) for n in numbers])
            producer.flush()

        yield send


class Given:
    """What the members of a group were given; in which order a member was, by partition."""

    def __init__(self) -> None:
        self.count: Counter[tuple[int, int]] = Counter()
        self.of: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def note(self, who: str, batch) -> None:
        if batch is not None:
            columns = batch.column("partition").to_pylist(), batch.column("offset").to_pylist()
            rows = list(zip(*columns, strict=True))
            self.count.update(rows)
            self.of[who] += rows

    def ends(self) -> dict[int, int]:
        """Per partition the offset behind the last row that was given to anybody."""
        found: Counter[int] = Counter()
        for partition, offset in list(self.count):
            found[partition] = max(found[partition], offset + 1)
        return dict(found)


class Group:
    """A member behind the line, polled by the test, and one in a thread that is always heard."""

    def __init__(self, kind: str, broker, line, topic: str, name: str, more) -> None:
        self._more = more
        self.kind, self.name, self.topic = kind, name, topic
        self.given = Given()
        self.told: list[tuple[str, set[int]]] = []
        self._is_over = threading.Event()
        listeners = {
            what: lambda own, what=what: self.told.append((what, {item.partition for item in own}))
            for what in ("on_assign", "on_revoke", "on_lost")
        }
        self.far = self._member("far", str(line.endpoint), listeners)
        self.near = self._member("near", broker.bootstrap_servers, {})
        self.keeper = self.far._keeper._thread
        self._thread = threading.Thread(target=self._read_near, daemon=True)
        self._thread.start()

    def _member(self, who: str, servers: str, listeners) -> Consumer:
        config = {
            "bootstrap.servers": servers,
            "group.id": self.name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
        config |= KINDS[self.kind] | self._more
        if "group.instance.id" in config:
            config["group.instance.id"] = who
        return Consumer(config, {self.topic}, columns=["partition", "offset"], **listeners)

    def _read_near(self) -> None:
        while not self._is_over.is_set():
            batch = self.near.poll(0.2)
            if batch is not None:
                self.given.note("near", batch)
                try:
                    self.near.commit()
                except BrokerError as error:
                    self.told.append((f"near: {error}", set()))

    def poll(self, timeout_s: float = 0.02) -> None:
        self.given.note("far", self.far.poll(timeout_s))

    @property
    def is_shared(self) -> bool:
        return len(self.far.assignment) == len(self.near.assignment) == PARTITIONS / 2

    def is_done(self, kafka, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether all up to `ends` is committed, with what the member behind the line has."""
        self.far.commit()
        return committed(kafka, self) == ends

    def has_left_all_to_near(self, kafka, ends: Mapping[TopicPartition, int]) -> bool:
        return len(self.near.assignment) == PARTITIONS and committed(kafka, self) == ends

    def processor_s(self) -> float:
        """Of the thread that keeps the membership behind the line."""
        return time.clock_gettime(time.pthread_getcpuclockid(self.keeper.ident))

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(20)
        self.near.close()
        self.far.close()


@pytest.fixture
def groups(request, broker, line, topic, new_name) -> Iterator[list[Group]]:
    """One of each kind, with its partitions shared; its parameter are further properties."""
    more = getattr(request, "param", {})
    with ExitStack() as stack:
        made = []
        for kind in KINDS:
            made.append(Group(kind, broker, line, topic, new_name(kind), more))
            stack.callback(made[-1].close)
        poll_until(made, lambda group: group.is_shared, "members that share")
        yield made


def poll_until(groups, holds, what, within_s=30.0, timeout_s=0.02) -> None:
    """Poll the members behind the line until it `holds` of each group."""
    deadline = Deadline.after(within_s)
    while not all(map(holds, groups)):
        deadline.check(f"{what}; not yet: {[g.kind for g in groups if not holds(g)]}")
        for group in groups:
            group.poll(timeout_s)


def busy_until(groups, holds) -> float:
    """Poll the members behind the line until it `holds` of each group.

    The part of that time in which they used a processor, but for what `holds` used.
    """
    began, busy_s = time.monotonic(), -processor_s(groups)
    while True:
        for group in groups:
            group.poll(0.3)
        busy_s += processor_s(groups)
        if all(map(holds, groups)):
            return busy_s / (time.monotonic() - began)
        assert time.monotonic() - began < 10 * SESSION_S
        busy_s -= processor_s(groups)


def processor_s(groups) -> float:
    return time.thread_time() + sum(group.processor_s() for group in groups)


def rows_below(ends: Mapping[TopicPartition, int]) -> set[tuple[int, int]]:
    return {(item.partition, offset) for item, end in ends.items() for offset in range(end)}


def ends_of(kafka, topic) -> dict[TopicPartition, int]:
    return kafka.get_latest_leader_offsets({TopicPartition(topic, n) for n in range(PARTITIONS)})


def committed(kafka, group) -> dict[TopicPartition, int]:
    found = kafka.get_consumer_offsets(group.name, ends_of(kafka, group.topic).keys())
    ahead = {item: at for item, at in found.items() if at > group.given.ends()[item.partition]}
    assert not ahead, f"{group.kind}: committed, and given to nobody"
    return found


# Where connections are lost without a word, each is waited for once.
SHORT = {"request.timeout.ms": 2000, "socket.connection.setup.timeout.ms": 1000}
CUTS = [
    pytest.param(Line.hold, {}, id="hold"),
    pytest.param(lambda line: line.hold("up"), {}, id="up", marks=pytest.mark.long),
    pytest.param(lambda line: line.hold("down"), {}, id="down", marks=pytest.mark.long),
    pytest.param(Line.lose, SHORT, id="lose", marks=pytest.mark.long),
    pytest.param(Line.reset, {}, id="reset", marks=pytest.mark.long),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("cut", "groups"), CUTS, indirect=["groups"])
def test_a_member_cut_off_for_longer_than_its_session(kafka, line, groups, topic, write, cut):
    write(topic)
    poll_until(groups, lambda group: group.given.of["far"], "rows")
    for group in groups:
        group.far.commit()
    write(topic)
    before = {group.kind: len(group.given.of["far"]) for group in groups}
    poll_until(groups, lambda group: len(group.given.of["far"]) > before[group.kind], "more rows")
    uncommitted = {group.kind: group.far.positions for group in groups}

    cut(line)
    write(topic)
    ends = ends_of(kafka, topic)
    assert busy_until(groups, lambda group: group.has_left_all_to_near(kafka, ends)) < BUSY

    line.heal()
    for group in groups:
        with pytest.raises(BrokerError):
            group.far.commit(uncommitted[group.kind])
        assert committed(kafka, group) == ends, group.kind
        group.told.clear()
    seen = {group.kind: len(group.given.of["far"]) for group in groups}
    poll_until(groups, lambda group: group.is_shared, "the members that come back", BACK_S)
    write(topic)
    ends_then = ends_of(kafka, topic)
    poll_until(groups, lambda group: group.is_done(kafka, ends_then), "all to be read")
    for group in groups:
        first = next(own for what, own in group.told if what == "on_lost")
        assert len(first) == PARTITIONS / 2, group.kind
        # What was committed meanwhile is not read again.
        again = group.given.of["far"][seen[group.kind] :]
        assert again
        assert all(offset >= ends[TopicPartition(topic, n)] for n, offset in again), group.kind
        assert group.given.count.keys() == rows_below(ends_then), group.kind


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(Line.hold, id="hold"),
        pytest.param(lambda line: line.delay(0.7), id="delay", marks=pytest.mark.long),
        pytest.param(lambda line: line.hold("new"), id="new", marks=pytest.mark.long),
        pytest.param(lambda line: line.hold("up"), id="up", marks=pytest.mark.long),
        pytest.param(lambda line: line.hold("down"), id="down", marks=pytest.mark.long),
    ],
)
def test_a_cut_shorter_than_the_session_moves_nothing(kafka, line, groups, topic, write, cut):
    """Nor is a row read twice: nobody has been given up."""
    write(topic)
    poll_until(groups, lambda group: group.given.of["far"], "rows")
    for group in groups:
        group.told.clear()
    cut(line)
    write(topic)
    until_then = Deadline.after(SESSION_S / 3)
    while not until_then.has_passed:
        for group in groups:
            group.poll(0.05)
    line.heal()
    ends = ends_of(kafka, topic)
    poll_until(groups, lambda group: group.is_done(kafka, ends), "all to be read", BACK_S)
    for group in groups:
        assert not group.told, group.kind
        assert set(group.given.count.values()) == {1}, group.kind


class Sharing:
    """A member of a share group, which acknowledges by name."""

    def __init__(self, servers: str, group: str, topic: str) -> None:
        explicit = {"share.acknowledgement.mode": "explicit"}
        config = {"bootstrap.servers": servers, "group.id": group} | explicit
        columns = ["topic", "partition", "offset", "deliveryCount"]
        self.consumer = ShareConsumer(config, {topic}, columns=columns)

    def take(self) -> dict[tuple[int, int], int]:
        """How often each row of the next batch was delivered."""
        found = self.consumer.poll(0.1)
        if found is None:
            return {}
        names = ("partition", "offset", "deliveryCount")
        rows = zip(*(found.column(name).to_pylist() for name in names), strict=True)
        return {(partition, offset): count for partition, offset, count in rows}

    def take_some(self, within_s: float = 30.0) -> dict[tuple[int, int], int]:
        deadline = Deadline.after(within_s)
        while not (found := self.take()):
            deadline.check("rows")
        return found

    def accept(self) -> list[KafkaProtoError | None]:
        """All of the last batch: what became of that."""
        self.consumer.acknowledge()
        return list(self.consumer.commit().values())


@pytest.mark.timeout(120)
def test_share_members_are_given_what_was_locked_and_not_what_was_accepted(
    kafka, broker, line, topic, new_name, write
):
    group = new_name("share")
    earliest = ConfigChange("share.auto.offset.reset", "earliest")
    kafka.alter_configs({ConfigResource("group", group): [earliest]})
    with ExitStack() as stack:
        far = Sharing(str(line.endpoint), group, topic)
        stack.callback(far.consumer.close)
        write(topic)
        accepted = far.take_some()
        assert far.accept() == [None]
        locked = far.take_some()
        assert not locked.keys() & accepted.keys()

        line.hold()
        near = Sharing(broker.bootstrap_servers, group, topic)
        stack.callback(near.consumer.close)
        rest = rows_below(ends_of(kafka, topic)) - accepted.keys()
        given: dict[tuple[int, int], int] = {}
        while not (found := near.take_some()).keys() & locked.keys():
            assert near.accept() == [None]
            given |= found

        line.heal()
        # While they are the other one's: of what is done with brokers refuse nothing.
        (refused,) = far.accept()
        assert isinstance(refused, KafkaProtoError)
        assert near.accept() == [None]
        given |= found
        take_turns([near, far], given, lambda: given.keys() == rest)
        assert {given[row] for row in locked} == {2}
        near.consumer.close()  # all that comes is for the other one
        write(topic)
        everything = rows_below(ends_of(kafka, topic)) - accepted.keys()
        take_turns([far], given, lambda: given.keys() == everything)


def take_turns(members, given, holds) -> None:
    """Have them take rows, each once, and accept them, until it `holds`."""
    deadline = Deadline.after(BACK_S + LOCK_S)
    while not holds():
        deadline.check("all rows")
        for one in members:
            if found := one.take():
                assert not found.keys() & given.keys()
                assert one.accept() == [None]
                given |= found


@pytest.mark.timeout(120)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_transaction_cut_off_for_longer_than_its_time_is_seen_by_nobody(
    kafka, broker, line, new_name, protocol
):
    source, target, group = new_name(), new_name(), new_name("group")
    kafka.create_topics([NewTopic(source, 1, 1), NewTopic(target, 1, 1)])
    near, far = ({"bootstrap.servers": at} for at in (broker.bootstrap_servers, str(line.endpoint)))
    with Producer(near, topic=source) as producer:
        producer.send([ProducerRecord(f"{n}".encode(), partition=0) for n in range(ROWS)])
    member = {
        "group.id": group,
        "group.protocol": protocol,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
    }
    member |= CLASSIC if protocol == "classic" else {}
    writer = {"transaction.timeout.ms": round(TRANSACTION_S * 1000), "linger.ms": 0}
    with ExitStack() as stack:
        copying = stack.enter_context(Consumer(far | member, {source}, columns=["value"]))
        writing = stack.enter_context(
            Producer(far | writer | {"transactional.id": f"{group}-far"}, topic=target)
        )
        copy(copying, writing, group)
        line.hold()
        heir = stack.enter_context(Consumer(near | member, {source}, columns=["value"]))
        heirs = stack.enter_context(
            Producer(near | {"linger.ms": 0, "transactional.id": f"{group}-near"}, topic=target)
        )
        # Once the session is over, and the transaction that holds the offsets.
        copy(heir, heirs, group)
        heirs.commit_transaction()
        line.heal()
        with pytest.raises(BrokerError):
            writing.commit_transaction()
        writing.abort_transaction()
        only = TopicPartition(source, 0)
        until(lambda: kafka.get_consumer_offsets(group, {only}) == {only: ROWS}, what="offsets")
        wait_until_settled(broker.bootstrap_servers, {TopicPartition(target, 0)})
        assert values(broker, target) == list(range(ROWS))
        # Who was refused is a member again, and writes again.

        def are_both_in():
            copying.poll(0.1)
            heir.poll(0.1)
            return len(kafka.describe_groups({group})[group].members) == 2

        until(are_both_in, BACK_S, "two members")
        writing.begin_transaction()
        writing.send([ProducerRecord(f"{ROWS}".encode(), partition=0)])
        writing.commit_transaction()
        wait_until_settled(broker.bootstrap_servers, {TopicPartition(target, 0)})
        assert values(broker, target) == list(range(ROWS + 1))


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(Line.lose, id="lose"),
        pytest.param(Line.reset, id="reset"),
        pytest.param(lambda line: line.hold("down"), id="down"),
        pytest.param(lambda line: line.hold("up"), id="up", marks=pytest.mark.long),
        pytest.param(lambda line: line.delay(2.5), id="delay", marks=pytest.mark.long),
    ],
)
def test_what_is_written_through_a_cut_is_there_once_and_in_order(kafka, broker, line, topic, cut):
    """Answers that are lost have the same rows sent again, which brokers know by their numbers."""
    config = {
        "bootstrap.servers": str(line.endpoint),
        "linger.ms": 0,
        "batch.size": 2000,
        "request.timeout.ms": 1000,
        "socket.connection.setup.timeout.ms": 1000,
    }
    written = 0

    def send(producer, rows=500):
        nonlocal written
        numbers = range(written, written + rows)
        producer.send([ProducerRecord(f"{n}".encode(), partition=0) for n in numbers])
        written += rows

    with Producer(config, topic=topic) as producer:
        send(producer)
        cut(line)
        until_then = Deadline.after(2.0)
        while not until_then.has_passed:
            send(producer, 50)
            time.sleep(0.05)
        line.heal()
        send(producer)
    assert values(broker, topic) == list(range(written))


def copy(consumer, producer, group) -> None:
    """Write what comes next, in a transaction that is left open."""
    deadline = Deadline.after(30)
    while (batch := consumer.poll(0.2)) is None:
        deadline.check("rows")
    producer.begin_transaction()
    producer.send([ProducerRecord(v, partition=0) for v in batch.column("value").to_pylist()])
    producer.flush()
    who = consumer.group_member
    producer.send_offsets_to_transaction(consumer.committable, group, who)


def values(broker, topic) -> list[int]:
    """What a reader of committed rows sees of partition 0."""
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    config = ClientConfig.parse(servers | {"isolation.level": "read_committed"})
    task = ReadTask((OffsetRange(topic, 0, 0, None),))
    found = []
    for batch in read_batches(task, config, ReadSettings(), schema_for(["value"])):
        found += [int(value) for value in batch.column(0).to_pylist()]
    connections_for(config).close()
    return found

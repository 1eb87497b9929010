"""Members of real share groups: ours with Kafka's own, locks that run out, what is refused.

The broker is one of its own, with short locks and members that beat often.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from contextlib import contextmanager

import pytest

from pyspark_kafkaproto import (
    Acknowledge,
    Consumer,
    KafkaCluster,
    Producer,
    ProducerRecord,
    ShareConsumer,
    TopicPartition,
)
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource
from pyspark_kafkaproto.cluster.admin import QuotaEntity
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import BrokerError, LocalProtocolError
from pyspark_kafkaproto.net import Deadline
from tests.broker.rivals import running_tool
from tests.broker.sharing import make_topic

pytestmark = pytest.mark.broker

LOCK_S, BRIEF_S = 30.0, 3.0  # the broker's, and that of groups whose locks are to run out
QUICK = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.record.lock.duration.ms": "1000",
    "quota.window.num": "3",  # seconds over which bytes are counted; 11 by default
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 40  # of each codec


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with DevBroker(tmp_path_factory.mktemp("share"), properties=QUICK) as started:
        yield started


@pytest.fixture
def group(kafka, new_name):
    """A group that begins with the first records."""
    name = new_name("share")
    earliest = ConfigChange("share.auto.offset.reset", "earliest")
    kafka.alter_configs({ConfigResource("group", name): [earliest]})
    return name


@pytest.fixture
def lock_for(kafka, group):
    """Sets for how many seconds the group locks what it gives out."""

    def alter(lock_s):
        change = ConfigChange("share.record.lock.duration.ms", str(round(lock_s * 1000)))
        kafka.alter_configs({ConfigResource("group", group): [change]})

    return alter


@pytest.fixture
def topic(kafka, new_name):
    return make_topic(kafka, new_name(), 2)


@pytest.fixture
def single(kafka, new_name):
    """A topic whose partition all members of a group have."""
    return make_topic(kafka, new_name(), 1)


@pytest.fixture
def member(broker):
    """Makes our member of a group; properties as keywords with `_`."""
    made = []

    def make(group, topic, **properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}
        made.append(ShareConsumer(config | given, {topic}))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def explicit(member):
    def make(group, topic, **properties):
        return member(group, topic, share_acknowledgement_mode="explicit", **properties)

    return make


def write(broker, topic, values, codec="none", partition=None, **properties):
    config = {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
    given = {name.replace("_", "."): value for name, value in properties.items()}
    with Producer(config | given, topic=topic) as producer:
        producer.send([ProducerRecord(value.encode(), partition=partition) for value in values])


def next_batch(consumer, within_s=30.0):
    deadline = Deadline.after(within_s)
    while (batch := consumer.poll(0.2)) is None:
        deadline.check("rows")
    return batch


def wait_for_assignment(consumer):
    deadline = Deadline.after(30)
    while not consumer.assignment:
        deadline.check("an assignment")
        assert consumer.poll(0.05) is None


def rows_of(batch):
    """(value, delivery count) of each row."""
    columns = batch.column("value").to_pylist(), batch.column("deliveryCount").to_pylist()
    return [(value.decode(), count) for value, count in zip(*columns, strict=True)]


def lags(broker, group):
    """What Kafka's own tool says is not done yet, per partition."""
    arguments = ("--bootstrap-server", broker.bootstrap_servers, "--describe", "--offsets")
    tool = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    told = broker.run_tool(tool, *arguments, "--group", group)
    *_, table = re.split(r"^GROUP\b.*$", told, flags=re.MULTILINE)
    return [line.split()[4] for line in table.splitlines() if line.strip()]


def wait_for_no_lag(kafka, broker, group):
    """The broker persists a little later what was accepted."""
    deadline = Deadline.after(20)
    while any(at.lag for at in kafka.get_share_group_offsets({group})[group].values()):
        deadline.check("an end of the lag")
        time.sleep(0.1)
    told = set(lags(broker, group))
    assert "0" in told
    assert told <= {"0", "-"}, "- has not begun"


@contextmanager
def java_share_member(broker, group, topic, folder):
    """Kafka's console consumer of share groups: gives what it has printed so far."""
    tool, arguments = "consumer.ConsoleShareConsumer", ("--topic", topic, "--group", group)
    with running_tool(broker, tool, arguments, folder, "error") as log:
        # Java 24 and later write warnings of their own there.
        yield lambda: re.findall(r"^r\d+$", log.read_text(), re.MULTILINE)


def wait_for_members(kafka, group, count, polled):
    """Until so many members share the partitions; ours are polled meanwhile, in vain."""
    deadline = Deadline.after(60)
    while True:
        try:
            found = kafka.describe_groups({group})[group].members
        except BrokerError:  # nobody has come yet
            found = ()
        if len(found) == count and all(item.assignment for item in found):
            return
        deadline.check(f"{count} members")
        for one in polled:
            assert one.poll(0.05) is None


def test_two_of_ours_and_one_of_java_share_every_record_once(
    broker, kafka, group, topic, member, tmp_path
):
    """In all codecs; nothing is lost, nothing is done twice, and nothing is left."""
    ours = [member(group, topic, max_poll_records=10) for _ in range(2)]
    written, seen = [], [[], []]
    with java_share_member(broker, group, topic, tmp_path) as printed:
        wait_for_members(kafka, group, 3, ours)
        deadline = Deadline.after(90)
        while not all([*seen, printed()]):  # nobody is promised a share: who is fast takes all
            for codec in CODECS:
                some = [f"r{len(written) + number}" for number in range(RECORDS)]
                write(broker, topic, some, codec, linger_ms=0, batch_size=100)
                written += some
            while sum(map(len, [*seen, printed()])) < len(written):
                deadline.check(f"all records: {[*map(len, seen)]}, {len(printed())} of Java")
                for own, one in zip(seen, ours, strict=True):
                    if (batch := one.poll(0.05)) is not None:
                        own += [value for value, _ in rows_of(batch)]
        for one in ours:
            assert set(one.commit().values()) <= {None}
        assert Counter([*seen[0], *seen[1], *printed()]) == Counter(written)
    wait_for_no_lag(kafka, broker, group)


@pytest.mark.parametrize("codec", CODECS)
def test_rows_of_every_codec_are_given_and_done(broker, kafka, group, topic, member, codec):
    values = [f"{codec}-{n}" for n in range(1000)]
    write(broker, topic, values, codec, partition=1)
    ours = member(group, topic)
    rows = []
    while len(rows) < len(values):
        rows += rows_of(next_batch(ours))
    assert rows == [(value, 1) for value in values]
    assert ours.commit() == {TopicPartition(topic, 1): None}
    ours.close()
    wait_for_no_lag(kafka, broker, group)


def test_who_is_killed_gives_its_records_back(broker, group, single, explicit):
    write(broker, single, ["a", "b"], partition=0)
    killed = explicit(group, single)
    assert rows_of(next_batch(killed)) == [("a", 1), ("b", 1)]
    assert killed.lock_s == LOCK_S
    killed.acknowledge(Acknowledge.ACCEPT, (single, 0), 0)
    assert killed.commit() == {TopicPartition(single, 0): None}
    heir = explicit(group, single)
    wait_for_assignment(heir)
    assert heir.poll(1) is None, "it is the other's"
    for one in killed._exchange._sessions.values():
        one.connection.close()
    assert rows_of(next_batch(heir)) == [("b", 2)]
    heir.acknowledge()
    assert heir.commit() == {TopicPartition(single, 0): None}
    killed.acknowledge(Acknowledge.ACCEPT)
    (error,) = killed.commit().values()
    assert error is not None


def test_whose_lock_runs_out_is_told(broker, group, single, explicit, lock_for):
    lock_for(BRIEF_S)
    write(broker, single, ["a"], partition=0)
    slow, other = explicit(group, single), explicit(group, single)
    assert rows_of(next_batch(slow)) == [("a", 1)]
    assert rows_of(next_batch(other, LOCK_S + 30)) == [("a", 2)]
    slow.acknowledge(Acknowledge.ACCEPT)
    (error,) = slow.commit().values()
    assert isinstance(error, BrokerError)
    assert "INVALID_RECORD_STATE" in str(error)
    assert "a lock ran out" in str(error)
    other.acknowledge()
    assert set(other.commit().values()) == {None}


@pytest.mark.parametrize("how", [Acknowledge.ACCEPT, Acknowledge.REJECT])
def test_whose_lock_ran_out_is_not_told_once_another_has_done_with_it(
    broker, group, single, explicit, lock_for, how
):
    """Brokers pass over what is said of records before the group's start, whoever had them."""
    lock_for(BRIEF_S)
    write(broker, single, ["a"], partition=0)
    slow, other = explicit(group, single), explicit(group, single)
    assert rows_of(next_batch(slow)) == [("a", 1)]
    assert rows_of(next_batch(other, LOCK_S + 30)) == [("a", 2)]
    other.acknowledge(how)
    assert set(other.commit().values()) == {None}
    slow.acknowledge(Acknowledge.ACCEPT)
    assert set(slow.commit().values()) == {None}


def test_a_renewed_lock_holds(broker, kafka, group, single, explicit, lock_for):
    lock_s = 2 * BRIEF_S
    lock_for(lock_s)
    write(broker, single, ["a"], partition=0)
    slow, other = explicit(group, single), explicit(group, single)
    next_batch(slow)
    wait_for_assignment(other)
    end = Deadline.after(2 * lock_s)
    while not end.has_passed:
        slow.acknowledge(Acknowledge.RENEW, (single, 0), 0)
        assert set(slow.commit().values()) == {None}
        assert other.poll(lock_s / 6) is None
    assert slow.poll(0.1) is None, "what is renewed is no obstacle"
    slow.acknowledge(Acknowledge.ACCEPT, (single, 0), 0)
    assert set(slow.commit().values()) == {None}
    wait_for_no_lag(kafka, broker, group)


def test_what_is_released_comes_again_and_what_is_rejected_does_not(
    broker, kafka, group, topic, explicit
):
    write(broker, topic, ["a", "b", "c", "d"], partition=0)
    ours = explicit(group, topic)
    assert rows_of(next_batch(ours)) == [(value, 1) for value in "abcd"]
    ours.acknowledge(Acknowledge.ACCEPT)
    ours.acknowledge(Acknowledge.RELEASE, (topic, 0), 1)
    ours.acknowledge(Acknowledge.REJECT, (topic, 0), 2)
    ours.acknowledge(Acknowledge.RELEASE, (topic, 0), 3)
    with pytest.raises(LocalProtocolError, match="not given to this member"):
        ours.acknowledge(Acknowledge.ACCEPT, (topic, 0), 4)
    rows = []
    while len(rows) < 2:
        rows += rows_of(next_batch(ours))
        with pytest.raises(LocalProtocolError, match="acknowledge all"):
            ours.poll(0)
        ours.acknowledge()
    assert rows == [("b", 2), ("d", 2)]
    assert set(ours.commit().values()) == {None}
    assert ours.poll(0.5) is None
    wait_for_no_lag(kafka, broker, group)


def test_what_is_rejected_or_given_up_is_a_dead_letter_of_the_broker_s(
    broker, kafka, group, single, explicit, new_name
):
    """Of Kafka 4.4, with share.version 2: members need not know of it."""
    letters = make_topic(kafka, new_name("dlq."), 1)
    enable = ConfigChange("errors.deadletterqueue.group.enable", "true")
    kafka.alter_configs({ConfigResource("topic", letters): [enable]})
    ends = ConfigChange("share.delivery.count.limit", "2")
    names = ConfigChange("errors.deadletterqueue.topic.name", letters)
    kafka.alter_configs({ConfigResource("group", group): [names, ends]})
    write(broker, single, ["a", "b"], partition=0)
    ours = explicit(group, single)
    assert rows_of(next_batch(ours)) == [("a", 1), ("b", 1)]
    ours.acknowledge(Acknowledge.RELEASE, (single, 0), 0)
    ours.acknowledge(Acknowledge.REJECT, (single, 0), 1)
    assert rows_of(next_batch(ours)) == [("a", 2)]
    ours.acknowledge(Acknowledge.RELEASE)
    assert ours.commit() == {TopicPartition(single, 0): None}
    found = []
    with Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": new_name("reads"),
            "auto.offset.reset": "earliest",
        },
        {letters},
    ) as reader:
        while len(found) < 2:
            found += next_batch(reader).to_pylist()
    told = [{item["key"]: item["value"] for item in row["headers"]} for row in found]
    which = sorted((item["__dlq.errors.offset"], item["__dlq.errors.topic"]) for item in told)
    assert which == [(b"0", single.encode()), (b"1", single.encode())]
    assert {row["value"] for row in found} == {None}


def test_markers_and_what_is_aborted_come_to_nobody(broker, kafka, group, topic, new_name, member):
    committed = ConfigChange("share.isolation.level", "read_committed")
    kafka.alter_configs({ConfigResource("group", group): [committed]})
    config = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": new_name("id")}
    with Producer(config, topic=topic) as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send([ProducerRecord(f"{number}".encode(), partition=0)])
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    write(broker, topic, ["end"], partition=0)
    ours, rows = member(group, topic), []
    while ("end", 1) not in rows:
        rows += rows_of(next_batch(ours))
    assert rows == [("0", 1), ("2", 1), ("4", 1), ("end", 1)]
    assert set(ours.commit().values()) == {None}
    wait_for_no_lag(kafka, broker, group)


def test_a_limit_of_records_is_kept(broker, group, topic, explicit):
    write(broker, topic, [str(n) for n in range(100)], partition=0)
    ours = explicit(group, topic, share_acquire_mode="record_limit", max_poll_records=7)
    batch = next_batch(ours)
    assert batch.num_rows == 7
    assert [tuple(item) for item in ours.acquired] == [(TopicPartition(topic, 0), 0, 6, 1)]
    ours.acknowledge(Acknowledge.RELEASE)


def test_a_group_of_another_type_is_refused(kafka, new_name, topic, member):
    name = new_name("group")
    kafka.set_consumer_offsets(name, {(topic, 0): 0})
    with pytest.raises(BrokerError, match="group of another type"):
        member(name, topic).poll(10)


def test_a_member_over_its_quota_costs_records_few_deliveries(
    kafka, broker, group, single, member, new_name, lock_for, caplog
):
    """A throttled answer has no records, but counts: without rests there were nearly sixty of them.

    Most came with a third delivery then, or never. A first burst costs nine, within ten seconds.
    """
    lock_for(BRIEF_S)
    client, rows = new_name("client"), 1600
    kafka.alter_quotas({QuotaEntity(client_id=client): {"consumer_byte_rate": 100_000}})
    write(broker, single, ["".ljust(1000, ".")] * rows, batch_size=10_000)
    consumer, counts = member(group, single, client_id=client, fetch_max_bytes=50_000), Counter()
    with caplog.at_level(logging.INFO, "pyspark_kafkaproto.net"):
        while sum(counts.values()) < rows:
            counts.update(next_batch(consumer).column("deliveryCount").to_pylist())
    throttles = [text for text in caplog.messages if "throttles us" in text]
    print(f"{len(throttles)} throttles, rows by delivery count: {dict(counts)}")
    assert 1 <= len(throttles) <= 20
    assert counts[1] > 0.6 * rows  # locks are short: what is withheld in a row is the same


def holds(kafka, broker_id, partition):
    """Whether the broker has a replica of the partition."""
    folders = kafka.describe_log_dirs({broker_id})[broker_id].values()
    return any(partition in folder.replicas for folder in folders)


def test_what_a_leader_gave_before_it_moved_comes_again(tmp_path_factory):
    """Leaders tell who leads now, and know nothing of what another one has given out."""
    with (
        DevBroker(tmp_path_factory.mktemp("moving"), nodes=3, properties=QUICK) as trio,
        KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as kafka,
    ):
        name, only = make_topic(kafka, "moving", 1), TopicPartition("moving", 0)
        earliest = ConfigChange("share.auto.offset.reset", "earliest")
        kafka.alter_configs({ConfigResource("group", "movers"): [earliest]})
        write(trio, name, ["a", "b"], partition=0)
        config = {"bootstrap.servers": trio.bootstrap_servers, "group.id": "movers"}
        with ShareConsumer(config | {"share.acknowledgement.mode": "explicit"}, {name}) as ours:
            assert rows_of(next_batch(ours)) == [("a", 1), ("b", 1)]
            ours.acknowledge(Acknowledge.ACCEPT, only, 0)
            assert ours.commit() == {only: None}
            before = kafka.find_leaders([only])[only].node_id
            to = 1 + before % 3
            kafka.reassign_partitions({only: (to,)})
            deadline = Deadline.after(30)
            # Others may know of the next leader before the old one does, which still takes what is
            # acknowledged then. It gives its replica up once it has heard.
            while kafka.find_leaders([only])[only].node_id != to or holds(kafka, before, only):
                deadline.check("another leader, of which the one before knows")
                time.sleep(0.1)
            ours.acknowledge(Acknowledge.ACCEPT, only, 1)
            (error,) = ours.commit().values()
            assert isinstance(error, BrokerError), error
            assert "comes again" in str(error)
            batch = next_batch(ours)
            assert batch.column("value").to_pylist() == [b"b"]
            ours.acknowledge()
            assert ours.commit() == {only: None}
        wait_for_no_lag(kafka, trio, "movers")

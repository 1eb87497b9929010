"""Writing while real brokers die and stall and the network is cut: every row once, in its order.

Each phase is hit `HITS` times in the long run and once in the short one; the hits are counted and
printed, and a fault that met nothing in flight does not count as one that did.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from pyspark_kafkaproto import Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for
from tests.fault.conftest import NODES, killed, make_replicated, wait_for_all
from tests.fault.network import Network
from tests.stalled import stalled

pytestmark = pytest.mark.fault

HITS = 5
RUNS = [pytest.param(1, id="once"), pytest.param(HITS, id="five-times", marks=pytest.mark.long)]
# As long as the rows of one call keep requests in flight.
_ROWS = 2000


@pytest.fixture
def target(trio, new_name) -> str:
    """An empty topic whose partitions are led by one node each."""
    name = new_name()
    make_replicated(trio, name)
    wait_for_all(trio, name)
    return name


@pytest.fixture
def network(monkeypatch) -> Iterator[Network]:
    """What every connection of the test goes through."""
    made = Network(monkeypatch)
    yield made
    made.close()


class Writing:
    """Writes numbers, and knows which there are in each partition."""

    def __init__(self, trio, topic) -> None:
        self.topic = topic
        self.servers = trio.bootstrap_servers
        self.written = {number: [] for number in range(NODES)}
        self.producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "batch.size": 2000,
                "linger.ms": 0,
                "request.timeout.ms": 2000,
            },
            topic=topic,
        )
        self._next = 0

    def send(self, rows: int = _ROWS) -> None:
        numbers = range(self._next, self._next + rows)
        self._next += rows
        self.producer.send(
            [ProducerRecord(f"{number}", partition=number % NODES) for number in numbers]
        )
        for number in numbers:
            self.written[number % NODES].append(number)

    @property
    def in_flight(self) -> int:
        """Requests that are not answered."""
        return sum(len(link.sent) for link in self.producer._sender._links.values())

    def check(self) -> None:
        """Everything is in the log once, in its order."""
        self.producer.close()
        found = {number: [] for number in range(NODES)}
        config = ClientConfig.parse({"bootstrap.servers": self.servers})
        for number in range(NODES):
            task = ReadTask((OffsetRange(self.topic, number, 0, None),))
            schema = schema_for(["value"])
            for batch in read_batches(task, config, ReadSettings(), schema):
                found[number] += [int(value) for value in batch.column(0).to_pylist()]
        connections_for(config).close()
        assert found == self.written


@pytest.fixture
def writing(trio, target):
    made = Writing(trio, target)
    yield made
    made.producer.abandon()


def leader_of(kafka, topic, number):
    partition = TopicPartition(topic, number)
    return kafka.find_leaders({partition})[partition].node_id


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hits", RUNS)
@pytest.mark.parametrize("fault", [killed, stalled])
def test_a_leader_that_is_lost_costs_nothing_and_doubles_nothing(
    trio, kafka, target, writing, fault, hits
):
    phases = Counter()
    while phases["with requests in flight"] < hits:
        assert sum(phases.values()) < 3 * hits, phases
        writing.send()
        leader = leader_of(kafka, target, phases.total() % NODES)
        writing.send()
        phases["with requests in flight" if writing.in_flight else "with nothing in flight"] += 1
        with fault(trio, leader):
            writing.send()
            writing.producer.flush()  # the others are enough
        writing.send()
        wait_for_all(trio, target)
    writing.check()
    print(f"\nhits of {fault.__name__}: {dict(phases)}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("cut_s", "hits"), [(5.0, 1), pytest.param(30.0, HITS, marks=pytest.mark.long)]
)
def test_a_network_that_is_cut_costs_nothing_and_doubles_nothing(
    trio, target, network, cut_s, hits
):
    writing = Writing(trio, target)
    phases = Counter()
    while phases["with requests in flight"] < hits:
        assert sum(phases.values()) < 3 * hits, phases
        writing.send()
        with network.cut():
            writing.send()
            phases["with requests in flight" if writing.in_flight else "with nothing"] += 1
            until = Deadline.after(cut_s)
            while not until.has_passed:  # as long as it lasts, the producer tries
                writing.producer._sender._turn(min(0.5, until.remaining_s), is_pressing=True)
        writing.send()
        writing.producer.flush()
    writing.check()
    print(f"\nhits of a cut of {cut_s:g} s: {dict(phases)}")


@pytest.mark.timeout(300)
def test_a_cut_that_outlasts_delivery_timeout_is_named_in_time(trio, target, network):
    with Producer(
        {
            "bootstrap.servers": trio.bootstrap_servers,
            "linger.ms": 0,
            "request.timeout.ms": 3000,
            "socket.connection.setup.timeout.ms": 3000,
            "delivery.timeout.ms": 10_000,
        },
        topic=target,
    ) as producer:
        producer.send([ProducerRecord("a", partition=0)])
        producer.flush()
        began = time.monotonic()
        with network.cut(), pytest.raises(TimeoutError, match=f"{target}-0"):
            _send_and_flush(producer)
        assert time.monotonic() - began < 50


def _send_and_flush(producer):
    producer.send([ProducerRecord("b", partition=0)])
    producer.flush()

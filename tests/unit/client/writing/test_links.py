"""What goes to one leader, and who may take how long: one that failed, one that takes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.links import _HURRIED_S, _STALL_S, Link, SentProduce
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConnectionFailed, DeadlineExceeded, UnsupportedVersion
from pyspark_kafkaproto.net import ClientConfig, Deadline, Endpoint, ProducerConfig
from pyspark_kafkaproto.wire.declaration import NO_ID

LEADER = Endpoint("b-1", 9092)
CLIENT = ClientConfig.parse({"bootstrap.servers": "b-1:9092"})


class FakeConnection:
    """Notes how a request was sent."""

    has_unsent = must_drain = is_throttled = False

    def __init__(self):
        self.sent = []
        self.requests = []
        self.answers = 0
        self.highest = 9
        self.error = None
        self.is_closed = False

    def version_for(self, request, most):
        return self.highest if most is None else min(self.highest, most)

    def send(self, request, deadline, version, **options):
        self.sent.append(options)
        self.requests.append((version, request))
        if self.error is not None:
            raise self.error

    def close(self):
        self.is_closed = True

    def receive(self, deadline):
        self.answers -= 1
        if self.answers < 0:
            raise DeadlineExceeded("receive", 30.0)
        return SimpleNamespace(message=None)


class FakeRouter:
    """Notes by when somebody was to be reached."""

    def __init__(self):
        self.connection = FakeConnection()
        self.asked = []

    def connect(self, endpoint, deadline):
        self.asked.append(deadline)
        return self.connection


@pytest.fixture
def router():
    return FakeRouter()


def send(link, router, chosen=(), *, acks=-1, others_wait=False, most=None):
    config = ProducerConfig(client=CLIENT, acks=acks)
    within = Deadline.after(30)
    link.send(router, config, chosen, within, (None, most), others_wait=others_wait)
    return within


def to(topic, topic_id=None):
    """A batch for partition 0 of a topic."""
    queue = PartitionQueue(TopicPartition(topic, 0), Sequences(Identity(1000, 0)), 1000)
    queue.topic_id = topic_id
    return queue, Batch(b"records", 1, (1,), 0, [])


@pytest.mark.parametrize("has_failed", [False, True])
@pytest.mark.parametrize("others_wait", [False, True])
def test_a_leader_that_has_failed_takes_little_of_the_time_of_others(
    router, has_failed, others_wait
):
    """Of its own it has all there is: it may be slow, and nobody else is there."""
    link = Link(LEADER)
    link.has_failed = has_failed
    within = send(link, router, others_wait=others_wait)
    (asked,) = router.asked
    if has_failed and others_wait:
        assert asked.remaining_s <= _HURRIED_S < within.remaining_s
    else:
        assert asked == within
    assert not link.has_failed, "it was reached"


@pytest.mark.parametrize(("acks", "stall_s"), [(-1, _STALL_S), (1, _STALL_S), (0, None)])
def test_a_leader_that_takes_nothing_is_waited_for_only_where_no_answer_tells(
    router, acks, stall_s
):
    send(Link(LEADER), router, acks=acks)
    assert router.connection.sent == [{"is_answered": acks != 0, "stall_s": stall_s}]


@pytest.mark.parametrize("has_unsent", [False, True])
def test_while_nobody_sends_the_rest_of_a_request_its_time_stands_still(router, has_unsent):
    link = Link(LEADER)
    link.connection = router.connection
    link.connection.has_unsent = has_unsent
    before, last = Deadline(100.0, 30.0), Deadline(200.0, 30.0)
    link.sent.extend(SentProduce({}, {}, deadline) for deadline in (before, last))
    link.excuse(7.0)
    assert [sent.deadline.at for sent in link.sent] == [100.0, 207.0 if has_unsent else 200.0]


def test_with_nothing_in_flight_the_last_connection_is_somebody_elses(router):
    """It may carry half of another producer's request, whose rest is not ours to send."""
    link = Link(LEADER)
    link.connection = router.connection
    link.connection.has_unsent = True
    link.excuse(7.0)
    assert link.has_room(5, throttling=())


@pytest.mark.parametrize("name", ["has_unsent", "must_drain", "is_throttled"])
def test_a_connection_that_has_something_to_do_first_has_no_room(router, name):
    link = Link(LEADER)
    send(link, router)
    assert link.has_room(5, throttling=())
    setattr(router.connection, name, True)
    assert not link.has_room(5, throttling=())


def test_so_many_requests_are_in_flight_and_no_more(router):
    link = Link(LEADER)
    send(link, router)
    send(link, router)
    assert link.has_room(3, throttling=())
    assert not link.has_room(2, throttling=())


def test_whoever_wants_silence_on_any_connection_is_not_sent_to(router):
    link = Link(LEADER)
    assert not link.has_room(5, throttling={LEADER})
    assert link.has_room(5, throttling={Endpoint("b-2", 9092)})
    send(link, router)
    assert link.has_room(5, throttling={LEADER}), "it may be another thread's"


@pytest.mark.parametrize("has_unsent", [False, True])
@pytest.mark.parametrize("answers", [1, 3])
def test_answers_are_heard_out_of_what_has_left_as_a_whole(router, answers, has_unsent):
    """What may still be written is known then: all that was not answered."""
    link = Link(LEADER)
    link.connection = router.connection
    link.connection.has_unsent, link.connection.answers = has_unsent, answers
    sent = [SentProduce({}, {}, Deadline.after(30)) for _ in range(3)]
    link.sent.extend(sent)
    heard = [item for item, _ in link.hear_out(Deadline.after(30))]
    asked = min(answers, 2 if has_unsent else 3)
    assert heard == sent[:asked]
    assert list(link.sent) == sent[asked:]
    waits_in_vain = answers == 1
    assert link.connection.answers == answers - asked - waits_in_vain


@pytest.mark.parametrize(
    ("chosen", "most", "version"),
    [
        ([to("orders", b"1" * 16), to("other", b"2" * 16)], None, 13),
        ([to("orders", b"1" * 16), to("other", b"2" * 16)], 11, 11),
        ([to("orders", b"1" * 16), to("other")], None, 12),
        ([to("orders")], 11, 11),
        ([to("orders")], 13, 12),
    ],
)
def test_topics_whose_ids_are_not_known_are_written_to_by_name(router, chosen, most, version):
    router.connection.highest = 13
    link = Link(LEADER)
    send(link, router, chosen, most=most)
    ((used, request),) = router.connection.requests
    assert used == version
    ids = [queue.topic_id or NO_ID for queue, _ in chosen]
    assert [topic.topic_id for topic in request.topic_data] == ids
    (sent,) = link.sent
    assert sent.topics == dict(
        zip(ids, (queue.partition.topic for queue, _ in chosen), strict=True)
    )


def test_brokers_from_before_record_batches_are_refused(router):
    router.connection.highest = 2
    with pytest.raises(UnsupportedVersion, match=r"speaks Produce 2.* need 3 or later"):
        send(Link(LEADER), router)
    router.connection.highest = 3
    send(Link(LEADER), router)


@pytest.mark.parametrize("acks", [-1, 0])
def test_what_did_not_leave_is_not_in_flight(router, acks):
    link = Link(LEADER)
    send(link, router, acks=acks)
    router.connection.error = ConnectionFailed("b-1:9092", "send", "it hangs up")
    with pytest.raises(ConnectionFailed, match="hangs up"):
        send(link, router, acks=acks)
    assert len(link.sent) == (0 if acks == 0 else 1)


@pytest.mark.parametrize("acks", [-1, 0])
def test_a_connection_with_nothing_in_flight_stays_open_for_others(router, acks):
    link = Link(LEADER)
    link.drop()
    send(link, router, acks=acks)
    link.drop()
    assert router.connection.is_closed == (acks != 0)
    assert link.connection is None
    assert not link.sent

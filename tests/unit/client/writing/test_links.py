"""Who may take how long: a leader that has just failed, and one that takes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.client.writing.links import _HURRIED_S, _STALL_S, Link, SentProduce
from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net import ClientConfig, Deadline, Endpoint, ProducerConfig

LEADER = Endpoint("b-1", 9092)
CLIENT = ClientConfig.parse({"bootstrap.servers": "b-1:9092"})


class FakeConnection:
    """Notes how a request was sent."""

    has_unsent = must_drain = is_throttled = False

    def __init__(self):
        self.sent = []
        self.answers = 0

    def version_for(self, request, most):
        return 9

    def send(self, request, deadline, version, **options):
        self.sent.append(options)

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


def send(link, router, *, acks=-1, others_wait=False):
    config = ProducerConfig(client=CLIENT, acks=acks)
    within = Deadline.after(30)
    link.send(router, config, [], within, (None, None), others_wait=others_wait)
    return within


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

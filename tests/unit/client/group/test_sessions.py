"""Fetch sessions (KIP-227): what a Fetch names, and what becomes of a session that is lost."""

from __future__ import annotations

import time
from contextlib import closing
from itertools import count
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client.group import reading
from pyspark_kafkaproto.client.group import sessions as sessions_of_ours
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.client.group.sessions import FetchSession, FetchSessions
from pyspark_kafkaproto.client.group.tail import Tail
from pyspark_kafkaproto.client.reading.requests import Limits, Terms, fetch_request
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.errors import ConnectionFailed, RemoteProtocolError
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.net import ConsumerConfig, Deadline
from pyspark_kafkaproto.wire.declaration import NO_ID
from tests.fake_broker import DEFAULT, close
from tests.fake_sessions import FakeSessions, Session, with_values
from tests.unit.client.group.polling import poll_rows, poll_until
from tests.waiting import until

MANY = 250
LIMITS = Limits(response_bytes=1000, min_bytes=1, wait_s=0.5)
NODE = 1


@pytest.fixture
def many(brokers):
    """A record in each partition of `many`."""
    for partition in range(MANY):
        brokers.logs["many", partition].append(b"first")
    return brokers


@pytest.fixture
def caught_up(many, group, consumer_of):
    """A member that has read them, and that a broker keeps a session for."""
    consumer = consumer_of(topics={"many"})
    poll_rows(consumer, MANY)
    poll_until(consumer, lambda: named(many) == {}, "a Fetch that names nothing")
    return consumer


def named(brokers, number=-1):
    """The partitions that a Fetch named, the last or the one of this number, and from where on."""
    _, request = brokers.sessions.named[number]
    partitions = [item for topic in request.topics for item in topic.partitions]
    return {item.partition: item.fetch_offset for item in partitions}


def epochs(brokers, since=0):
    return [request.session_epoch for _, request in brokers.sessions.named[since:]]


@pytest.mark.slow
def test_a_fetch_names_what_has_changed_and_nothing_else(many, caught_up):
    many.logs["many", 7].append(b"second")
    since = len(many.sessions.named)
    assert poll_rows(caught_up, 1) == [(7, 1)]
    poll_until(caught_up, lambda: len(many.sessions.named) > since + 2, "the Fetches behind it")
    assert [named(many, number) for number in range(since, since + 3)].count({}) == 2
    assert {7: 2} in [named(many, number) for number in range(since, since + 3)]
    assert all(epoch > 0 for epoch in epochs(many, since))
    assert len(many.sessions) == 1


@pytest.mark.slow
def test_the_epochs_of_a_session_go_up_one_by_one(many, caught_up):
    poll_until(caught_up, lambda: len(many.sessions.named) > 10, "more of them")
    seen = epochs(many)
    assert seen == list(range(len(seen)))


@pytest.mark.slow
def test_where_a_broker_has_forgotten_the_session_all_is_named_again(many, caught_up):
    with many.at_once():
        many.sessions.forget()
        many.logs["many", 7].append(b"second")
        since = len(many.sessions.named)
    assert poll_rows(caught_up, 1) == [(7, 1)]
    assert 0 in epochs(many, since)
    assert len(many.sessions) == 1


@pytest.mark.slow
def test_a_broker_that_keeps_no_more_sessions_is_told_everything_each_time(
    many, group, consumer_of
):
    many.sessions.most = 0
    consumer = consumer_of(topics={"many"})
    poll_rows(consumer, MANY)
    many.logs["many", 7].append(b"second")
    assert poll_rows(consumer, 1) == [(7, 1)]
    assert set(epochs(many)) == {0}
    assert len(named(many)) == MANY


@pytest.mark.slow
def test_a_session_of_which_an_answer_was_lost_is_ended_by_the_next(many, caught_up):
    since = len(many.sessions.named)
    many.on("Fetch", close(), DEFAULT)
    poll_until(caught_up, lambda: 0 in epochs(many, since), "a session begun anew")
    many.logs["many", 7].append(b"second")
    assert poll_rows(caught_up, 1) == [(7, 1)]
    anew = next(item for _, item in many.sessions.named[since:] if item.session_epoch == 0)
    assert anew.session_id > 0
    assert len(many.sessions) == 1


@pytest.mark.slow
def test_a_partition_that_another_broker_leads_is_forgotten(many, caught_up):
    with many.at_once():
        many.topics["many"].move(7, 2)
        many.logs["many", 7].append(b"second")
        since = len(many.sessions.named)
    assert poll_rows(caught_up, 1) == [(7, 1)]
    forgotten = [
        (topic.topic_id, topic.partitions)
        for node, request in many.sessions.named[since:]
        for topic in request.forgotten_topics_data
        if node == NODE
    ]
    assert forgotten == [(many.topics["many"].topic_id, (7,))]


@pytest.mark.slow
def test_a_member_that_begins_anew_leaves_no_session_behind(many, group, consumer_of, monkeypatch):
    consumer = consumer_of(topics={"many"})
    poll_rows(consumer, MANY)
    for turn in range(5):
        many.logs["many", 7].append(b"more")
        with monkeypatch.context() as patched:
            patched.setattr(reading, "to_record_batches", no_memory)
            with pytest.raises(MemoryError):
                poll_until(consumer, lambda: False, "the error")
        assert poll_rows(consumer, 1) == [(7, 1 + turn)]
    assert epochs(many).count(0) > 5
    assert len(many.sessions) == 1


@pytest.mark.slow
def test_a_member_that_closes_leaves_no_session_behind(many, caught_up):
    assert len(many.sessions) == 1
    caught_up.close()
    until(lambda: len(many.sessions) == 0, what="the end of the session")
    assert epochs(many)[-1] == -1
    assert named(many) == {}


@pytest.mark.slow
def test_one_that_is_told_to_be_silent_closes_without_a_word(many, caught_up):
    """The next request would have to wait."""
    many.on("Fetch", lambda _: FetchResponse(throttle_time_ms=60_000), DEFAULT)
    poll_until(caught_up, lambda: caught_up._router.connections.throttling, "the silence")
    since = len(many.sessions.named)
    began = time.monotonic()
    caught_up.close()
    assert time.monotonic() - began < 5
    assert epochs(many, since) == []


def test_a_broker_whose_first_answer_is_never_heard_begins_no_session_each_time():
    """It keeps each for two minutes, and nobody else is given one then."""
    sessions, session = FakeSessions(), FetchSession()
    terms = [Terms(TopicPartition("a", 0), NO_ID, 0, 0, -1, 1)]
    for _ in range(50):
        scope = session.next_scope(terms, is_by_id=False)
        assert scope.is_whole
        sessions.of(NODE, 12, fetch_request(scope, LIMITS, "", is_read_committed=False))
    assert len(sessions) == 1


def test_a_session_is_begun_once_more_after_a_while(monkeypatch):
    session = FetchSession()
    terms = [Terms(TopicPartition("a", 0), NO_ID, 0, 0, -1, 1)]
    session.next_scope(terms, is_by_id=False)
    session.note_answer(FetchResponse(session_id=7))
    epochs = [session.next_scope(terms, is_by_id=False).session_epoch for _ in range(3)]
    assert epochs == [1, 0, -1]
    clock = time.monotonic() + 10
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    assert session.next_scope(terms, is_by_id=False).session_epoch == 0


def test_behind_the_last_epoch_comes_the_first_one_that_begins_nothing(monkeypatch):
    """As Kafka's brokers count: 0 would be a session begun anew."""
    monkeypatch.setattr(sessions_of_ours, "_LAST_EPOCH", 2)
    session = FetchSession()
    terms = [Terms(TopicPartition("a", 0), NO_ID, 0, 0, -1, 1)]
    epochs = []
    for _ in range(5):
        epochs.append(session.next_scope(terms, is_by_id=False).session_epoch)
        session.note_answer(FetchResponse(session_id=7))
    assert epochs == [0, 1, 2, 1, 2]


class FakeConnection(SimpleNamespace):
    """What is asked of a connection before a request is sent on it, and what was sent."""

    def __init__(self, endpoint, **states):
        usual = dict.fromkeys(("is_throttled", "has_unsent", "in_flight"), 0)
        open_ = {"is_idle": True, "is_open": True}
        super().__init__(endpoint=endpoint, sent=[], **(usual | open_ | states))

    def version_for(self, _):
        return 12

    def send(self, request, *_, **__):
        self.sent.append((request.session_id, request.session_epoch))


def test_each_broker_is_told_of_the_end_of_its_own_session_where_it_hears_it_first():
    sessions = FetchSessions()
    terms = [Terms(TopicPartition("a", 0), NO_ID, 0, 0, -1, 1)]
    for number, endpoint in enumerate(("b-1", "b-2", "b-3")):
        session = sessions.at((endpoint, ""))
        session.next_scope(terms, is_by_id=False)
        session.note_answer(FetchResponse(session_id=number + 1))
    busy, free = FakeConnection("b-1", is_idle=False, in_flight=2), FakeConnection("b-1")
    shut = FakeConnection("b-2", is_idle=False, is_open=False)
    behind = FakeConnection("b-2", is_idle=False, in_flight=1)
    silent = FakeConnection("b-3", is_throttled=True)
    stuck = FakeConnection("b-3", has_unsent=True)
    sessions.end([busy, free, shut, behind, silent, stuck])
    assert (free.sent, behind.sent) == ([(1, -1)], [(2, -1)])
    assert not busy.sent + shut.sent + silent.sent + stuck.sent


def no_memory(*_):
    raise MemoryError


@pytest.mark.slow
def test_an_error_of_one_partition_keeps_no_other_from_being_read(many, caught_up):
    """In an answer that says nothing of the others."""

    def refused(call):
        (topic,) = call.request.topics
        (data,) = [
            FetchResponse.Topic.Partition(partition_index=item.partition, error_code=6)
            for item in topic.partitions
            if item.partition == 7
        ]
        own = FetchResponse.Topic(topic_id=topic.topic_id, partitions=(data,))
        return FetchResponse(responses=(own,))

    asked = len(many.asked("Fetch"))
    many.on("Fetch", refused, DEFAULT)
    poll_until(caught_up, lambda: len(many.asked("Fetch")) > asked + 2, "the Fetch behind that")
    many.logs["many", 8].append(b"second")
    assert poll_rows(caught_up, 1) == [(8, 1)]
    many.logs["many", 7].append(b"second")
    assert poll_rows(caught_up, 1) == [(7, 1)]


@pytest.mark.slow
def test_an_answer_about_everything_is_about_everything(many, group, consumer_of):
    """Nothing may be missing of what begins a session."""

    def lacking(call):
        (topic,) = call.request.topics
        own = FetchResponse.Topic(topic_id=topic.topic_id, partitions=())
        return FetchResponse(responses=(own,))

    many.on("Fetch", lacking)
    consumer = consumer_of(topics={"many"}, default_api_timeout_ms=500)
    with pytest.raises(RemoteProtocolError, match="no answer for many-"):
        poll_until(consumer, lambda: False, "the error")


@pytest.mark.slow
def test_brokers_older_than_sessions_are_told_everything(brokers, group, consumer_of):
    brokers.versions["Fetch"] = (4, 6)
    brokers.logs["orders", 0].fill(2)
    consumer = consumer_of()
    poll_rows(consumer, 20)
    brokers.logs["orders", 0].append(b"more")
    assert poll_rows(consumer, 1) == [(0, 20)]
    assert len(brokers.sessions) == 0


@pytest.mark.slow
def test_brokers_that_know_no_topic_ids_yet_are_not_told_to_forget_who_gets_one(
    many, group, consumer_of
):
    """As in an upgrade, where metadata has ids before Fetch does: a name stays what it was."""
    many.versions["Fetch"] = (4, 12)
    topic_id, many.topics["many"].topic_id = many.topics["many"].topic_id, NO_ID
    consumer = consumer_of(topics={"many"}, metadata_max_age_ms=200)
    poll_rows(consumer, MANY)
    with many.at_once():
        many.topics["many"].topic_id = topic_id
    asked = len(many.asked("Metadata"))
    poll_until(consumer, lambda: len(many.asked("Metadata")) > asked + 1, "who has the id")
    assert not any(request.forgotten_topics_data for _, request in many.sessions.named)
    many.logs["many", 7].append(b"second")
    assert poll_rows(consumer, 1) == [(7, 1)]


@pytest.mark.slow
def test_those_that_rest_together_are_asked_about_together(many, monkeypatch):
    """Else a session would forget the others, and they would wait for its answer."""
    properties = {"bootstrap.servers": many.bootstrap_servers, "group.id": "g"}
    config = ConsumerConfig.parse(properties)
    positions = {TopicPartition("many", number): 0 for number in range(MANY)}
    with closing(Router(config.client)) as router:
        tail = Tail(positions, config, router, no_reset, Seen(), FetchSessions())
        tail._rest(tail._open, 0.1)
        clock = count(time.monotonic(), 0.001)  # goes on while they are looked at
        monkeypatch.setattr(time, "monotonic", lambda: next(clock))
        while not tail._under_way:
            tail._ask()
        monkeypatch.undo()
        assert len(tail._under_way.partitions) == MANY
        tail.close()


def test_what_fails_before_anybody_is_asked_is_about_all(many, monkeypatch):
    """As a look at a topic that was made again may, where all else is resting."""
    properties = {"bootstrap.servers": many.bootstrap_servers, "group.id": "g"}
    config = ConsumerConfig.parse(properties)
    positions = {TopicPartition("many", number): 0 for number in range(MANY)}

    def fail():
        raise ConnectionFailed(many.bootstrap_servers, "connect", "refused")

    with closing(Router(config.client)) as router:
        tail = Tail(positions, config, router, no_reset, Seen(), FetchSessions())
        monkeypatch.setattr(tail, "_leave_topics_of_the_past", fail)
        assert tail.next_blocks(Deadline.after(0)) == []
        assert tail.unheard == set()
        assert len(tail._resting) == MANY
        tail.close()


def no_reset(partition, why, end=None):
    pytest.fail(f"{partition} was at {end}: {why}")


# Whatever is asked for, lost and answered, the broker knows just what is asked for.

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3))
TERMS = st.lists(
    st.builds(
        Terms,
        PARTITIONS,
        st.just(NO_ID),
        offset=st.integers(0, 2),
        leader_epoch=st.integers(0, 1),
        read_epoch=st.just(-1),
        most_bytes=st.integers(1, 2),
    ),
    unique_by=lambda item: item.partition,
)
HAPPENS = st.sampled_from(["answered", "answered", "answered", "lost", "not sent", "forgotten"])
# Topic "a" is made again at times.
STEPS = st.lists(st.tuples(TERMS, st.booleans(), st.booleans(), HAPPENS), max_size=12)


@pytest.mark.slow
@patch.object(sessions_of_ours, "_WITHOUT_S", 0)
@given(steps=STEPS)
def test_the_broker_knows_what_is_asked_for(steps):
    sessions, session = FakeSessions(), FetchSession()
    never_heard_of = 0  # sessions of which the first answer was lost
    for given_terms, is_by_id, is_made_again, happens in steps:
        ids = {"a": bytes([1 + is_made_again]) * 16, "b": b"b" * 16}
        terms = [replace_id(item, ids) for item in given_terms]
        scope = session.next_scope(terms, is_by_id=is_by_id)
        if happens == "not sent":
            continue
        if happens == "forgotten":
            sessions.forget()
        request = fetch_request(scope, LIMITS, "", is_read_committed=False)
        kept = sessions.of(NODE, 17 if is_by_id else 12, seen_by_broker(request, is_by_id))
        assert kept is not None or not terms, "brokers keep none for nothing"
        if happens == "lost":
            never_heard_of += scope.session_epoch == 0
            continue
        if kept is None:
            session.note_answer(FetchResponse())
            continue
        if isinstance(kept, int):
            assert happens == "forgotten" or scope.session_epoch > 0
            session.note_answer(FetchResponse(error_code=kept))
            continue
        assert known_to(kept, is_by_id) == {
            ((item.topic_id if is_by_id else item.partition.topic), item.partition.partition): (
                item.offset,
                item.leader_epoch,
                item.most_bytes,
            )
            for item in terms
        }
        session.note_answer(sessions.answered(kept, FetchResponse()))
    assert len(sessions) <= 1 + never_heard_of
    last = session.last_scope()
    if last is not None:
        kept = sessions.of(NODE, 12, fetch_request(last, LIMITS, "", is_read_committed=False))
        assert kept is None
    assert len(sessions) <= never_heard_of


def replace_id(item: Terms, ids: dict[str, bytes]) -> Terms:
    return item._replace(topic_id=ids[item.partition.topic])


def seen_by_broker(request, is_by_id):
    """The request as it comes: topics have a name or an id."""
    lacking = {"topic": ""} if is_by_id else {"topic_id": NO_ID}
    return with_values(
        request,
        topics=tuple(with_values(item, **lacking) for item in request.topics),
        forgotten_topics_data=tuple(
            with_values(item, **lacking) for item in request.forgotten_topics_data
        ),
    )


def known_to(session: Session, is_by_id):
    return {
        (topic_id if is_by_id else name, number): (
            item.terms.fetch_offset,
            item.terms.current_leader_epoch,
            item.terms.partition_max_bytes,
        )
        for (name, topic_id, number), item in session.asked.items()
    }

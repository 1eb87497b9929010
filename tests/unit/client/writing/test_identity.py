"""Producer ids go from a producer that has ended well to the next one, each time an epoch later."""

import os
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client import Producer, ProducerRecord
from pyspark_kafkaproto.client.writing import identity
from pyspark_kafkaproto.client.writing.sequences import Identity
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from tests.fake_broker import DEFAULT, metadata
from tests.fake_produce import INVALID_PRODUCER_EPOCH, refusing, stamped, values
from tests.forks import fork

TOPIC_AUTHORIZATION_FAILED = 29
UNKNOWN_PRODUCER_ID = 59
BEFORE_FIRST = 1000  # the fake cluster's first producer id is the next one


@pytest.fixture
def make(brokers):
    """Makes a producer; properties as keywords."""

    def open_one(**properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        short = {"bootstrap.servers": brokers.bootstrap_servers, "retry.backoff.ms": 1}
        return Producer(short | given, topic="orders")

    return open_one


@pytest.fixture
def write(make):
    """Writes numbers with a producer of their own, which is closed."""

    def write_numbers(*numbers, partition=0, **properties):
        with make(**properties) as producer:
            producer.send([ProducerRecord(f"{n}", partition=partition) for n in numbers])

    return write_numbers


def stamps(brokers, partition=0):
    """Producer id, epoch and sequence of each batch in the log; ids count from 1."""
    return [
        (producer_id - BEFORE_FIRST, *rest)
        for producer_id, *rest in stamped(brokers.logs["orders", partition])
    ]


def identities(brokers, partition=0):
    """Producer id and epoch of each batch in the log."""
    return [stamp[:2] for stamp in stamps(brokers, partition)]


def test_whoever_has_no_transactional_id_names_none(brokers, write):
    """To a broker an empty one is none that there can be."""
    write(1)
    (request,) = brokers.asked("InitProducerId")
    assert request.transactional_id is None


@pytest.mark.slow
def test_the_next_producer_goes_on_with_the_id_in_the_next_epoch(brokers, write):
    for n in range(3):
        write(n, n)
    write(0, partition=1)
    write(3, 3)
    assert stamps(brokers) == [(1, 0, 0), (1, 1, 0), (1, 2, 0), (1, 4, 0)]
    assert stamps(brokers, 1) == [(1, 3, 0)]
    assert values(brokers.logs["orders", 0]) == [b"%d" % (n // 2) for n in range(8)]
    assert len(brokers.asked("InitProducerId")) == 1


def test_what_is_closed_twice_is_kept_once(brokers, make, write):
    with make() as producer:
        producer.send([ProducerRecord("a", partition=0)])
        producer.close()
    with make() as producer:
        producer.send([ProducerRecord("b", partition=0)])
        producer.flush()
        write("c")
    assert identities(brokers) == [(1, 0), (1, 1), (2, 0)]


@pytest.mark.slow
def test_two_at_a_time_have_an_id_each(brokers, make, write):
    with make() as first:
        first.send([ProducerRecord("a", partition=0)])
        first.flush()
        write("b")
    with make() as first:
        first.send([ProducerRecord("c", partition=0)])
        first.flush()
        write("d")
    assert identities(brokers) == [(1, 0), (2, 0), (2, 1), (1, 1)]
    assert len(brokers.asked("InitProducerId")) == 2


@pytest.mark.slow
def test_a_producer_that_failed_or_was_abandoned_keeps_its_id_from_others(brokers, make, write):
    brokers.on("Produce", refusing(TOPIC_AUTHORIZATION_FAILED), DEFAULT)
    with pytest.raises(BrokerError):
        write("refused")
    given_up = make()
    given_up.send([ProducerRecord("never waited for", partition=1)])
    given_up.abandon()
    with suppress(ZeroDivisionError), make() as interrupted:
        interrupted.send([ProducerRecord("open", partition=1)])
        raise ZeroDivisionError
    write("b")
    assert identities(brokers) == [(4, 0)]


@pytest.mark.slow
def test_the_last_epoch_that_was_written_under_counts(brokers, write):
    brokers.on("Produce", refusing(UNKNOWN_PRODUCER_ID), DEFAULT)
    write("a")
    write("b")
    assert identities(brokers) == [(1, 1), (1, 2)]


def test_an_id_that_somebody_else_has_too_is_not_kept(brokers, make, write):
    brokers.on("Produce", DEFAULT, refusing(INVALID_PRODUCER_EPOCH), DEFAULT)
    with make() as producer:
        for partition in (0, 1):
            producer.send([ProducerRecord("a", partition=partition)])
            producer.flush()
    write("b")
    assert identities(brokers, 1) == [(2, 0)]
    assert identities(brokers) == [(1, 0), (3, 0)]


@pytest.mark.slow
def test_used_up_epochs_end_an_id(brokers, write):
    write("a")
    home, kept = identity._kept.pop()
    identity._kept.append((home, kept._replace(epoch=2**15 - 2)))
    write("b")
    write("c")
    assert identities(brokers) == [(1, 0), (1, 2**15 - 1), (2, 0)]


def test_behind_the_last_epoch_a_new_id_is_taken(monkeypatch):
    """A batch has two bytes for it."""
    monkeypatch.setattr(identity, "new_identity", lambda _: Identity(8, 0))
    error = BrokerError(UNKNOWN_PRODUCER_ID, "Produce", "orders-0")
    last, one_before = (Identity(7, 2**15 - back) for back in (1, 2))
    assert identity.next_identity(None, one_before, error) == last
    assert identity.next_identity(None, last, error) == Identity(8, 0)


def test_other_configurations_and_clusters_have_their_own(brokers, write):
    write("a")
    write("b", client_id="somebody else")

    def made_anew(call):
        fields = {name: getattr(metadata(brokers, call), name) for name in ("brokers", "topics")}
        return MetadataResponse(cluster_id="another", controller_id=1, **fields)

    brokers.on("Metadata", made_anew)
    write("c")
    assert identities(brokers) == [(1, 0), (2, 0), (3, 0)]


def test_what_needs_no_id_takes_none(brokers, write):
    write("a")
    write("b", enable_idempotence="false")
    write("c", acks="0")
    brokers.wait_for_call("Produce", 3)  # what nobody answers may come later than the next one
    write("d")
    assert len(brokers.asked("InitProducerId")) == 1
    assert identities(brokers)[0] == (1, 0)
    assert identities(brokers)[-1] == (1, 1)


@pytest.mark.slow
def test_no_more_than_some_are_kept(brokers, make, monkeypatch):
    most = identity._kept.maxlen
    producers = [make() for _ in range(most + 2)]
    for producer in producers:
        producer.send([ProducerRecord("a", partition=0)])
        producer.flush()
    for producer in producers:
        producer.close()
    assert len(identity._kept) == most


@pytest.mark.slow
def test_a_child_process_takes_none_of_its_parents(brokers, make, write):
    write("parent")
    with make() as inherited:
        inherited.send([ProducerRecord("parent", partition=0)])
        inherited.flush()
        write("parent")
        child = fork()
        if child == 0:
            try:
                inherited.close()  # the child's copy: the id is the parent's
                write("child")
                write("child")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    write("parent")
    used = list(zip(values(brokers.logs["orders", 0]), identities(brokers), strict=True))
    assert [who for who, _ in used] == [b"parent"] * 3 + [b"child"] * 2 + [b"parent"]
    assert [each for _, each in used] == [(1, 0), (1, 1), (2, 0), (3, 0), (3, 1), (2, 1)]

"""A producer's transactions: what is asked of whom, in which order, in both versions."""

import contextlib
import threading
import time
from itertools import count

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client import ProducerRecord, alone
from pyspark_kafkaproto.client import produce as produce_module
from pyspark_kafkaproto.client import transactions as transactions_module
from pyspark_kafkaproto.client.writing import coalescing, compressing, gathering, sending
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.refusals import REASON_HEADER, RecordRefused
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.cluster import transactions as coordination
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages import add_offsets_to_txn, add_partitions_to_txn, txn_offset_commit
from pyspark_kafkaproto.messages.describe_transactions import DescribeTransactionsResponse
from pyspark_kafkaproto.messages.end_txn import EndTxnResponse
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.records import compression
from tests.examples import first
from tests.fake_broker import DEFAULT, STALL, close
from tests.fake_produce import come_up_again, produce, refusing, stamped, values
from tests.fake_sessions import with_values
from tests.interrupted import Interrupted
from tests.unit.client.faults import while_others_are_sent
from tests.unit.client.willing import (
    added,
    be_willing,
    next_epoch,
    offsets_committed,
    versions,
)

ONE = TopicPartition("orders", 0)
ROWS = [ProducerRecord("a", partition=0), ProducerRecord("b", partition=1)]
_NOT_ATTEMPTED, _NOT_ALLOWED, _LOADING = 55, 29, 14
_NO_SUCH_ID, _ABORTABLE = 105, 120
_NO_SUCH_TOPIC = 3
_NO_SUCH_PRODUCER = 49
_NOT_LEADER, _TOO_LARGE, _CONCURRENT_TRANSACTIONS, _INVALID_RECORD = 6, 10, 51, 87


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def level(request, brokers):
    """The version of transactions at the fake brokers, which are willing."""
    be_willing(brokers, request.param)
    brokers.versions.pop("DescribeTransactions")  # who has the id now is a test's own question
    return request.param


def asked(brokers):
    """The APIs of what was asked, without the looking up."""
    found = [call.api for call in brokers.calls]
    return [name for name in found if name not in {"ApiVersions", "Metadata", "FindCoordinator"}]


@pytest.mark.usefixtures("level")
def test_a_child_process_ends_no_transaction_of_its_parents(brokers, producer, monkeypatch):
    writer = producer(transactional_id="t")
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        for end in (writer.abort_transaction, writer.commit_transaction, writer.leave_transaction):
            with pytest.raises(LocalProtocolError, match="make one in each process"):
                end()
        writer.close()
        writer.__exit__(ValueError, ValueError(), None)
    assert not brokers.asked("EndTxn")


@pytest.mark.usefixtures("level")
def test_a_producer_that_was_closed_is_not_told_to_begin_a_transaction(producer):
    writer = producer(transactional_id="t")
    writer.begin_transaction()
    writer.close()
    for use in (
        writer.begin_transaction,
        lambda: writer.send(ROWS),
        lambda: writer.send_offsets_to_transaction({ONE: 1}, "g"),
        writer.commit_transaction,
    ):
        with pytest.raises(LocalProtocolError, match="it was closed: make a new one"):
            use()


@pytest.mark.usefixtures("level")
def test_what_is_being_compressed_is_given_up_with_its_transaction(brokers, producer, monkeypatch):
    monkeypatch.setattr(compressing, "compressing_threads", lambda _: 2)
    go_on, compress = threading.Event(), compression.compress

    def wait(codec, data, level=None):
        assert go_on.wait(10)
        return compress(codec, data, level)

    monkeypatch.setattr(compression, "compress", wait)
    writer = producer(batch_size=50_000, compression_type="lz4", transactional_id="t")
    for start in (0, 4):
        writer.begin_transaction()
        numbered = range(start, start + 4)
        writer.send([ProducerRecord(f"{n} " + "x" * 40_000, partition=0) for n in numbered])
        if start == 0:
            writer.abort_transaction()
            go_on.set()
    writer.commit_transaction()
    written = [value.split()[0] for value in values(brokers.logs["orders", 0])]
    assert written == [b"4", b"5", b"6", b"7"]


def test_what_is_announced_and_what_is_not(brokers, producer, level):
    writer = producer(transactional_id="mine", transaction_timeout_ms=7000)
    for _ in range(2):
        writer.begin_transaction()
        writer.send(ROWS)
        writer.send_offsets_to_transaction({ONE: 17}, "group")
        writer.commit_transaction()
    one = ["TxnOffsetCommit", "Produce", "EndTxn"]
    if level == 1:
        one = ["AddPartitionsToTxn", "AddOffsetsToTxn", *one]
    once = sorted(one)
    calls = asked(brokers)
    assert calls[0] == "InitProducerId"
    assert [sorted(calls[1 : 1 + len(one)]), sorted(calls[1 + len(one) :])] == [once, once]
    (init,) = brokers.asked("InitProducerId")
    assert (init.transactional_id, init.transaction_timeout_ms) == ("mine", 7000)
    epochs = [request.producer_epoch for request in brokers.asked("EndTxn")]
    assert epochs == ([0, 0] if level == 1 else [0, 1])
    assert all(request.transactional_id == "mine" for request in brokers.asked("Produce"))
    highest = max(call.header.api_version for call in brokers.calls if call.api == "Produce")
    assert highest == 11 if level == 1 else highest >= 12


def test_an_offset_is_committed_with_the_epoch_and_text_that_are_given(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    other = TopicPartition("orders", 1)
    offsets = {ONE: CommittedOffset(17, "by me", 3), other: 18}
    writer.send_offsets_to_transaction(offsets, "group")
    (request,) = brokers.asked("TxnOffsetCommit")
    sent = [
        (item.committed_offset, item.committed_metadata, item.committed_leader_epoch)
        for item in request.topics[0].partitions
    ]
    assert sent == [(17, "by me", 3), (18, "", -1)]


def test_all_that_is_asked_says_whose_transaction_and_offsets_they_are(brokers, producer, level):
    """By the epoch coordinators fence, by the rest a group refuses who is no member any more."""
    brokers.on("InitProducerId", InitProducerIdResponse(producer_id=7, producer_epoch=3))
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    writer.send_offsets_to_transaction({ONE: 17}, "group", GroupMember("m", 5, "static"))
    writer.commit_transaction()
    for api in ("AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")[level - 1 :]:
        (request,) = brokers.asked(api)
        who = (request.transactional_id, request.producer_id, request.producer_epoch)
        assert who == ("mine", 7, 3), api
    (offsets,) = brokers.asked("TxnOffsetCommit")
    assert (offsets.group_id, offsets.member_id, offsets.group_instance_id) == (
        "group", "m", "static",
    )  # fmt: skip
    assert offsets.generation_id_or_member_epoch == 5
    # From version 5 on brokers announce the group themselves, which nobody else does in version 2.
    (call,) = (call for call in brokers.calls if call.api == "TxnOffsetCommit")
    assert call.header.api_version == (4 if level == 1 else 5)
    if level == 1:
        (partitions,) = brokers.asked("AddPartitionsToTxn")
        assert (
            partitions.v3_and_below_transactional_id,
            partitions.v3_and_below_producer_id,
            partitions.v3_and_below_producer_epoch,
        ) == ("mine", 7, 3)
        assert [request.group_id for request in brokers.asked("AddOffsetsToTxn")] == ["group"]


def test_a_transaction_of_offsets_alone_is_ended(brokers, producer, level):
    writer = producer(transactional_id="mine")
    for is_commit in (True, False):
        writer.begin_transaction()
        writer.send_offsets_to_transaction({ONE: 17}, "group")
        (writer.commit_transaction if is_commit else writer.abort_transaction)()
    assert [request.committed for request in brokers.asked("EndTxn")] == [True, False]
    assert len(brokers.asked("AddOffsetsToTxn")) == (2 if level == 1 else 0)


def test_offsets_are_taken_as_a_commit_takes_them(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    with pytest.raises(ConfigError, match=r"offset of orders-0.* is -1"):
        writer.send_offsets_to_transaction({("orders", 0): -1}, "group")
    with pytest.raises(ConfigError, match=r"'group' is GroupMember.*behind it its member"):
        writer.send_offsets_to_transaction({ONE: 17}, GroupMember("m", 1))  # as others have it
    with pytest.raises(ConfigError, match=r"'member' is 'm'.*Consumer\.group_member"):
        writer.send_offsets_to_transaction({ONE: 17}, "group", "m")
    writer.send_offsets_to_transaction({("orders", 0): 17}, "group")
    writer.commit_transaction()
    (request,) = brokers.asked("TxnOffsetCommit")
    assert request.topics[0].partitions[0].committed_offset == 17


@pytest.mark.parametrize("code", [22, 25, 82])
def test_offsets_of_who_is_no_member_any_more_say_whose_and_leave_an_abort(
    brokers, producer, level, code
):
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    brokers.on("TxnOffsetCommit", refused_by("TxnOffsetCommit", code), offsets_committed)
    with pytest.raises(BrokerError, match=r"member 'm': (the group has shared|another member has)"):
        writer.send_offsets_to_transaction({ONE: 17}, "group", GroupMember("m", 1))
    with pytest.raises(LocalProtocolError, match="abort_transaction, and begin another"):
        writer.send(ROWS)
    writer.abort_transaction()
    whole_transaction(writer)


def test_a_transaction_stays_open_for_kafkas_minute(brokers, producer, level):
    """Who dies in one holds up for so long whoever goes on from its offsets."""
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.abort_transaction()
    (init,) = brokers.asked("InitProducerId")
    assert init.transaction_timeout_ms == 60_000


def test_the_next_transaction_goes_to_the_leaders_that_this_one_found(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine")
    for number in range(3):
        writer.begin_transaction()
        writer.send([ProducerRecord(f"{number}", partition=0)])
        writer.commit_transaction()
        if number == 0:
            brokers.topics["orders"].move(0, 2)
            brokers.topics["orders"].topic_id = bytes(16 * [7])
    assert len(brokers.asked("Produce", node=1)) == 2
    (queue,) = writer._targets.queues()
    assert (queue.leader.node_id, queue.topic_id) == (2, bytes(16 * [7]))
    assert values(brokers.logs["orders", 0]) == [b"0", b"1", b"2"]


@pytest.mark.usefixtures("level", "known_at_once")
def test_after_an_error_the_next_transaction_looks_its_topics_up(brokers, producer, monkeypatch):
    """One that was deleted, and made again with fewer partitions, is another one."""
    monkeypatch.setattr(sending, "_FOUND_BEFORE_S", 0)
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    writer.commit_transaction()
    brokers.make_again("orders")
    brokers.on("Produce", refusing(_NO_SUCH_TOPIC))
    writer.begin_transaction()
    writer.send(ROWS)
    with pytest.raises(KafkaProtoError):
        writer.commit_transaction()
    writer.abort_transaction()
    brokers.on("Produce", DEFAULT)
    writer.begin_transaction()
    writer.send([ProducerRecord(str(n), key=str(n)) for n in range(20)])
    (written,) = writer.commit_transaction().values()
    assert written.records == 20


def test_an_end_of_unknown_outcome_is_repeated_unchanged(brokers, producer, level):
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", close(), close(), _END[level])
    writer.commit_transaction()
    first, *others = brokers.asked("EndTxn")
    assert others == [first, first]
    assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.parametrize("successor", [(1001, 1), (1002, 0), None])
def test_who_has_aborted_does_not_take_the_id_back_from_his_successor(
    brokers, producer, level, successor
):
    """In version 1 the next transaction begins with an epoch that is asked for."""
    state = DescribeTransactionsResponse.TransactionState
    who = dict(zip(("producer_id", "producer_epoch"), successor or (1001, 0), strict=True))
    found = state(transactional_id="mine", transaction_state="Ongoing", **who)
    brokers.versions["DescribeTransactions"] = (0, 0)
    brokers.on("DescribeTransactions", DescribeTransactionsResponse(transaction_states=(found,)))
    writer = known(producer(transactional_id="mine"))
    writer.abort_transaction()
    if level == 1 and successor:
        with pytest.raises(BrokerError, match=_TAKEN_OVER):
            writer.begin_transaction()
        with pytest.raises(LocalProtocolError, match=f"{_TAKEN_OVER}.*make a new one"):
            writer.abort_transaction()
    else:
        writer.begin_transaction()
    begun = [(item.producer_id, item.producer_epoch) for item in brokers.asked("InitProducerId")]
    assert begun == [(-1, -1), (1001, 0)][: 2 if level == 1 and not successor else 1]


@pytest.mark.parametrize("level", [2], indirect=True)
@pytest.mark.parametrize("ends_with_abort", [True, False])
@pytest.mark.parametrize(
    ("found", "is_ours"),
    [((1001, 0), True), ((1001, 1), True), ((1001, 2), False), ((1002, 0), False)],
)
def test_who_commits_while_he_is_fenced_does_not_take_the_id_back(
    brokers, producer, level, found, is_ours, ends_with_abort
):
    """Until its successor has the id he hears what he hears of a time-out: that it was aborted.

    The abort takes an epoch, and the successor the one after it.
    """
    del level
    who = dict(zip(("producer_id", "producer_epoch"), found, strict=True))
    state = DescribeTransactionsResponse.TransactionState(
        transactional_id="mine", transaction_state="CompleteAbort", **who
    )
    brokers.versions["DescribeTransactions"] = (0, 0)
    brokers.on("DescribeTransactions", DescribeTransactionsResponse(transaction_states=(state,)))
    brokers.on("EndTxn", EndTxnResponse(error_code=48))
    writer = known(producer(transactional_id="mine"))
    with pytest.raises(BrokerError, match="was ended the other way"):
        writer.commit_transaction()
    if ends_with_abort:
        writer.abort_transaction()
    if is_ours:
        writer.begin_transaction()
        assert brokers.asked("InitProducerId")[-1].producer_epoch == found[1]
    else:
        with pytest.raises(BrokerError, match=_TAKEN_OVER):
            writer.begin_transaction()
        assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.parametrize("level", [1], indirect=True)
def test_an_id_that_its_coordinator_has_forgotten_is_begun_with_again(brokers, producer, level):
    """Nobody used it for transactional.id.expiration.ms: there is nobody to take it back from."""
    del level
    state = DescribeTransactionsResponse.TransactionState
    forgotten = state(transactional_id="mine", error_code=_NO_SUCH_ID)
    brokers.versions["DescribeTransactions"] = (0, 0)
    brokers.on(
        "DescribeTransactions", DescribeTransactionsResponse(transaction_states=(forgotten,))
    )
    writer = known(producer(transactional_id="mine"))
    writer.abort_transaction()
    writer.begin_transaction()
    assert len(brokers.asked("DescribeTransactions")) == 1
    assert [item.producer_id for item in brokers.asked("InitProducerId")] == [-1, 1001]


def who_has(brokers, **found):
    """Have the coordinator tell of the id, and know nothing of who ends a transaction with it."""
    state = DescribeTransactionsResponse.TransactionState(transactional_id="mine", **found)
    brokers.versions["DescribeTransactions"] = (0, 0)
    brokers.on("DescribeTransactions", DescribeTransactionsResponse(transaction_states=(state,)))
    brokers.on("EndTxn", EndTxnResponse(error_code=_NO_SUCH_PRODUCER))


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_once_the_id_is_forgotten_the_next_transaction_begins(brokers, producer, level, end):
    """Nobody used it for transactional.id.expiration.ms."""
    who_has(brokers, error_code=_NO_SUCH_ID)
    writer = known(producer(transactional_id="mine"))
    with contextlib.suppress(BrokerError):  # which nothing but the commit raises
        getattr(writer, end)()
    brokers.on("EndTxn", _END[level])
    writer.begin_transaction()
    writer.send(ROWS)
    written = writer.commit_transaction()
    assert sum(item.records for item in written.values()) == len(ROWS)
    assert [item.producer_id for item in brokers.asked("InitProducerId")] == [-1, 1001]


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_an_id_that_was_forgotten_is_not_taken_back_from_a_successor(brokers, producer, level, end):
    """As is one whose epochs were used up meanwhile: its next owner has another producer id."""
    del level
    who_has(brokers, transaction_state="Ongoing", producer_id=1002)
    writer = known(producer(transactional_id="mine"))
    with contextlib.suppress(BrokerError):
        getattr(writer, end)()
    with pytest.raises(BrokerError, match=_TAKEN_OVER):
        writer.begin_transaction()
    with pytest.raises(LocalProtocolError, match=f"{_TAKEN_OVER}.*make a new one"):
        writer.abort_transaction()
    assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.parametrize("level", [1], indirect=True)
def test_what_was_begun_without_an_answer_is_aborted_before_the_next_begin(
    brokers, producer, level, clock
):
    """Brokers refuse the epoch after one that has something open: they fence it to abort that."""
    del level, clock
    state = DescribeTransactionsResponse.TransactionState
    found = state(transactional_id="mine", transaction_state="Ongoing", producer_id=1001)
    brokers.versions["DescribeTransactions"] = (0, 0)
    brokers.on("DescribeTransactions", DescribeTransactionsResponse(transaction_states=(found,)))
    brokers.on("AddOffsetsToTxn", close())
    writer = producer(transactional_id="mine", default_api_timeout_ms=1000)
    writer.begin_transaction()
    with pytest.raises(KafkaProtoError):
        writer.send_offsets_to_transaction({ONE: 10}, "group")
    writer.abort_transaction()
    assert not brokers.asked("EndTxn")
    writer.begin_transaction()
    ends = [name for name in asked(brokers) if name in {"EndTxn", "InitProducerId"}]
    assert ends == ["InitProducerId", "EndTxn", "InitProducerId"]
    assert [item.committed for item in brokers.asked("EndTxn")] == [False]


@pytest.mark.parametrize("level", [1], indirect=True)
def test_all_that_a_begin_asks_has_the_time_of_one_call(brokers, producer, level, clock):
    del level
    brokers.versions["DescribeTransactions"] = (0, 0)
    writer = known(producer(transactional_id="mine"))
    writer.abort_transaction()
    state = DescribeTransactionsResponse.TransactionState
    found = state(transactional_id="mine", transaction_state="Ongoing", producer_id=1001)

    def describe(_):
        clock.sleep(20)
        return DescribeTransactionsResponse(transaction_states=(found,))

    brokers.on("DescribeTransactions", describe)
    brokers.on("EndTxn", EndTxnResponse(error_code=_LOADING))
    began = clock.now
    with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        writer.begin_transaction()
    assert 55 < clock.now - began <= 61, "default.api.timeout.ms is 60 s"


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_all_that_an_end_asks_has_the_time_of_one_call(brokers, producer, level, clock, end):
    """Of which version transactions are is asked for first, by a connection that may be new."""
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    told = versions(brokers, level)

    def tell_slowly(call):
        clock.sleep(8)
        return told(call)

    brokers.on("ApiVersions", tell_slowly, told)
    brokers.on("EndTxn", EndTxnResponse(error_code=_LOADING))
    brokers.hang_up()
    brokers.wait_until_left()
    began = clock.now
    with pytest.raises(KafkaProtoError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        getattr(writer, end)()
    assert 55 < clock.now - began <= 61, "default.api.timeout.ms is 60 s"


@pytest.mark.parametrize("level", [1], indirect=True)
def test_offsets_are_announced_and_committed_in_the_time_of_one_call(
    brokers, producer, level, clock
):
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()

    def announced(_):
        clock.sleep(20)
        return add_offsets_to_txn.AddOffsetsToTxnResponse()

    brokers.on("AddOffsetsToTxn", announced)
    brokers.on("TxnOffsetCommit", refused_by("TxnOffsetCommit", _LOADING))
    began = clock.now
    with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        writer.send_offsets_to_transaction({ONE: 5}, "readers")
    assert 55 < clock.now - began <= 61, "default.api.timeout.ms is 60 s"


@pytest.mark.parametrize("level", [1], indirect=True)
def test_an_old_broker_is_not_told_whom_a_new_epoch_follows(brokers, producer, level):
    """InitProducerId names him from version 3 on."""
    del level
    brokers.versions["InitProducerId"] = (0, 2)
    writer = known(producer(transactional_id="mine"))
    writer.abort_transaction()
    writer.begin_transaction()
    assert [item.producer_id for item in brokers.asked("InitProducerId")] == [-1, -1]


def lose_first_end(brokers, writer, answer, is_another_call):
    """The answer to the first EndTxn is lost: of an earlier commit, or of the one that comes."""
    answers = [answer]
    if is_another_call:
        brokers.on("EndTxn", close())
        with pytest.raises(KafkaProtoError):
            writer.commit_transaction(within_s=0.2)
    else:
        answers.insert(0, close())
    brokers.on("EndTxn", *answers)


@pytest.mark.parametrize("is_another_call", [True, False])
def test_an_end_that_comes_late_does_not_end_the_next_transaction(
    brokers, producer, level, is_another_call
):
    """In version 1 that one would have the epoch of the end which nobody answered."""
    writer = known(producer(transactional_id="mine"))
    lose_first_end(brokers, writer, _END[level], is_another_call)
    writer.commit_transaction()
    for _ in range(3):  # of which none was asked for twice
        writer.begin_transaction()
        writer.send(ROWS)
        writer.commit_transaction()
    begun = [(item.producer_id, item.producer_epoch) for item in brokers.asked("InitProducerId")]
    assert begun == [(-1, -1), (1001, 0)][: 2 if level == 1 else 1]
    assert len({item[1:3] for item in numbers_of(brokers)}) == (2 if level == 1 else 4)


def test_offsets_that_come_late_are_not_committed_with_the_next_transaction(
    brokers, producer, level
):
    """In version 1 that one would have the epoch of those, and the group would go back to them."""
    brokers.on("InitProducerId", _identity_of(0), _identity_of(1))
    writer = known(producer(transactional_id="mine"))
    brokers.on("TxnOffsetCommit", close(), offsets_committed)
    for offset in (10, 20, 30):
        writer.send_offsets_to_transaction({ONE: offset}, "group")
        writer.commit_transaction()
        writer.begin_transaction()
    late, again, *others = (item.producer_epoch for item in brokers.asked("TxnOffsetCommit"))
    assert late == again
    assert late not in others
    assert len(brokers.asked("InitProducerId")) == (2 if level == 1 else 1)


def test_offsets_that_come_late_are_not_put_over_later_ones(brokers, producer, level):
    del level
    writer = known(producer(transactional_id="mine"))
    brokers.on("TxnOffsetCommit", close(), offsets_committed)
    writer.send_offsets_to_transaction({ONE: 10}, "group")
    writer.send_offsets_to_transaction({ONE: 10}, "another")
    writer.send_offsets_to_transaction({TopicPartition("orders", 1): 10}, "group")
    with pytest.raises(LocalProtocolError, match=r"offset 20 of group 'group' for orders-0: .*la"):
        writer.send_offsets_to_transaction({ONE: 20}, "group")
    writer.abort_transaction()
    writer.begin_transaction()
    writer.send_offsets_to_transaction({ONE: 20}, "group")
    writer.commit_transaction()


def test_offsets_that_nobody_was_asked_for_do_not_come_late(brokers, producer, level):
    """A coordinator that hangs up as it is connected to has not got them."""
    del level
    writer = known(producer(transactional_id="mine"))
    brokers.coordinators["group"] = 2
    brokers.on("ApiVersions", close(), DEFAULT, node=2)
    for offset in (10, 20):
        writer.send_offsets_to_transaction({ONE: offset}, "group")
    writer.commit_transaction()
    assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("AddPartitionsToTxn", added()),
        ("AddOffsetsToTxn", add_offsets_to_txn.AddOffsetsToTxnResponse()),
    ],
)
def test_what_is_announced_and_comes_late_does_not_begin_the_next_transaction(
    brokers, producer, level, api, answer
):
    """In version 1 its time would run from then on, and whoever is slow be fenced by its end."""
    brokers.on(api, close(), answer)
    writer = known(producer(transactional_id="mine"))
    for _ in range(3):  # of which none but the first announced anything twice
        writer.send_offsets_to_transaction({ONE: 10}, "group")
        writer.commit_transaction()
        writer.begin_transaction()
    begun = [(item.producer_id, item.producer_epoch) for item in brokers.asked("InitProducerId")]
    assert begun == [(-1, -1), (1001, 0)][: 2 if level == 1 else 1]


def test_rows_that_come_late_do_not_come_before_the_next_transactions(brokers, producer, level):
    """In version 1 a leader that meets them then takes what has the sequences after for a gap."""
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    brokers.on("Produce", close(), DEFAULT)
    for _ in range(3):  # of which none but the first was sent twice
        writer.send(ROWS[:1])
        writer.commit_transaction()
        writer.begin_transaction()
    begun = [(item.producer_id, item.producer_epoch) for item in brokers.asked("InitProducerId")]
    assert begun == [(-1, -1), (1001, 0)][: 2 if level == 1 else 1]


_END = {1: EndTxnResponse(), 2: next_epoch}


@pytest.mark.slow
def test_nothing_but_the_same_end_is_done_until_it_is_answered(brokers, producer, level, clock):
    writer = producer(transactional_id="mine", default_api_timeout_ms=1000)
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", close())
    with pytest.raises(KafkaProtoError):
        writer.commit_transaction()
    for forbidden in (writer.begin_transaction, writer.abort_transaction):
        with pytest.raises(LocalProtocolError, match="call commit_transaction again"):
            forbidden()
    brokers.on("EndTxn", _END[level])
    assert sum(item.records for item in writer.commit_transaction().values()) == len(ROWS)
    writer.begin_transaction()
    writer.send(ROWS)
    assert sum(item.records for item in writer.commit_transaction().values()) == len(ROWS)


def test_an_end_that_failed_within_the_broker_is_asked_for_until_it_is_known(
    brokers, producer, level
):
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", EndTxnResponse(error_code=-1), _END[level])
    assert sum(item.records for item in writer.commit_transaction().values()) == len(ROWS)
    first, second = brokers.asked("EndTxn")
    assert first == second


@pytest.mark.parametrize("level", [2], indirect=True)
@pytest.mark.parametrize("ends", [("abort",), ("commit", "abort"), ("commit", "commit")])
def test_a_cluster_that_goes_back_to_version_1_loses_no_row(brokers, producer, level, ends):
    """Ends raise the epoch no more: under the old one sequences cannot begin anew."""
    del level
    writer = producer(transactional_id="mine")
    brokers.on("InitProducerId", *(_identity_of(epoch) for epoch in range(9)))
    expected = []
    for number, end in enumerate(("commit", *ends, "commit")):
        if number == 1:
            be_willing(brokers, 1)
            brokers.hang_up()
        writer.begin_transaction()
        writer.send([ProducerRecord(f"{number}", partition=0)])
        writer.flush()
        getattr(writer, f"{end}_transaction")()
        expected.append(f"{number}".encode())
    assert values(brokers.logs["orders", 0]) == expected


def _identity_of(epoch):
    return InitProducerIdResponse(producer_id=7, producer_epoch=10 * epoch)


@pytest.mark.parametrize("ends_with_abort", [True, False])
def test_after_a_commit_that_was_denied_the_next_transaction_begins(
    brokers, producer, level, ends_with_abort
):
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", EndTxnResponse(error_code=48))
    with pytest.raises(BrokerError, match=_WHY[48]):
        writer.commit_transaction()
    with pytest.raises(LocalProtocolError, match="could not be ended"):
        writer.commit_transaction()
    if ends_with_abort:
        writer.abort_transaction()
    assert len(brokers.asked("EndTxn")) == 1
    brokers.on("EndTxn", _END[level])
    writer.begin_transaction()
    writer.send(ROWS)
    written = writer.commit_transaction()
    assert sum(item.records for item in written.values()) == len(ROWS)
    assert len(brokers.asked("InitProducerId")) == 2


def test_a_commit_that_leaves_an_abort_is_aborted_at_the_coordinator(brokers, producer, level):
    """TRANSACTION_ABORTABLE (KIP-890): it is open still, and readers would wait for its end."""
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", EndTxnResponse(error_code=120), _END[level])
    with pytest.raises(BrokerError, match=_WHY[120]):
        writer.commit_transaction()
    writer.abort_transaction()
    assert [request.committed for request in brokers.asked("EndTxn")] == [True, False]
    writer.begin_transaction()
    writer.send(ROWS)
    written = writer.commit_transaction()
    assert sum(item.records for item in written.values()) == len(ROWS)


def numbers_of(brokers):
    """Partition, producer id, epoch and first sequence of each batch that the brokers wrote."""
    return [(place, *stamp) for place, log in brokers.logs.items() for stamp in stamped(log)]


@pytest.mark.parametrize("flushed", [[], [b"flushed"]], ids=["nothing sent", "sent"])
def test_what_was_aborted_is_never_sent_again(brokers, producer, level, flushed):
    del level
    writer = producer(transactional_id="mine")
    for _ in range(2):
        writer.begin_transaction()
        writer.send([ProducerRecord(value, partition=0) for value in flushed])
        writer.flush()
        writer.send([ProducerRecord("given up", partition=0)])
        writer.abort_transaction()
        before = asked(brokers)
        assert writer.flush() == {}
        assert asked(brokers) == before
        writer.begin_transaction()
        writer.send([ProducerRecord("good", partition=0)])
        assert writer.commit_transaction()[ONE].records == 1
    assert values(brokers.logs["orders", 0]) == [*flushed, b"good"] * 2
    assert len(set(numbers_of(brokers))) == len(numbers_of(brokers))


@pytest.mark.slow
def test_what_an_abort_of_unknown_outcome_gave_up_is_never_sent_again(
    brokers, producer, level, clock
):
    writer = producer(transactional_id="mine", default_api_timeout_ms=1000)
    writer.begin_transaction()
    writer.send([ProducerRecord("flushed", partition=0)])
    writer.flush()
    writer.send([ProducerRecord("given up", partition=0)])
    brokers.on("EndTxn", close())
    with pytest.raises(KafkaProtoError):
        writer.abort_transaction()
    assert writer.flush() == {}
    brokers.on("EndTxn", _END[level])
    writer.abort_transaction()
    writer.begin_transaction()
    assert writer.flush() == {}
    writer.send([ProducerRecord("good", partition=0)])
    assert writer.commit_transaction()[ONE].records == 1
    assert values(brokers.logs["orders", 0]) == [b"flushed", b"good"]


def test_dead_letters_of_what_was_aborted_are_given_up_too(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine", dead_letter_topic="many", max_request_size=3000)
    writer.begin_transaction()
    writer.send([ProducerRecord("x" * 4000, partition=0)])
    writer.abort_transaction()
    assert writer.flush() == {}
    writer.begin_transaction()
    assert writer.commit_transaction() == {}
    assert brokers.asked("Produce") == []


def test_dead_letters_of_what_a_broker_refused_are_given_up_with_an_abort(brokers, producer, level):
    """Those that were not sent yet, as the same answer ended the transaction."""
    del level
    writer = known(producer(transactional_id="mine", dead_letter_topic="many"))
    bad = ProduceResponse.Topic.Partition.RecordError(batch_index=0)

    def answer(call):
        (first,) = refusing(_INVALID_RECORD, 0, record_errors=(bad,))(call).responses
        (second,) = refusing(_NOT_ALLOWED, 1)(call).responses
        both = (*first.partition_responses, *second.partition_responses)
        topic = with_values(first, partition_responses=both)
        return ProduceResponse(responses=(topic,))

    brokers.on("Produce", answer, DEFAULT)
    writer.send([ProducerRecord("bad", partition=0), ProducerRecord("refused", partition=1)])
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        writer.flush()
    assert writer.dead_letters == 1
    writer.abort_transaction()
    writer.begin_transaction()
    assert writer.commit_transaction() == {}
    assert all(not log.batches for (topic, _), log in brokers.logs.items() if topic == "many")


def known(writer):
    """`writer` in a transaction, known to the broker: it sends several batches at once."""
    writer.begin_transaction()
    writer.send(ROWS[:1])
    writer.flush()
    return writer


def once_rows_fell_out(writer, fault):
    """`fault`, once the refusal was read: a connection that ends may take it along."""

    def answer(call):
        del call
        deadline = Deadline.after(10)
        while not any(queue.sequences.is_shortened for queue in writer._targets.queues()):
            deadline.check("waiting for the refusal to be read")
            time.sleep(0.001)
        return fault

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("is_lost_first", [False, True])
def test_rows_that_fall_out_while_others_may_still_come_end_the_transaction(
    brokers, producer, level, is_lost_first
):
    """What a lost connection still brings could fit the sequences that are given anew."""
    del level
    writer = known(producer(transactional_id="mine", dead_letter_topic="many", batch_size=100))
    bad = ProduceResponse.Topic.Partition.RecordError(batch_index=0)
    refused, lost = refusing(_INVALID_RECORD, record_errors=(bad,)), close()
    fault, then = (lost, refused) if is_lost_first else (refused, once_rows_fell_out(writer, lost))
    brokers.on("Produce", while_others_are_sent(writer, fault), then, DEFAULT)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(40)])
    with pytest.raises(LocalProtocolError, match=r"orders-0, .*may still be written.*abort"):
        writer.flush()
    writer.abort_transaction()
    assert values(brokers.logs["orders", 0]) == [b"a"]


def test_a_row_that_may_be_written_and_is_put_aside_ends_the_transaction(brokers, producer, level):
    """The next one with its sequence would be taken for it."""
    del level
    writer = known(producer(transactional_id="mine", dead_letter_topic="many"))
    brokers.on("Produce", close(), refusing(_INVALID_RECORD), DEFAULT)
    writer.send(ROWS[:1])
    with pytest.raises(LocalProtocolError, match=r"orders-0, row 1 .*may still be written.*abort"):
        writer.flush()
    writer.abort_transaction()


def test_a_row_that_had_to_wait_for_the_last_transactions_end_is_put_aside(
    brokers, producer, level
):
    """Version 2: a leader asks the coordinator before it appends, and says that one is busy."""
    del level
    writer = known(producer(transactional_id="mine", dead_letter_topic="many"))
    busy = refusing(_CONCURRENT_TRANSACTIONS)
    brokers.on("Produce", busy, refusing(_INVALID_RECORD), DEFAULT)
    writer.send(ROWS[:1])
    writer.commit_transaction()
    assert writer.dead_letters == 1


@pytest.mark.slow
def test_a_part_that_is_written_shows_that_the_whole_is_not(brokers, producer, level):
    """What is left of that can be put aside then, and the transaction goes on."""
    del level
    writer = known(producer(transactional_id="mine", dead_letter_topic="many"))
    refuse = refusing(_TOO_LARGE)

    def answer(call):
        topics = call.request.topic_data
        data = b"".join(bytes(item.records) for topic in topics for item in topic.partition_data)
        is_letter = REASON_HEADER.encode() in data
        return produce(brokers, call) if is_letter or b"bad" not in data else refuse(call)

    brokers.on("Produce", close(), answer)
    writer.send([ProducerRecord(text, partition=0) for text in ("good", "bad", "better")])
    writer.commit_transaction()
    assert values(brokers.logs["orders", 0]) == [b"a", b"good", b"better"]


@pytest.mark.usefixtures("level")
def test_a_leader_that_came_up_again_ends_no_transaction(brokers, producer):
    """It has all that was sent, and knows the last batch alone."""
    log = brokers.logs["orders", 0]
    writer = producer(transactional_id="t", batch_size=100)
    writer.begin_transaction()
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()

    def unheard(call):
        produce(brokers, call)
        return refusing(_NOT_LEADER)(call)

    def up_again(call):
        come_up_again(log)
        return produce(brokers, call)

    first_of_all = while_others_are_sent(writer, unheard)
    brokers.on("Produce", first_of_all, unheard, unheard, unheard, up_again, DEFAULT)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, 17)])
    written = writer.commit_transaction()[ONE]
    # Of those before the last batch nobody knows their offsets.
    assert (written.records, written.first_offset, written.last_offset) == (16, -1, 16)
    assert values(log) == [f"{n}".encode() for n in range(17)]


@pytest.mark.slow
@pytest.mark.parametrize("is_lost_first", [False, True])
def test_a_batch_that_is_split_while_others_may_still_come_ends_nothing(
    brokers, producer, level, is_lost_first
):
    """No row fell out of it: what is behind it keeps its sequences."""
    del level
    writer = known(producer(transactional_id="mine", batch_size=100))
    too_large, lost = refusing(_TOO_LARGE), close()
    fault, then = (lost, too_large) if is_lost_first else (too_large, lost)
    brokers.on("Produce", while_others_are_sent(writer, fault), then, DEFAULT)
    rows = [f"{n}" for n in range(40)]
    writer.send([ProducerRecord(row, partition=0) for row in rows])
    writer.commit_transaction()
    assert values(brokers.logs["orders", 0]) == [b"a", *(row.encode() for row in rows)]
    assert len(set(numbers_of(brokers))) == len(numbers_of(brokers))


@pytest.mark.slow
def test_rows_that_fall_out_behind_an_election_end_nothing(brokers, producer, level):
    """What a broker has answered does not come any more."""
    del level
    writer = known(producer(transactional_id="mine", dead_letter_topic="many", batch_size=100))
    bad = ProduceResponse.Topic.Partition.RecordError(batch_index=0)
    elect, refuse = refusing(_NOT_LEADER), refusing(_INVALID_RECORD, record_errors=(bad,))
    elected, refused = [], []

    def answer(call):
        (topic,) = call.request.topic_data
        data = bytes(topic.partition_data[0].records)
        if topic.name == "orders" and data not in elected:
            elected.append(data)
            return elect(call)
        if not refused:
            refused.append(data)
            return refuse(call)
        return produce(brokers, call)

    brokers.on("Produce", while_others_are_sent(writer, answer), answer)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(40)])
    writer.commit_transaction()
    assert values(brokers.logs["orders", 0]) == [b"a", *(b"%d" % n for n in range(1, 40))]
    assert writer.dead_letters == 1


def test_an_abort_of_nothing_forgets_no_sequences(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine")
    for _ in range(2):
        writer.begin_transaction()
        writer.send(ROWS)
        writer.commit_transaction()
        with pytest.raises(LocalProtocolError):
            writer.abort_transaction()
    assert values(brokers.logs["orders", 0]) == [b"a", b"a"]
    assert len(set(numbers_of(brokers))) == 4


@pytest.mark.parametrize("code", [47, 90])
@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_whoever_was_fenced_never_takes_over_again(brokers, producer, level, code, end):
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    brokers.on("EndTxn", EndTxnResponse(error_code=code))
    with pytest.raises(BrokerError, match=_TAKEN_OVER):
        getattr(writer, end)()
    for later in (writer.begin_transaction, writer.abort_transaction, writer.commit_transaction):
        with pytest.raises(LocalProtocolError, match=f"{_TAKEN_OVER}.*make a new one"):
            later()
    assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.parametrize("is_another_call", [True, False])
@pytest.mark.parametrize("code", [47, 48, 90])
def test_a_commit_that_was_not_answered_may_have_been_done_whatever_is_said_later(
    brokers, producer, level, code, is_another_call
):
    """Another producer takes the id over in between: whoever writes the rows again doubles them."""
    del level
    writer = known(producer(transactional_id="mine"))
    lose_first_end(brokers, writer, EndTxnResponse(error_code=code), is_another_call)
    with pytest.raises(BrokerError, match="may have been committed by an earlier try"):
        writer.commit_transaction()


@pytest.mark.parametrize("code", [47, 48, 90])
def test_a_commit_that_is_refused_at_once_was_not_done(brokers, producer, level, code):
    del level
    writer = known(producer(transactional_id="mine"))
    brokers.on("EndTxn", EndTxnResponse(error_code=code))
    with pytest.raises(BrokerError) as caught:
        writer.commit_transaction()
    assert "earlier try" not in str(caught.value)


@pytest.mark.parametrize("code", [47, 48, 90])
def test_a_commit_that_had_to_wait_for_another_end_was_not_done(brokers, producer, level, code):
    """The coordinator was aborting for a successor: there is nothing to be in doubt about."""
    del level
    writer = known(producer(transactional_id="mine"))
    at_another = EndTxnResponse(error_code=_CONCURRENT_TRANSACTIONS)
    brokers.on("EndTxn", at_another, at_another, EndTxnResponse(error_code=code))
    with pytest.raises(BrokerError) as caught:
        writer.commit_transaction()
    assert len(brokers.asked("EndTxn")) == 3
    assert "earlier try" not in str(caught.value)


@pytest.mark.parametrize("code", [47, 48, 90])
def test_a_commit_whose_first_try_never_left_was_not_done(
    brokers, producer, level, code, monkeypatch
):
    """Its coordinator went away just then, and took no connection."""
    del level
    writer = known(producer(transactional_id="mine"))
    brokers.on("EndTxn", EndTxnResponse(error_code=code))
    is_version_2, connect = coordination.has_version_2, Transport.connect

    def refuse(*_):
        monkeypatch.setattr(Transport, "connect", connect)
        raise ConnectionFailed("a broker", "connect", "nobody listens")

    def told(*args):
        found = is_version_2(*args)
        brokers.hang_up()
        brokers.wait_until_left()
        monkeypatch.setattr(Transport, "connect", refuse)
        return found

    monkeypatch.setattr(coordination, "has_version_2", told)
    with pytest.raises(BrokerError) as caught:
        writer.commit_transaction()
    assert Transport.connect == connect, "it was refused"
    assert len(brokers.asked("EndTxn")) == 1
    assert "earlier try" not in str(caught.value)


def fail_inside(writer, last):
    """Leave a producer with an error, its own of sending `last` or the caller's."""
    with writer:
        writer.begin_transaction()
        writer.send(ROWS)
        writer.flush()
        writer.send(last)
        raise ValueError("the caller's")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "error"), [([], ValueError), ([ProducerRecord("c", partition=7)], KafkaProtoError)]
)
def test_an_error_aborts_what_is_open(brokers, producer, level, last, error):
    del level
    with pytest.raises(error):
        fail_inside(producer(transactional_id="mine"), last)
    (end,) = brokers.asked("EndTxn")
    assert (end.transactional_id, end.committed) == ("mine", False)


def test_an_abort_of_version_1_hears_first_of_what_was_sent(brokers, producer, level):
    """A batch that a leader appends behind the marker would hold readers up for ever."""
    writer = known(producer(transactional_id="mine", linger_ms=0))

    def answer(call):
        time.sleep(0.1)
        return produce(brokers, call)

    brokers.on("Produce", answer)
    writer.send(ROWS)
    brokers.wait_for_call("Produce", 2)
    connected = len(brokers.asked("ApiVersions"))
    writer.abort_transaction()
    writer.begin_transaction()
    writer.send(ROWS)
    writer.commit_transaction()
    # Whoever does not wait for an answer has to hang up.
    assert (len(brokers.asked("ApiVersions")) > connected) == (level == 2)


@pytest.mark.parametrize("level", [1], indirect=True)
def test_an_error_of_the_callers_is_followed_by_no_abort_before_what_was_sent(
    brokers, producer, level
):
    """As an abort that is asked for: a marker before the batch would hold readers up for ever."""
    del level
    writer = known(producer(transactional_id="mine", linger_ms=0))
    unheard = []

    def end(_):
        unheard.extend(request for link in writer._sender._links.values() for request in link.sent)
        return EndTxnResponse()

    brokers.on("EndTxn", end)
    writer.send(ROWS[:1])
    brokers.wait_for_call("Produce", 2)
    assert any(link.sent for link in writer._sender._links.values())
    error = ValueError("the caller's")
    writer.__exit__(ValueError, error, None)
    assert len(brokers.asked("EndTxn")) == 1
    assert unheard == []


def test_an_abort_does_not_wait_for_a_leader_that_hangs(brokers, producer, level, monkeypatch):
    del level
    monkeypatch.setattr(produce_module, "_SETTLE_S", 0.2)
    writer = known(producer(transactional_id="mine", linger_ms=0))
    brokers.on("Produce", STALL)
    writer.send(ROWS)
    brokers.wait_for_call("Produce", 2)
    (link,) = (link for link in writer._sender._links.values() if link.sent)
    connection = link.connection
    writer.abort_transaction()
    assert len(brokers.asked("EndTxn")) == 1
    assert not connection.is_open, "nobody reads its answers any more"


def test_closing_after_an_error_aborts_what_is_open(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    with pytest.raises(KafkaProtoError):
        writer.send([ProducerRecord("c", partition=7)])
    for _ in range(2):
        writer.close()
    assert [end.committed for end in brokers.asked("EndTxn")] == [False]


def test_records_that_came_one_by_one_are_in_their_transaction_or_in_none(
    brokers, producer, level, monkeypatch
):
    del level
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer(transactional_id="mine")
    for value, end in [("a", "commit"), ("b", "abort"), ("c", "commit")]:
        writer.begin_transaction()
        for number in range(3):
            writer.send([ProducerRecord(f"{value}{number}", partition=0)])
        getattr(writer, f"{end}_transaction")()
        assert writer.flush() == {}
    kept = [*values(brokers.logs["orders", 0])]
    # The first of those that were given up may have gone out; those behind it were gathered.
    assert [value for value in kept if value != b"b0"] == [b"a0", b"a1", b"a2", b"c0", b"c1", b"c2"]


@pytest.mark.parametrize("is_wrong", [False, True])
def test_rows_that_were_given_up_unseen_are_numbered_all_the_same(
    brokers, producer, level, monkeypatch, is_wrong
):
    del level
    for module in (gathering, coalescing):
        monkeypatch.setattr(module, "_MOST_S", 60.0)
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    for number in range(3):
        writer.send([ProducerRecord(f"{number}", partition=0)])
    for number in range(3, 9, 2):
        values_of = pa.array([f"{number}", f"{number + 1}"])
        writer.send(pa.record_batch({"value": values_of, "partition": pa.array([0, 0])}))
    if is_wrong:
        writer.send([ProducerRecord("9", partition=8)])
        with pytest.raises(RecordRefused, match=r"row 9: there is no partition 8"):
            writer.flush()
    writer.abort_transaction()
    writer.begin_transaction()
    with pytest.raises(RecordRefused, match=rf"row {9 + is_wrong}: there is no partition 7"):
        writer.send([ProducerRecord("9", partition=7)])


@pytest.mark.slow
def test_an_abort_that_nobody_answers_is_noted_and_hides_nothing(
    brokers, producer, level, monkeypatch, caplog
):
    del level
    monkeypatch.setattr(produce_module, "_ABORT_S", 0.1)
    brokers.on("EndTxn", close())
    with pytest.raises(ValueError, match="the caller's"):
        fail_inside(producer(transactional_id="mine"), [])
    assert "the transaction 'mine' stays open until it times out" in caplog.text


@pytest.mark.slow
def test_a_close_whose_abort_nobody_answers_leaves_no_connection_open(
    brokers, producer, level, clock
):
    del level
    writer = producer(transactional_id="mine", default_api_timeout_ms=1000)
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    brokers.on("EndTxn", close())
    with pytest.raises(KafkaProtoError):
        writer.close()
    assert not writer._router.connections.kept
    with pytest.raises(LocalProtocolError, match="call abort_transaction again"):
        writer.send(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_close_ends_what_nobody_has_answered_as_it_was_to_end(
    brokers, producer, level, clock, caplog, is_commit
):
    writer = producer(transactional_id="mine", default_api_timeout_ms=300)
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    brokers.on("EndTxn", EndTxnResponse(error_code=_LOADING))
    end = writer.commit_transaction if is_commit else writer.abort_transaction
    with pytest.raises(KafkaProtoError):
        end()
    before = len(brokers.asked("EndTxn"))
    brokers.on("EndTxn", _END[level])
    writer.close()
    (again,) = brokers.asked("EndTxn")[before:]
    assert again.committed == is_commit
    assert not caplog.messages


@pytest.mark.slow
def test_close_says_so_where_still_nobody_answers(brokers, producer, level, clock, caplog):
    del level
    writer = producer(transactional_id="mine", default_api_timeout_ms=300)
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", close())
    with pytest.raises(KafkaProtoError):
        writer.commit_transaction()
    writer.close()
    assert "the transaction 'mine' was to be committed: " in caplog.text
    assert not writer._router.connections.kept


@pytest.mark.slow
def test_leaving_with_a_commit_that_nobody_answered_asks_for_it_again(
    brokers, producer, level, clock, caplog
):
    writer = producer(transactional_id="mine", default_api_timeout_ms=300)

    def commit():
        brokers.on("EndTxn", EndTxnResponse(error_code=_LOADING))
        try:
            writer.commit_transaction()
        finally:
            brokers.on("EndTxn", _END[level])

    def leave():
        with writer:
            writer.begin_transaction()
            writer.send(ROWS)
            commit()

    with pytest.raises(KafkaProtoError):
        leave()
    asked = brokers.asked("EndTxn")
    assert len(asked) > 1
    assert all(one.committed for one in asked)
    assert not writer._transactions.is_to_end
    assert not caplog.messages


@pytest.mark.slow
def test_close_asks_again_for_the_abort_after_an_error(brokers, producer, level, clock):
    writer = producer(transactional_id="mine", default_api_timeout_ms=300)
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    with pytest.raises(RecordRefused):
        writer.send([ProducerRecord("9", partition=7)])
    brokers.on("EndTxn", EndTxnResponse(error_code=_LOADING))
    with pytest.raises(KafkaProtoError):
        writer.abort_transaction()
    before = len(brokers.asked("EndTxn"))
    brokers.on("EndTxn", _END[level])
    writer.close()
    (again,) = brokers.asked("EndTxn")[before:]
    assert not again.committed


@pytest.mark.slow
def test_close_aborts_what_can_only_be_aborted(brokers, producer, level, clock, caplog):
    writer = producer(transactional_id="mine", default_api_timeout_ms=300)
    writer.begin_transaction()
    writer.send(ROWS)
    brokers.on("EndTxn", EndTxnResponse(error_code=_LOADING))
    with pytest.raises(KafkaProtoError):
        writer.commit_transaction()
    before = len(brokers.asked("EndTxn"))
    brokers.on("EndTxn", EndTxnResponse(error_code=_ABORTABLE), _END[level])
    writer.close()
    assert [one.committed for one in brokers.asked("EndTxn")[before:]] == [True, False]
    (warned,) = caplog.messages
    assert "'mine' was to be committed: EndTxn: " in warned
    assert "TRANSACTION_ABORTABLE" in warned


@pytest.mark.parametrize("code", [47, 90])
def test_a_transaction_that_somebody_else_has_ended_is_not_said_to_stay_open(
    brokers, producer, level, code, caplog
):
    del level
    brokers.on("EndTxn", EndTxnResponse(error_code=code))
    with pytest.raises(ValueError, match="the caller's"):
        fail_inside(producer(transactional_id="mine"), [])
    assert "stays open" not in caplog.text


def fail_later(writer):
    """Leave the transaction to others, and then the producer with an error."""
    with writer:
        writer.begin_transaction()
        writer.send(ROWS)
        writer.leave_transaction()
        raise ValueError("later")


def test_what_was_left_to_others_is_not_aborted(brokers, producer, level, caplog):
    del level
    with pytest.raises(ValueError, match="later"):
        fail_later(producer(transactional_id="mine"))
    assert brokers.asked("EndTxn") == []
    assert "stays open" not in caplog.text


def test_nothing_is_added_to_what_was_left_to_others(brokers, producer, level):
    """Who ends it cannot know of the rows that came later."""
    del level
    writer = producer(transactional_id="mine")
    left = []
    for _ in range(2):
        writer.begin_transaction()
        writer.send(ROWS)
        left.append(writer.leave_transaction())
    assert None not in left
    assert len(brokers.asked("InitProducerId")) == len(set(left)) == 2


def test_of_a_transaction_without_anything_nothing_is_left_to_others(brokers, producer, level):
    """Brokers refuse to end it."""
    del level
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    assert writer.leave_transaction() is None
    assert brokers.asked("EndTxn") == []


def test_whoever_could_not_begin_is_not_told_to_abort(brokers, producer, level):
    del level
    brokers.on("InitProducerId", InitProducerIdResponse(error_code=53))
    writer = producer(transactional_id="mine")
    with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        writer.begin_transaction()
    with pytest.raises(LocalProtocolError, match=r"has ended, with \w+: make a new one"):
        writer.begin_transaction()


def test_nothing_is_sent_outside_and_nothing_is_ended_twice(brokers, producer, level):
    del level
    writer = producer(transactional_id="mine")
    for early in (
        lambda: writer.send(ROWS),
        lambda: writer.send_offsets_to_transaction({ONE: 10}, "group"),
        lambda: writer.send_offsets_to_transaction({}, "group"),
        writer.commit_transaction,
        writer.abort_transaction,
        writer.leave_transaction,
    ):
        with pytest.raises(LocalProtocolError, match="call begin_transaction first"):
            early()
    writer.begin_transaction()
    assert writer.commit_transaction() == {}
    assert brokers.asked("EndTxn") == []
    with pytest.raises(LocalProtocolError, match=r"without transactional\.id"):
        producer().begin_transaction()


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("name", ["flush", "close", "commit_transaction", "abort_transaction"])
def test_a_call_in_the_midst_of_another_is_refused(producer, monkeypatch, name):
    """A handler of signals makes such: what is in hand would be lost, or waited for for ever."""
    writer = producer(transactional_id="t")
    writer.begin_transaction()
    take = PartitionQueue.take

    def interrupted(queue):
        batch = take(queue)
        getattr(writer, name)()
        return batch

    writer.send(ROWS[:1])
    with monkeypatch.context() as patch:
        patch.setattr(PartitionQueue, "take", interrupted)
        with pytest.raises(LocalProtocolError, match="in the midst"):
            writer.flush()
    with pytest.raises(LocalProtocolError, match="has ended, with LocalProtocolError"):
        writer.flush()
    writer.abort_transaction()
    writer.begin_transaction()
    writer.send(ROWS[:1])
    assert writer.commit_transaction()[ONE].records == 1


@pytest.mark.usefixtures("level")
def test_an_interrupt_at_the_begin_or_end_of_a_send_holds_up_no_abort(producer):
    """Python looks for signals as functions begin: none of ours may be needed to end the call."""
    own = {alone.__file__, produce_module.__file__, contextlib.__file__}
    writer, met = producer(transactional_id="t"), []
    for nth in count(1):
        writer.begin_transaction()
        try:
            with Interrupted(nth, own):
                writer.send(ROWS[:1])
        except KeyboardInterrupt as error:
            writer.abort_transaction()  # while the error holds all frames that it met
            met.append(error)
        else:
            break
    assert len(met) > 10


@pytest.mark.usefixtures("level")
def test_an_end_that_was_interrupted_is_asked_for_again_unchanged(brokers, producer):
    """Under the next epoch brokers refuse it, as if what is committed were not."""
    writer, met = producer(transactional_id="t"), 0
    for nth in count(1):
        writer.begin_transaction()
        writer.send(ROWS[:1])
        writer.flush()
        before = len(brokers.asked("EndTxn"))
        try:
            with Interrupted(nth, {transactions_module.__file__}):
                writer.commit_transaction()
        except KeyboardInterrupt:
            met += 1
            again = writer.abort_transaction if writer._ended_by else writer.commit_transaction
            again()
        else:
            break
        ends = brokers.asked("EndTxn")[before:]
        assert ends == ends[:1] * len(ends)
    assert met > 3


@pytest.mark.parametrize("level", [1], indirect=True)
def test_the_partition_at_fault_is_named(brokers, producer, level):
    del level
    brokers.on("AddPartitionsToTxn", added(_NOT_ATTEMPTED, _NOT_ALLOWED))
    writer = producer(transactional_id="mine")
    writer.begin_transaction()
    writer.send(ROWS)
    with pytest.raises(BrokerError, match=r"orders-1.*TOPIC_AUTHORIZATION_FAILED"):
        writer.flush()
    writer.abort_transaction()
    assert brokers.asked("EndTxn") == []  # nothing had come in
    brokers.on("AddPartitionsToTxn", added())
    writer.begin_transaction()
    writer.send(ROWS)
    writer.commit_transaction()


@pytest.mark.parametrize("level", [1], indirect=True)
@pytest.mark.parametrize(
    ("api", "empty"),
    [
        ("AddPartitionsToTxn", add_partitions_to_txn.AddPartitionsToTxnResponse()),
        ("TxnOffsetCommit", txn_offset_commit.TxnOffsetCommitResponse()),
    ],
)
def test_what_an_answer_leaves_out_is_not_taken_for_done(brokers, producer, level, api, empty):
    del level
    brokers.on(api, empty)
    with pytest.raises(RemoteProtocolError, match=f"{api}, transaction 'mine'.*orders-0.*not answ"):
        whole_transaction(producer(transactional_id="mine"))
    assert brokers.asked("EndTxn") == []


def refused_by(api, code):
    """An answer of `api` with an error code."""
    if api == "Produce":
        return refusing(code)
    if api == "AddPartitionsToTxn":
        return added(code)
    if api == "AddOffsetsToTxn":
        return add_offsets_to_txn.AddOffsetsToTxnResponse(error_code=code)
    if api == "EndTxn":
        return EndTxnResponse(error_code=code)
    topic = txn_offset_commit.TxnOffsetCommitResponse.Topic
    refused = topic.Partition(partition_index=0, error_code=code)
    return txn_offset_commit.TxnOffsetCommitResponse(
        topics=(topic(name="orders", partitions=(refused,)),)
    )


_TAKEN_OVER = (
    r"another producer .*has taken over.*, or .* timed out \(transaction\.timeout\.ms\)"
    r", or a begin .*came late"  # its own, of which another try was answered
)
_WHY = {
    47: _TAKEN_OVER,  # INVALID_PRODUCER_EPOCH
    48: r"was ended .*, or timed out .*\(transaction\.timeout\.ms\)",  # INVALID_TXN_STATE
    49: "the transactional id has expired, or another producer has it",
    59: "UNKNOWN_PRODUCER_ID",
    90: _TAKEN_OVER,  # PRODUCER_FENCED
    120: "TRANSACTION_ABORTABLE",
}
# All that is asked in a transaction of version 1, in its order.
_STEPS = ("AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")


def whole_transaction(writer):
    writer.begin_transaction()
    writer.send(ROWS)
    writer.flush()
    writer.send_offsets_to_transaction({ONE: 17}, "group")
    writer.commit_transaction()


@pytest.mark.parametrize("level", [1], indirect=True)
@pytest.mark.parametrize("code", first(1, _WHY))
@pytest.mark.parametrize("api", _STEPS)
def test_whoever_may_not_go_on_is_told_why_wherever_it_is(brokers, producer, level, api, code):
    del level
    brokers.on(api, refused_by(api, code))
    with pytest.raises(BrokerError, match=_WHY[code]) as seen:
        whole_transaction(producer(transactional_id="mine"))
    assert (seen.value.api, seen.value.code) == (api, code)
    assert len(brokers.asked(api)) == 1


@pytest.mark.parametrize("level", [1], indirect=True)
@pytest.mark.parametrize(
    "code", first(1, [7, 14, 51])
)  # timed out, coordinator loads, another one is ending
@pytest.mark.parametrize("api", _STEPS)
def test_what_passes_is_waited_for(brokers, producer, level, api, code):
    del level
    good = {
        "AddPartitionsToTxn": added(),
        "Produce": lambda call: produce(brokers, call),
        "AddOffsetsToTxn": add_offsets_to_txn.AddOffsetsToTxnResponse(),
        "TxnOffsetCommit": offsets_committed,
        "EndTxn": EndTxnResponse(),
    }
    brokers.on(api, refused_by(api, code), close(), good[api])
    whole_transaction(producer(transactional_id="mine"))
    assert len(brokers.asked(api)) >= 3

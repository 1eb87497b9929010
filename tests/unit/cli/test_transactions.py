"""`kafkaproto transactions` of the whole cluster, over fake brokers."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from tests.unit.cluster.admin import test_hanging, test_transactions
from tests.unit.cluster.admin.test_hanging import DESCRIBE, LIST, MARKERS, PRODUCERS, opened, told


@pytest.mark.slow
def test_list_without_prefix_is_of_the_whole_cluster(brokers, command, rows):
    brokers.on(LIST, test_transactions.listed("q"), node=1)
    brokers.on(LIST, test_transactions.listed("p"), node=2)
    assert command("transactions", "list").stdout.splitlines() == [
        "Transactional id  Coordinator  Producer  State",
        "p                           2         7  Ongoing",
        "q                           1         7  Ongoing",
    ]
    filters = ("--state", "ongoing", "--producer-id", "7", "--longer-than", "2m", "--pattern", "p")
    assert len(rows("transactions", "list", *filters)) == 2
    asked = brokers.asked(LIST)[-1]
    assert (asked.state_filters, asked.producer_id_filters) == (("Ongoing",), (7,))
    assert (asked.duration_filter, asked.transactional_id_pattern) == (120_000, "p")


def test_filters_and_a_prefix_do_not_go_together(brokers, command):
    for words in (("nightly", "--state", "Ongoing"), ("--decision-topic", "other")):
        done = command("transactions", "list", *words)
        assert (done.exit_code, "PREFIX" in done.stderr) == (2, True)
    assert brokers.calls == []


def test_described_is_a_row_each(brokers, command, rows):
    started = test_hanging.described("p", 0, 1)
    brokers.on(DESCRIBE, started)
    head, line = command("transactions", "describe", "p").stdout.splitlines()
    assert head.split()[-3:] == ["Since", "Seconds", "Partitions"]
    assert line.startswith("p ")
    assert line.endswith("orders-0, orders-1")
    (row,) = rows("transactions", "describe", "p")
    assert (row["coordinator"], row["started_at_ms"], row["producer_id"]) == (1, 5, 7)
    ended = test_transactions.described(transaction_start_time_ms=-1)
    brokers.on(DESCRIBE, ended)
    (row,) = rows("transactions", "describe", "p")
    assert (row["started"], row["open_s"], row["partitions"]) == (None, None, [])


@pytest.mark.slow
def test_described_and_what_is_not_there(brokers, command):
    brokers.on(DESCRIBE, test_transactions.described({"gone": 105}))
    done = command("transactions", "describe", "p", "gone", "--json")
    assert (done.exit_code, len(json.loads(done.stdout))) == (1, 1)
    assert "'gone'" in done.stderr


def test_producers_are_listed_and_only_open_ones_if_asked(brokers, command, rows):
    brokers.on(PRODUCERS, told(opened(7), opened(8, start=-1)))
    assert command("transactions", "producers", "orders:0").stdout.splitlines()[1].split() == [
        *("orders", "0", "7", "2", "-", "9", "1970-01-01T00:00:00.070Z", "12"),
    ]
    assert [row["producer_id"] for row in rows("transactions", "producers", "orders:0")] == [7, 8]
    only_open = rows("transactions", "producers", "orders:0", "--open")
    assert [(row["producer_id"], row["start_offset"]) for row in only_open] == [(7, 12)]
    brokers.on(PRODUCERS, told(opened(7, at_ms=253_402_300_800_000)))
    (late,) = rows("transactions", "producers", "orders:0")
    assert late["last"] == "253402300800000"  # the year 10,000, which Python has not


@pytest.mark.slow
def test_producers_of_what_somebody_leads_are_listed(brokers, command):
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.topics["orders"].move(1, -1)
    soon = ("--json", "-X", "default.api.timeout.ms=1500")
    done = command("transactions", "producers", "orders", *soon)
    assert [row["producer_id"] for row in json.loads(done.stdout)] == [7]
    assert done.exit_code
    assert "orders-1: LEADER_NOT_AVAILABLE" in done.stderr


def test_producers_of_what_may_be_read_are_listed(brokers, command):
    """One topic without the right READ hid those of all others."""
    both = told(opened(7)).topics + told(code=29, topic="empty").topics
    brokers.on(PRODUCERS, type(told())(topics=both), told(opened(7)))
    done = command("transactions", "producers", "orders:0", "empty", "--json")
    assert (done.exit_code, len(json.loads(done.stdout))) == (5, 1)
    assert "READ on the topic" in done.stderr


@pytest.mark.slow
def test_hanging_are_found_or_not(brokers, command, rows):
    brokers.on(PRODUCERS, test_hanging.all_told({("orders", 0): (opened(7),)}))
    brokers.on(LIST, test_hanging.listed())
    (row,) = rows("transactions", "find-hanging")
    assert (row["topic"], row["start_offset"], row["transactional_id"]) == ("orders", 12, None)
    shown = command("transactions", "find-hanging", "orders").stdout.splitlines()
    assert shown[1].split()[:5] == ["orders", "0", "12", "7", "2"]
    done = command("transactions", "find-hanging", "orders:1", "--longer-than", "1h")
    assert done.stdout == "no transaction hangs whose last record is older than 1h\n"
    assert rows("transactions", "find-hanging", "empty") == []


@pytest.mark.slow
def test_hanging_are_told_beside_what_may_not_be_read(brokers, command):
    both = told(opened(7)).topics + told(code=29, topic="empty").topics
    brokers.on(PRODUCERS, type(told())(topics=both), told(opened(7)))
    brokers.on(LIST, test_hanging.listed())
    done = command("transactions", "find-hanging", "orders:0", "empty", "--json")
    assert (done.exit_code, len(json.loads(done.stdout))) == (5, 1)
    assert "READ on the topic" in done.stderr


@pytest.mark.slow
def test_abort_asks_first(brokers, command, rows):
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.on(LIST, test_hanging.listed())
    brokers.on(MARKERS, test_hanging.marked())
    words = ("transactions", "abort", "orders:0", "--start-offset", "12")
    done = command(*words, input="n\n")
    assert (done.exit_code, "open in orders-0 from offset 12 on?" in done.stderr) == (1, True)
    assert brokers.asked(MARKERS) == []
    assert "aborted the transaction of producer 7:2 in orders-0" in command(*words, "--yes").stderr
    (row,) = rows(*words, "--yes")
    assert (row["partition"], row["producer_id"], row["result"]) == (0, 7, "aborted")


@pytest.mark.parametrize("place", ["orders", "orders:0,1", "orders:x"])
def test_abort_is_of_one_partition(command, place):
    done = command("transactions", "abort", place, "--start-offset", "12", "--yes")
    assert (done.exit_code, "TOPIC:PARTITION" in done.stderr) == (2, True)


def test_live_one_is_refused_unless_meant(brokers, command):
    brokers.on(PRODUCERS, told(opened(7)))
    test_hanging.known(brokers, 0)
    brokers.on(MARKERS, test_hanging.marked())
    words = ("transactions", "abort", "orders:0", "--start-offset", "12", "--yes")
    done = command(*words)
    assert (done.exit_code, "kafkaproto transactions fence" in done.stderr) == (1, True)
    assert command(*words, "--even-if-live").exit_code == 0


@pytest.mark.slow
def test_fence_asks_first(brokers, command, rows):
    brokers.on(DESCRIBE, test_transactions.described())
    brokers.on("InitProducerId", InitProducerIdResponse(producer_id=7, producer_epoch=3))
    done = command("transactions", "fence", "q", "p", input="n\n")
    assert (done.exit_code, "Fence whoever writes as p, q" in done.stderr) == (1, True)
    assert brokers.asked("InitProducerId") == []
    assert command("transactions", "fence", "p", "--yes").stderr == "fenced p\n"
    assert rows("transactions", "fence", "p", "--yes") == [
        {"transactional_id": "p", "producer_id": 7, "epoch": 3, "result": "fenced"}
    ]


@pytest.mark.slow
def test_fence_tells_of_those_that_were(brokers, command):
    def answer(call):
        if call.request.transactional_id == "p":
            return InitProducerIdResponse(error_code=53)
        return InitProducerIdResponse(producer_id=7, producer_epoch=3)

    brokers.on(DESCRIBE, test_transactions.described())
    brokers.on("InitProducerId", answer)
    done = command("transactions", "fence", "p", "q", "--yes", "--json")
    assert [row["transactional_id"] for row in json.loads(done.stdout)] == ["q"]
    assert done.exit_code == 5
    brokers.on(DESCRIBE, test_transactions.described({"p": 105}))
    done = command("transactions", "fence", "p", "--yes", "--json")
    assert (done.exit_code, done.stdout) == (1, "")

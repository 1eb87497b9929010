"""`kafkaproto consume --share-group`, at fake brokers with Kafka's rules."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.unit.cli.processes import command as words_of
from tests.unit.client.share.fake_shares import FakeShares
from tests.waiting import until

WHOLE = [f"{offset} ".encode().ljust(10, b".") for offset in range(30)]
WORDS = ("consume", "orders", "--share-group", "g", "--format", "raw")


@pytest.fixture
def shares(brokers):
    return FakeShares(brokers)


def states(shares):
    """{state: offsets} of orders-0."""
    found = {}
    for offset, one in shares.offsets["orders", 0].items():
        found.setdefault(one.state, []).append(offset)
    return found


def has_done_all(shares):
    return states(shares) == {"done": [*range(30)]}


def last_asked(brokers):
    """What the leaders were asked last."""
    asked = [call.api for call in brokers.calls if call.api in {"ShareFetch", "ShareAcknowledge"}]
    return asked[-1]


def test_what_is_printed_is_accepted_and_the_rest_goes_back(shares, command):
    done = command(*WORDS, "-n", "3")
    assert (done.exit_code, done.stdout_bytes.splitlines()) == (0, WHOLE[:3])
    assert states(shares) == {"done": [0, 1, 2], "available": [*range(3, 30)]}
    assert not shares.members
    assert command(*WORDS, "-n", "27").stdout_bytes.splitlines() == WHOLE[3:]
    assert states(shares) == {"done": [*range(30)]}


def test_no_more_is_taken_than_is_printed(shares, command):
    """What is given back was delivered all the same: after some times nobody gets it again."""
    assert command(*WORDS, "-n", "3").exit_code == 0
    counts = [found.count for _, found in sorted(shares.offsets["orders", 0].items())]
    assert counts[:3] == [1, 1, 1]
    assert not any(counts[3:])


def test_what_was_not_accepted_is_said(shares, command, brokers):
    def too_late(call):
        shares.expire()
        return shares.acknowledge(call)

    brokers.on("ShareAcknowledge", too_late)
    done = command(*WORDS, "-n", "1")
    assert done.stdout_bytes.splitlines() == WHOLE[:1]
    assert "orders-0: not accepted, comes again: " in done.stderr
    assert "INVALID_RECORD_STATE" in done.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_the_group(shares, brokers):
    words = words_of(*WORDS, "-b", brokers.bootstrap_servers)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: has_done_all(shares) and last_asked(brokers) == "ShareFetch")
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert printed.splitlines() == WHOLE
    assert not shares.members
    assert not shares.sessions


@pytest.mark.parametrize(
    "more",
    [
        ("--from", "3"),
        ("--to", "3"),
        ("--group", "h"),
        ("--follow",),
        ("-X", "isolation.level=read_committed"),
    ],
    ids=" ".join,
)
def test_what_a_share_group_does_not_take_is_refused(shares, command, more):
    done = command(*WORDS, *more)
    assert (done.exit_code, done.stdout) == (2, "")
    assert command("consume", "orders:0", "--share-group", "g").exit_code == 2
    assert not shares.heard


def test_a_group_without_a_name_is_refused_as_wrong_usage(shares, command):
    done = command("consume", "orders", "--share-group", "")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "Error: option '--share-group' is '': expected the name of a group\n"
    assert not shares.heard

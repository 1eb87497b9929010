"""Real clients' traffic, captured: decoded as tshark decodes it."""

from pathlib import Path

import pytest

from tests.differential.answers import check_equal, messages_of

CAPTURES = Path(__file__).parents[2] / "golden" / "captures"
# How many packets tshark 4.0 decodes in full; of the others it reads the header.
COMPARED = {"java": 12, "kafka-python": 40, "librdkafka": 30, "ours": 48}


@pytest.mark.parametrize("name", COMPARED)
def test_decoded_as_tshark_decodes_it(name):
    assert check_equal(CAPTURES / f"{name}.pcap") == COMPARED[name]


@pytest.mark.parametrize("name", COMPARED)
def test_every_message_is_read_and_answered(name):
    messages = messages_of(CAPTURES / f"{name}.pcap")
    assert [message.problem for message in messages if message.body() is None] == []
    assert all(message.api_key is not None for message in messages)

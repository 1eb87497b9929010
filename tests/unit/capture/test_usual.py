"""Usual packets taken at one go: the same as when each is looked at."""

import io
import random
from struct import pack

import pytest

from pyspark_kafkaproto.capture import conversation, pcap, reading
from pyspark_kafkaproto.capture.link import FIN, RAW, RST, SYN
from pyspark_kafkaproto.capture.packets import PACKET_BYTES_MAX, Source
from pyspark_kafkaproto.capture.report import line, note_line
from tests.property.test_capture import damaged, originals
from tests.unit.capture.talks import fetch_request, fetch_response
from tests.unit.capture.wire import Talk, ethernet


def talk(wrap=ethernet, count=20):
    made = Talk(wrap).open()
    for number in range(1, count + 1):
        made.say(0, fetch_request(number)).packet(1)
        made.say(1, fetch_response(number, b"x" * 3000), 1000).packet(0)
    return made.close()


def read(data, piece_bytes=1 << 20):
    """All lines, and how many packets were counted."""
    seen = []

    class Counted(conversation.Conversation):
        def __init__(self, *of):
            super().__init__(*of)
            seen.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "Conversation", Counted)
        patch.setattr(pcap, "Source", lambda stream: Source(stream, piece_bytes))
        items = list(reading.read_messages(pcap.open_capture(io.BytesIO(data))))
    lines = [
        note_line(item) if isinstance(item, conversation.Note) else line(item) for item in items
    ]
    return lines, seen[0].packets, seen[0].time_ns


def looked_at(data):
    """The same, packet by packet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "usual_of", lambda *_: None)
        return read(data)


def fed(data, monkeypatch):
    """How many packets were looked at one by one."""
    count = 0
    feed = conversation.Conversation.feed

    def counting(self, packet):
        nonlocal count
        count += 1
        return feed(self, packet)

    monkeypatch.setattr(conversation.Conversation, "feed", counting)
    read(data)
    return count


def test_most_packets_are_not_looked_at_one_by_one(monkeypatch):
    made = talk(count=200)
    assert fed(made.pcap(), monkeypatch) < len(made.packets) / 50


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
@pytest.mark.parametrize("piece_bytes", [1, 17, 100, 5000, 1 << 20])
def test_pieces_of_any_size_of_every_magic(order, magic, piece_bytes):
    data = talk().pcap(order=order, magic=magic)
    assert read(data, piece_bytes) == looked_at(data)
    assert len(read(data)[0]) == 40


@pytest.mark.parametrize("flags", [SYN, FIN, RST])
def test_turns_of_a_connection_are_left_alone(flags):
    made = talk()
    time_ns, data, size = made.packets[30]
    made.packets[30] = time_ns, data[:47] + bytes([data[47] | flags]) + data[48:], size
    assert read(made.pcap()) == looked_at(made.pcap())


def test_tagged_and_padded_packets():
    for wrap in (
        lambda packet: ethernet(packet, tags=[(0x8100, 5)]),
        lambda packet: ethernet(packet) + bytes(max(0, 46 - len(packet))),
    ):
        data = talk(wrap).pcap()
        assert read(data) == looked_at(data)
        assert len(read(data)[0]) == 40


def test_raw_packets_have_no_ethernet_in_front():
    data = talk(lambda packet: packet).pcap(link_type=RAW)
    assert read(data) == looked_at(data)
    assert len(read(data)[0]) == 40


def test_a_packet_that_cannot_be_ends_the_reading_where_it_stands():
    made = talk()
    front = made.pcap()
    whole = front + pack("<IIII", 1, 0, PACKET_BYTES_MAX + 1, 9) + made.packets[-1][1]
    lines, count, _ = read(whole)
    assert (lines, count) == looked_at(whole)[:2]
    assert f"at byte {len(front)}" in lines[-1]


def test_the_end_is_told_with_the_time_of_the_last_packet():
    made = talk()
    cut = made.pcap()[:-200]
    lines, _, time_ns = read(cut)
    assert (lines, time_ns) == (looked_at(cut)[0], looked_at(cut)[2])
    assert "the capture ends early" in lines[-1]
    assert "22:13:20.1" in lines[-1]


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))]
)
def test_damaged_captures(seed):
    rng = random.Random(seed)
    kinds = [*originals(), talk().pcap()]
    for _ in range(10):
        data = damaged(rng, rng.choice(kinds))
        if data[:4] == kinds[-1][:4] and len(data) > 24:
            assert read(data, rng.choice([64, 999, 1 << 20])) == looked_at(data)

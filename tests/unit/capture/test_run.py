"""The rest of a frame taken natively: only what FastPath takes, in bounds, whatever the bytes."""

import io
import random
from struct import pack, unpack_from

import pytest

from pyspark_kafkaproto.capture import fast_path
from pyspark_kafkaproto.capture._run import take_run
from pyspark_kafkaproto.capture.conversation import Conversation
from pyspark_kafkaproto.capture.link import ACK, ETHERNET, FIN, RST, SYN, reverse, tcp_segment
from pyspark_kafkaproto.capture.packets import PACKET_BYTES_MAX, Packet, Source
from pyspark_kafkaproto.capture.pcap import PcapReader
from tests.examples import first
from tests.unit.capture.wire import BROKER, CLIENT, ethernet, ipv4, pcap, tcp

_FILE_HEADER_BYTES = 24
_PUSH = 0x08
_SEQ = 7000


def frame(payload=b"", seq=_SEQ, flags=ACK, is_back=False, total=None, options=b""):
    """An Ethernet frame from the broker to the client, as a long answer is sent."""
    (source, port), (target, other) = (CLIENT, BROKER) if is_back else (BROKER, CLIENT)
    segment = tcp(port, other, seq, 1, flags, b"")
    segment = segment[:12] + bytes([0x50 + len(options) * 4]) + segment[13:] + options
    return ethernet(ipv4(source, target, segment + payload, total))


FLOW = tcp_segment(ETHERNET, frame()).flow


def packets(*frames, order="<", time_s=100):
    """As they stand in a file, one second after the other, each with its number as fraction."""
    times = [(time_s + number) * 10**9 + number * 1000 for number in range(len(frames))]
    return pcap(list(zip(times, frames, strict=True)), order=order)[_FILE_HEADER_BYTES:]


def run(*frames, seq=_SEQ, wanted=1 << 20):
    """How many packets are taken, and their payload."""
    data = packets(*frames)
    pos, count, payload, seconds, fraction = take_run(data, 0, False, FLOW, seq, wanted)
    assert pos == len(packets(*frames[:count]))
    last = (100 + count - 1, count - 1) if count else (0, 0)
    assert (seconds, fraction) == last
    return count, payload


def test_segments_that_follow_each_other_are_joined():
    assert run(frame(b"abc"), frame(b"d", _SEQ + 3), frame(b"ef", _SEQ + 4)) == (3, b"abcdef")


def test_pushed_and_urgent_data_is_data():
    assert run(frame(b"abc", flags=ACK | _PUSH | 0xE0)) == (1, b"abc")


def test_what_is_wanted_ends_the_run():
    frames = frame(b"abc"), frame(b"de", _SEQ + 3), frame(is_back=True), frame(b"f", _SEQ + 5)
    assert run(*frames, wanted=5) == (2, b"abcde")
    assert run(*frames, wanted=6) == (4, b"abcdef")
    assert run(*frames, wanted=4) == (1, b"abc")
    assert run(*frames, wanted=2) == (0, b"")
    assert run(*frames, wanted=0) == (0, b"")
    assert run(*frames, wanted=-1) == (0, b"")


def test_packets_without_payload_are_passed_over_in_both_directions():
    frames = frame(seq=1), frame(is_back=True, seq=2), frame(b"abc"), frame(seq=_SEQ + 3)
    assert run(*frames, frame(b"d", _SEQ + 3)) == (5, b"abcd")


def test_the_run_ends_with_a_packet_that_carries_something():
    assert run(frame(b"abc"), frame(is_back=True), frame(seq=_SEQ + 3)) == (1, b"abc")
    assert run(frame(), frame(is_back=True)) == (0, b"")


@pytest.mark.parametrize("seq", [_SEQ - 1, _SEQ + 1, _SEQ + (1 << 31), 0])
def test_other_bytes_than_the_next_are_left(seq):
    assert run(frame(b"abc", seq)) == (0, b"")
    assert run(frame(b"ab", _SEQ), frame(b"c", (seq + 2) & 0xFFFFFFFF)) == (1, b"ab")


def test_sequence_numbers_begin_anew():
    frames = frame(b"abc", 0xFFFFFFFE), frame(b"de", 1), frame(b"f", 3)
    assert run(*frames, seq=0xFFFFFFFE) == (3, b"abcdef")


@pytest.mark.parametrize(
    "other",
    [
        frame(b"c", _SEQ + 2, is_back=True),
        *(frame(b"c", _SEQ + 2, flags=ACK | flag) for flag in (SYN, FIN, RST)),
        *(frame(seq=_SEQ + 2, flags=ACK | flag, is_back=True) for flag in (SYN, FIN, RST)),
        frame(b"c", _SEQ + 2, flags=0),
        ethernet(frame(b"c", _SEQ + 2)[14:], tags=[(0x8100, 5)]),
        frame(b"c", _SEQ + 2)[:12] + b"\x86\xdd" + frame(b"c", _SEQ + 2)[14:],
        frame(b"c", _SEQ + 2).replace(pack(">H", 0x4000), pack(">H", 0x2001)),  # a fragment
        frame(b"c", _SEQ + 2).replace(b"\x40\x06", b"\x40\x11"),  # UDP
        frame(b"c", _SEQ + 2).replace(bytes([10, 0, 0, 2]), bytes([10, 0, 0, 3])),
        frame(b"cd", _SEQ + 2)[:-1],  # its end was not captured
        frame(b"c", _SEQ + 2)[:40],
        frame(b"", _SEQ + 2, total=0),  # no length: for the network card to cut
        frame(b"c", _SEQ + 2, total=39),  # ends inside its headers
    ],
)
def test_packets_that_do_not_fit_are_left(other):
    assert run(frame(b"ab"), other, frame(b"d", _SEQ + 3)) == (1, b"ab")


def test_first_fragments_are_read_like_any_packet():
    first = frame(b"abc").replace(pack(">H", 0x4000), pack(">H", 0x2000))
    assert run(first) == (1, b"abc")


def test_options_and_what_pads_a_frame_are_no_payload():
    options = bytes([1, 1, 8, 10]) + bytes(8)
    padded = frame(b"c", _SEQ + 2) + bytes(5)
    frames = frame(b"ab", options=options), padded, frame(is_back=True) + bytes(6)
    assert run(*frames, frame(b"d", _SEQ + 3)) == (4, b"abcd")


@pytest.mark.parametrize("order", "<>")
def test_data_may_end_anywhere(order):
    frames = frame(b"abc"), frame(is_back=True), frame(b"de", _SEQ + 3)
    data = packets(*frames, order=order)
    stops = [len(packets(*frames[:count])) for count in range(4)]
    is_big = order == ">"
    for size in range(len(data) + 1):
        # a block of its own, so that a sanitizer sees a step beyond its end
        pos, count, payload, seconds, fraction = take_run(data[:size], 0, is_big, FLOW, _SEQ, 99)
        expected = 3 if size >= stops[3] else 1 if size >= stops[1] else 0
        assert (pos, count) == (stops[expected], expected)
        assert payload == b"abcde"[: {0: 0, 1: 3, 3: 5}[expected]]
        assert (seconds, fraction) == ((99 + count, count - 1) if count else (0, 0))
    assert take_run(data, 0, not is_big, FLOW, _SEQ, 99) == (0, 0, b"", 0, 0)


def test_it_goes_on_where_it_is_told():
    data = packets(frame(b"abc"), frame(b"de", _SEQ + 3))
    pos = len(packets(frame(b"abc")))
    assert take_run(data, pos, False, FLOW, _SEQ + 3, 99)[:3] == (len(data), 1, b"de")
    assert take_run(data, len(data), False, FLOW, _SEQ, 99) == (len(data), 0, b"", 0, 0)


def test_places_that_are_not_there_are_refused():
    data = packets(frame(b"abc"))
    for pos in (-1, len(data) + 1):
        with pytest.raises(ValueError, match="is not in"):
            take_run(data, pos, False, FLOW, _SEQ, 99)
    for flow in (b"", FLOW[:11], bytes(36)):
        with pytest.raises(ValueError, match="flow"):
            take_run(data, 0, False, flow, _SEQ, 99)


def test_packets_up_to_the_largest_are_taken():
    padded = frame(b"abc") + bytes(PACKET_BYTES_MAX - len(frame(b"abc")))
    assert run(padded) == (1, b"abc")
    assert run(padded + b"\0") == (0, b"")


class Law:
    """The same by what stands in Python: FastPath for each packet, and the segment in it."""

    def __init__(self, order):
        self._order = order
        self._conversation = Conversation()
        self._conversation.feed(Packet(0, ETHERNET, frame(flags=SYN), 54))

    def run(self, data, seq, wanted):
        pos = stop = passed = count = 0
        payload = b""
        while len(payload) < wanted and (segment := self._segment(data, pos)) is not None:
            passed += 1
            pos += 16 + unpack_from(self._order + "I", data, pos + 8)[0]
            if segment.payload:
                is_next = segment.seq == (seq + len(payload)) & 0xFFFFFFFF
                if segment.flow != FLOW or not is_next:
                    break
                if len(payload) + len(segment.payload) > wanted:
                    break
                payload += segment.payload
                stop, count = pos, passed
            elif segment.flow not in {FLOW, reverse(FLOW)}:
                break
        return stop, count, payload

    def _segment(self, data, pos):
        if len(data) < pos + 16:
            return None
        stop = pos + 16 + unpack_from(self._order + "I", data, pos + 8)[0]
        source = Source(io.BytesIO())
        source.data = pcap([], order=self._order) + data[pos:stop]
        reader = PcapReader(source)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fast_path, "_take_run", None)
            fast_path.FastPath(reader, self._conversation).take()
        if len(data) < stop or source.pos == _FILE_HEADER_BYTES:
            return None
        return tcp_segment(ETHERNET, data[pos + 16 : stop])


@pytest.mark.slow
@pytest.mark.parametrize("order", first(1, "<>"))
def test_every_byte_of_the_headers_is_looked_at_as_usual_does(order):
    law, taken = Law(order), 0
    values = [0, 1, 2, 5, 6, 0x0F, 0x10, 0x14, 0x1F, 0x20, 0x28, 0x45, 0x4F, 0x50, 0x60, 0x7F]
    values += [0x80, 0x81, 0xF0, 0xFF]
    for before in (frame(b"abc"), frame(), frame(is_back=True), frame(b"", options=bytes(4))):
        size = len(tcp_segment(ETHERNET, before).payload)
        behind = packets(frame(b"def", _SEQ + size), order=order)
        good = packets(before, order=order) + behind
        for at in range(16 + 54):
            for value in (*values, good[at] ^ 1, good[at]):
                data = good[:at] + bytes([value]) + good[at + 1 :]
                found = take_run(data, 0, order == ">", FLOW, _SEQ, 5)
                assert found[:3] == law.run(data, _SEQ, 5), (at, value)
                taken += found[1] > 0
    assert taken > 1000


@pytest.mark.parametrize("seed", range(10))
def test_damaged_packets(seed):
    rng = random.Random(seed)
    order = rng.choice("<>")
    law, taken = Law(order), 0
    for _ in range(100):
        seq = start = rng.choice([_SEQ, 0xFFFFFFF0, rng.randrange(1 << 32)])
        frames = []
        for _ in range(rng.randrange(1, 8)):
            payload = rng.randbytes(rng.choice([0, 0, 1, 5, 30]))
            is_back = not payload and rng.random() < 0.7
            frames.append(frame(payload, seq, is_back=is_back, options=bytes(rng.choice([0, 12]))))
            seq = (seq + len(payload)) & 0xFFFFFFFF
        data = bytearray(packets(*frames, order=order))
        for _ in range(rng.choice([0, 1, 2, 5])):
            data[rng.randrange(len(data))] = rng.choice(
                [0, 1, 0x10, 0x50, 0x80, rng.randrange(256)]
            )
        data = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        wanted = rng.choice([1, 30, 60, 1000])
        found = take_run(data, 0, order == ">", FLOW, start, wanted)
        assert found[:3] == law.run(data, start, wanted)
        taken += found[1]
    assert taken > 50

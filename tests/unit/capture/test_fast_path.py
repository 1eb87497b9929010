"""Packets that the fast path takes at one go, natively or not: as when each is looked at."""

import io
import random
import sys
from struct import pack

import pytest

from pyspark_kafkaproto.capture import Limits, Note, conversation, fast_path, frames, pcap, reading
from pyspark_kafkaproto.capture._run import take_run
from pyspark_kafkaproto.capture.link import ACK, FIN, RAW, RST, SYN
from pyspark_kafkaproto.capture.packets import PACKET_BYTES_MAX, Source
from pyspark_kafkaproto.capture.report import line, note_line
from tests.examples import first
from tests.unit.capture.damage import damaged, originals
from tests.unit.capture.talks import fetch_request, fetch_response
from tests.unit.capture.wire import Talk, ethernet
from tests.unit.capture.wire import pcap as pcap_of


def talk(wrap=ethernet, count=20):
    made = Talk(wrap).open()
    for number in range(1, count + 1):
        made.say(0, fetch_request(number)).packet(1)
        made.say(1, fetch_response(number, b"x" * 3000), 1000).packet(0)
    return made.close()


def read(data, piece_bytes=1 << 20, limits=None):
    """All lines, the last packet's time; and all else that is known."""
    seen, connections = [], []

    class Counted(conversation.Conversation):
        def __init__(self, *of):
            super().__init__(*of)
            seen.append(self)

    class Kept(conversation.Connection):
        def __init__(self, *of, **options):
            super().__init__(*of, **options)
            connections.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "Conversation", Counted)
        patch.setattr(conversation, "Connection", Kept)
        patch.setattr(pcap, "Source", lambda stream: Source(stream, piece_bytes))
        reader = pcap.open_capture(io.BytesIO(data))
        # What an item shows may change when more is known: it is looked at when it comes.
        shown = [
            (note_line(item), item) if isinstance(item, Note) else (line(item), facts(item))
            for item in reading.read_messages(reader, limits=limits)
        ]
    (whole,) = seen
    rest = whole.connections, [counters(each) for each in connections], shown
    return [text for text, _ in shown], whole.time_ns, rest


def facts(message):
    payload = bytes(message.payload)
    return [getattr(message, name) for name in message.__slots__ if name in FACTS], payload


FACTS = {
    *("number", "time_ns", "peers", "kind", "api_key", "version", "correlation_id", "client_id"),
    *("size_bytes", "skipped_bytes", "latency_ns", "answers"),
}


def counters(connection):
    missing = [each.missing_bytes for each in connection.assemblers]
    skipped = [side.frames.skipped_bytes for side in connection.sides]
    left_bytes = connection.shared.budget.left_bytes
    changes = connection.pending_changes
    return connection.kind, connection.last_ns, missing, skipped, changes, left_bytes


def one_by_one(data, *of, **options):
    """The same where nothing was built: each usual packet is taken in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_path, "_take_run", None)
        return read(data, *of, **options)


def looked_at(data, **options):
    """The same, packet by packet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "fast_path_of", lambda *_: None)
        return read(data, **options)


def taken(data, *of, **options):
    """`read`, after it was compared with both; and how many packets were taken natively."""
    count = 0

    def counting(*arguments):
        nonlocal count
        found = take_run(*arguments)
        count += found[1]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_path, "_take_run", counting)
        known = read(data, *of, **options)
    assert known == one_by_one(data, *of, **options)
    assert known == looked_at(data, **options)
    return known, count


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


@pytest.mark.slow
def test_most_packets_are_not_looked_at_one_by_one(monkeypatch):
    made = talk(count=200)
    assert fed(made.pcap(), monkeypatch) < len(made.packets) / 50


@pytest.mark.slow
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
@pytest.mark.parametrize("piece_bytes", first(1, [17, 1, 100, 5000, 1 << 20]))
def test_pieces_of_any_size_of_every_magic(order, magic, piece_bytes):
    data = talk().pcap(order=order, magic=magic)
    (lines, *_), count = taken(data, piece_bytes)
    assert len(lines) == 40
    assert count > 20 or piece_bytes < 5000


@pytest.mark.parametrize("late_ns", [100_000_000, 5_000_000_000])
def test_what_is_missing_before_the_ends_is_waited_for_as_long(late_ns):
    """Nothing but usual packets come in the meantime, of another connection."""
    ended, other = Talk(client=("10.0.0.1", 50001)).open(), Talk().open()
    ended.say(0, fetch_request(1))
    begin, answer = ended.seqs[1], fetch_response(1, b"x" * 2000)
    ended.lose(1, answer[:1000]).say(1, answer[1000:]).close()
    for number in range(1, 10):
        other.say(0, fetch_request(number)).say(1, fetch_response(number))
        other.time_ns += 1_000_000_000
    ended.time_ns += late_ns
    ended.packet(1, payload=answer[:1000], seq=begin)
    known, _ = taken(pcap_of(sorted(ended.packets + other.packets)))
    told = [index for index, text in enumerate(known[0]) if ":50001" in text]
    assert told[0] < told[-1] < len(known[0]) - 10  # in the middle of what the other one says


@pytest.mark.parametrize("flags", [SYN, FIN, RST])
def test_turns_of_a_connection_are_left_alone(flags):
    made = talk()
    time_ns, data, size = made.packets[30]
    made.packets[30] = time_ns, data[:47] + bytes([data[47] | flags]) + data[48:], size
    taken(made.pcap())


@pytest.mark.slow
def test_tagged_and_padded_packets():
    for wrap in (
        lambda packet: ethernet(packet, tags=[(0x8100, 5)]),
        lambda packet: ethernet(packet) + bytes(max(0, 46 - len(packet))),
    ):
        (lines, *_), _ = taken(talk(wrap).pcap())
        assert len(lines) == 40


def test_raw_packets_have_no_ethernet_in_front():
    (lines, *_), count = taken(talk(lambda packet: packet).pcap(link_type=RAW))
    assert (len(lines), count) == (40, 0)


def test_a_packet_that_cannot_be_ends_the_reading_where_it_stands():
    made = talk()
    front = made.pcap()
    whole = front + pack("<IIII", 1, 0, PACKET_BYTES_MAX + 1, 9) + made.packets[-1][1]
    lines, time_ns, _ = read(whole)
    assert (lines, time_ns) == looked_at(whole)[:2]
    assert f"at byte {len(front)}" in lines[-1]


def test_the_end_is_told_with_the_time_of_the_last_packet():
    made = talk()
    cut = made.pcap()[:-200]
    (lines, *_), _ = taken(cut)
    assert "the capture ends early" in lines[-1]
    assert "22:13:20.1" in lines[-1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, range(40)))
def test_damaged_captures(seed):
    rng = random.Random(seed)
    kinds = [*originals(), talk().pcap()]
    for _ in range(10):
        data = damaged(rng, rng.choice(kinds))
        if data[:4] == kinds[-1][:4] and len(data) > 24:
            taken(data, rng.choice([64, 999, 1 << 20]))


@pytest.mark.slow
def test_the_rest_of_a_frame_is_taken_natively():
    made = talk(count=50)
    answers = sum(len(data) > 1000 for _, data, _ in made.packets)
    _, count = taken(made.pcap())
    # The first packet of each tells how long it is.
    assert count == answers == 50 * 3


def test_python_does_all_where_nothing_was_built(monkeypatch):
    monkeypatch.setenv("KAFKAPROTO_PURE", "")
    assert fast_path._choose() is take_run
    monkeypatch.setenv("KAFKAPROTO_PURE", "1")
    assert fast_path._choose() is None
    monkeypatch.setenv("KAFKAPROTO_PURE", "")
    monkeypatch.setitem(sys.modules, "pyspark_kafkaproto.capture._run", None)
    assert fast_path._choose() is None


def test_a_frame_that_does_not_end_has_the_time_of_its_last_bytes():
    made = (
        Talk().open().say(0, fetch_request(1)).say(1, fetch_response(1, b"x" * 9000)[:8000], 1000)
    )
    last_ns = made.time_ns
    for _ in range(3):
        made.packet(0)
    data = made.pcap()
    (lines, time_ns, _), count = taken(data)
    assert (count, len(lines)) == (7, 2)
    assert time_ns == last_ns + 3_000_000
    _, answer = reading.read_messages(pcap.open_capture(io.BytesIO(data)))
    assert (answer.time_ns, len(answer.payload)) == (last_ns, 8000 - 4)


def test_a_native_step_never_takes_two_messages():
    """A list shows a message before the next one has told what topics are called."""
    made = Talk().open().say(0, fetch_request(1) + fetch_request(2))
    answers = [fetch_response(number, b"x" * 3000) for number in (1, 2)]
    made.say(1, b"".join(answers), 1000)
    data = made.pcap()
    reader = pcap.open_capture(io.BytesIO(data))
    talked = conversation.Conversation()
    for _, packet in zip(range(2), reader, strict=False):  # the opening
        talked.feed(packet)
    found = fast_path.FastPath(reader, talked)
    assert [len(found.take()) for _ in range(4)] == [2, 1, 1, 0]
    taken(data)


def test_while_something_waits_acknowledgments_are_heard():
    """Bytes that were acknowledged and do not come are given up: those that come later are late."""
    answer = fetch_response(1, b"x" * 9000)
    made = Talk().open().say(0, fetch_request(1)).say(1, answer[:1000])
    first = made.seqs[1]
    made.packet(1, payload=answer[2000:3000], seq=first + 1000)
    made.seqs[1] += 2000
    for _ in range(20):
        made.packet(0)
    made.packet(1, payload=answer[1000:2000], seq=first)
    made.say(1, answer[3000:], 1000)
    data = made.pcap()
    _, count = taken(data)
    assert count > 0
    _, answered = list(reading.read_messages(pcap.open_capture(io.BytesIO(data))))[:2]
    assert len(answered.payload) == 1000 - 4


def test_while_nobody_knows_what_a_connection_carries_each_packet_is_looked_at():
    """A request seems to begin, but its second half is TLS."""
    request = pack(">i", 5000) + fetch_request(1)[4:]
    made = Talk().open().say(0, request.ljust(2000, b"x"), 1000)
    made.say(0, bytes.fromhex("1603030040").ljust(1000, b"x"))
    (lines, *_), count = taken(made.pcap())
    assert count == 0
    assert "TLS" in lines[0]


def conversations(rng):
    """Some connections at once, as captures show them: with holes, out of order, twice, cut."""
    talks = [random_talk(rng, port) for port in range(50000, 50000 + rng.randrange(1, 4))]
    ways = [list(made.packets) for made in talks]
    merged, time_ns = [], 1_700_000_000 * 10**9
    while ways := [way for way in ways if way]:
        way = rng.choice(ways)
        # Mostly some of one connection in a row.
        for _ in range(min(len(way), rng.choice([1, 2, 10, 30]))):
            time_ns += rng.choice([1000, 250_000, 3_000_000])
            _, data, size = way.pop(0)
            merged.append((time_ns, data, size))
    return disturbed(rng, merged)


def random_talk(rng, port):
    made = Talk(
        client=("10.0.0.1", port),
        seqs=(rng.choice([1000, 0xFFFFFF00]), rng.choice([5000, 0xFFFFF000])),
    )
    made = made.open() if rng.random() < 0.8 else made
    number = 0
    while number < rng.randrange(2, 12):
        asked = range(number + 1, number + 1 + rng.choice([1, 1, 1, 3]))
        number = asked[-1]
        requests = b"".join(map(fetch_request, asked))
        answers = b"".join(
            fetch_response(each, bytes(rng.choice([0, 30, 3000, 9000, 30_000]))) for each in asked
        )
        made.say(0, requests, rng.choice([20, 1000]))
        acknowledged = rng.random() < 0.7
        size = rng.choice([100, 536, 1448, 4000])
        for start in range(0, len(answers), size):
            made.say(1, answers[start : start + size])
            if acknowledged and rng.random() < 0.5:
                made.packet(0)
            if rng.random() < 0.02:
                made.packet(1, seq=made.seqs[1] - 1)  # asks whether it is still there
            if rng.random() < 0.01:
                made.lose(1, bytes(rng.choice([1, 500, 20_000])))
    return made.close() if rng.random() < 0.5 else made


def disturbed(rng, packets):
    """Some packets lost, doubled, moved, cut or sent with other ones joined."""
    for _ in range(rng.choice([0, 0, 1, 3, 10])):
        at = rng.randrange(len(packets))
        time_ns, data, size = packets[at]
        match rng.randrange(5):
            case 0:
                del packets[at]
            case 1:
                packets.insert(min(len(packets), at + rng.choice([1, 5])), packets[at])
            case 2:
                packets.insert(max(0, at + rng.choice([-9, -3, -1, 1, 3, 9])), packets.pop(at))
            case 3:
                packets[at] = time_ns, data[: rng.randrange(len(data) + 1)], size
            case _:
                packets[at] = (
                    time_ns,
                    data[:47] + bytes([rng.choice([0, ACK | FIN])]) + data[48:],
                    size,
                )
        if not packets:
            break
    return packets


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, range(40)))
def test_conversations_of_all_kinds(seed, monkeypatch):
    rng = random.Random(seed)
    native = 0
    if seed % 3:
        # Frames that may not be kept as a whole, or only while there is memory.
        monkeypatch.setattr(frames, "_SMALL_BYTES", rng.choice([100, 2000, 6000]))
        monkeypatch.setattr(frames, "_KEPT_BYTES_MAX", rng.choice([2000, 6000, 7448, 20_000]))
    for _ in range(5):
        data = pcap_of(conversations(rng), order=rng.choice("<>"))
        limits = Limits(
            buffered_bytes=rng.choice([100, 9000, 1 << 20]), connections=rng.choice([1, 2, 100])
        )
        _, count = taken(data, rng.choice([999, 1 << 14, 1 << 20]), limits=limits)
        native += count
    assert native > 30

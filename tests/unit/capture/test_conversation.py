"""Connections: what is said on them, and what is lost of it."""

import io
import os
import random
import time
from struct import pack
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.capture import Conversation, Limits, open_capture, sides
from pyspark_kafkaproto.capture.about import about, text_of
from pyspark_kafkaproto.capture.message import REQUEST, RESPONSE, TOKEN
from pyspark_kafkaproto.capture.report import as_json, detail_lines, line
from pyspark_kafkaproto.capture.tcp import Assembler, Budget
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pyspark_kafkaproto.wire.frame import encode_request, encode_response
from tests.unit.capture.talks import (
    fetch_request,
    fetch_response,
    metadata_request,
    metadata_response,
)
from tests.unit.capture.wire import Talk, ethernet, pcap, read, tcp


def told(messages):
    return [(message.kind, message.api, message.correlation_id) for message in messages]


def pairs(count, start=1):
    """What `told` gives for `count` Fetch requests, each answered."""
    numbers = range(start, start + count)
    return [(kind, "Fetch", number) for number in numbers for kind in (REQUEST, RESPONSE)]


def fetches(talk, count, start=1, pieces=1 << 20, records=b"x" * 3000):
    for number in range(start, start + count):
        talk.say(0, fetch_request(number, number), pieces)
        talk.say(1, fetch_response(number, records), pieces)
    return talk


def test_requests_are_matched_to_responses():
    talk = Talk().open()
    talk.say(0, fetch_request(7)).say(0, metadata_request(8))
    talk.say(1, metadata_response(8)).say(1, fetch_response(7, error_code=1))
    (fetch, metadata, names, answer), notes = read(talk.close().pcap())
    assert (fetch.client_id, fetch.version) == ("reader", 11)
    assert (answer.answers, answer.latency_ns) == (fetch.number, 3_000_000)
    assert (names.answers, names.latency_ns, names.version) == (metadata.number, 1_000_000, 12)
    assert fetch.peers == (1, "10.0.0.1:50000", "10.0.0.2:9092")
    assert text_of(about(answer)) == "orders[0@9] OFFSET_OUT_OF_RANGE(1) for orders-0"
    assert notes == []


@pytest.mark.parametrize("pieces", [1, 3, 7, 1448])
def test_frames_in_any_segmentation(pieces):
    messages, notes = read(fetches(Talk().open(), 3, pieces=pieces, records=b"r" * 99).pcap())
    assert told(messages) == pairs(3)
    assert notes == []


@pytest.mark.slow
def test_many_frames_in_one_segment():
    talk = Talk().open()
    talk.say(0, b"".join(fetch_request(number) for number in range(1, 400)), 1 << 15)
    talk.say(1, b"".join(fetch_response(number) for number in range(1, 400)), 1 << 15)
    messages, _ = read(talk.pcap())
    assert [message.correlation_id for message in messages] == [*range(1, 400)] * 2


@pytest.mark.parametrize("seed", range(8))
def test_retransmissions_overlaps_and_reordering_change_nothing(seed):
    """Near the end of the sequence numbers, so that they wrap."""
    rng = random.Random(seed)
    talk = Talk(seqs=(2**32 - 700, 2**32 - 3000)).open()
    opened = len(talk.packets)
    for number in range(1, 9):
        for side, frame in ((0, fetch_request(number)), (1, fetch_response(number, b"z" * 2500))):
            begin = talk.seqs[side]
            talk.say(side, frame, rng.choice([100, 700, 1448]))
            start = rng.randrange(len(frame))
            overlap = frame[start : start + rng.randrange(1, 400)]
            talk.packet(side, payload=overlap, seq=begin + start)
    body = talk.packets[opened:]
    for _ in range(len(body) // 4):  # neighbours change places
        at = rng.randrange(len(body) - 1)
        body[at], body[at + 1] = body[at + 1], body[at]
    talk.packets[opened:] = body
    messages, notes = read(talk.pcap())
    assert sorted(told(messages)) == sorted(pairs(8))
    assert [note.text for note in notes] == []


def test_a_message_is_over_when_the_segment_that_it_lacked_has_come():
    """Its end was there early, and nobody could read it: that is part of the latency."""
    frame = fetch_response(1, b"z" * 500)
    talk = Talk().open().say(0, fetch_request(1))
    begin = talk.seqs[1]
    talk.packet(1, payload=frame[400:], seq=begin + 400)
    talk.packet(1, payload=frame[200:400], seq=begin + 200)
    talk.time_ns += 200_000_000
    talk.packet(1, payload=frame[:200], seq=begin)
    (_, answer), notes = read(talk.pcap())
    assert (answer.lost_bytes, answer.latency_ns) == (0, 203_000_000)
    assert answer.time_ns == talk.time_ns
    assert notes == []


@pytest.mark.parametrize("side", [0, 1])
def test_a_lost_segment_costs_the_frames_it_held_and_no_more(side):
    talk = fetches(Talk().open(), 2)
    talk.say(0, fetch_request(3)) if side else talk.lose(0, fetch_request(3))
    talk.lose(1, fetch_response(3)) if side else talk.say(1, fetch_response(3))
    messages, notes = read(fetches(talk, 12, start=4).pcap())
    assert told(messages)[:4] == pairs(2)
    assert set(pairs(12, start=4)) <= set(told(messages))
    lost = len(fetch_response(3) if side else fetch_request(3))
    assert f"{lost} bytes were not captured" in notes[0].text


@pytest.mark.parametrize("count", [40, 64, 65, 1000])
def test_answers_are_found_behind_a_gap_however_many_it_held(count):
    """Clients that do not wait for answers have many requests on their way."""
    talk = fetches(Talk().open(), 1)
    for number in range(2, count + 2):
        talk.say(0, fetch_request(number))
    lost = b"".join(fetch_response(number) for number in range(2, count + 2))
    talk.lose(1, lost[:-20]).say(1, lost[-20:])
    messages, notes = read(fetches(talk, 12, start=count + 2).pcap())
    answered = [message.correlation_id for message in messages if message.answers]
    assert answered == [1, *range(count + 2, count + 14)]
    assert f"{len(lost) - 20} bytes were not captured, 20 more could not" in notes[0].text


def test_a_gap_inside_a_frame_costs_that_frame_its_end_alone():
    frame = fetch_response(1, b"z" * 5000)
    talk = Talk().open().say(0, fetch_request(1))
    talk.say(1, frame[:1000]).lose(1, frame[1000:2000]).say(1, frame[2000:])
    messages, _ = read(fetches(talk, 12, start=2).pcap())
    assert sorted(told(messages)) == sorted(pairs(13))
    cut = next(message for message in messages if message.lost_bytes)
    assert (len(cut.payload), cut.lost_bytes) == (996, len(frame) - 1000)
    assert (cut.correlation_id, cut.body()) == (1, None)
    assert "were not captured" in cut.problem


def test_lost_bytes_across_frames_are_reported_and_the_next_frame_is_found():
    """The gap ends in the middle of a response: its rest is passed over."""
    talk = fetches(Talk().open(), 1)
    frames = [fetch_response(number, os.urandom(900)) for number in range(2, 20)]
    for number in range(2, 20):
        talk.say(0, fetch_request(number))
    stream = b"".join(frames)
    gap = slice(500, len(frames[0]) + len(frames[1]) + 300)
    talk.say(1, stream[: gap.start], 400).lose(1, stream[gap]).say(1, stream[gap.stop :], 400)
    messages, notes = read(talk.pcap())
    answered = [message.correlation_id for message in messages if message.kind == RESPONSE]
    assert answered == [1, *range(5, 20)]
    first = next(message for message in messages if message.correlation_id == 5 and message.answers)
    assert first.skipped_bytes > 0
    assert "not captured" in notes[0].text
    assert "Fetch v11 #2, Fetch v11 #3, Fetch v11 #4" in notes[1].text


def test_zeros_in_requests_are_no_request_that_is_waited_for():
    """A topic's id that is not known is 16 of them: they would be a Produce v0 of 128 KiB."""
    talk = Talk().open()
    for number in range(1, 3):
        talk.say(0, metadata_request(number)).say(1, metadata_response(number))
    frames = metadata_request(3) + metadata_request(4)
    talk.lose(0, frames[:60]).say(0, frames[60:])
    for number in range(5, 40):
        talk.say(0, metadata_request(number)).say(1, metadata_response(number))
    messages, _ = read(talk.pcap())
    answered = [message.correlation_id for message in messages if message.answers]
    assert answered == [1, 2, *range(5, 40)]


@pytest.mark.parametrize("kept", [13, 17, 40])
def test_no_frame_is_put_together_of_what_stands_before_and_behind_a_gap(kept):
    """Its header would be of one request, and what it asks for of another."""
    frames = [fetch_request(number, offset=number) for number in range(2, 18)]
    talk = fetches(Talk().open(), 1)
    talk.lose(0, frames[0][:-4]).say(0, frames[0][-4:] + frames[1][:kept])
    talk.lose(0, frames[1][kept:] + frames[2][:kept]).say(0, frames[2][kept:])
    for _ in range(10):  # as many segments as a hole is waited for
        talk.packet(1)
    talk.say(0, b"".join(frames[3:]))
    messages, notes = read(talk.close().pcap())
    asked = {message.correlation_id: message.body() for message in messages if not message.answers}
    assert set(range(5, 18)) <= set(asked) <= {1, 3, *range(5, 18)}
    assert asked.get(3) is None  # nobody knows what it asks for
    assert all(
        body.topics[0].partitions[0].fetch_offset == number
        for number, body in asked.items()
        if body is not None
    )
    assert "bytes were not captured" in notes[0].text


def test_frames_behind_what_seemed_to_begin_a_large_one_are_found_at_the_end():
    """It never ends: what it would hold is looked at when the stream is over, or at a gap."""
    seeming = (100_000).to_bytes(4) + fetch_request(99)[4:30]
    talk = fetches(Talk().open(), 1).lose(0, b"lost").say(0, b"rest" + seeming)
    for number in range(2, 6):
        talk.say(0, fetch_request(number))
    messages, _ = read(talk.pcap())
    assert told(messages) == [*pairs(1), *((REQUEST, "Fetch", number) for number in range(2, 6))]


def test_a_stream_caught_in_the_middle():
    talk = Talk()
    rest = fetch_response(1, os.urandom(4000))
    talk.say(1, rest[1500:], 700)
    cut = fetch_request(2)[5:]
    talk.say(0, cut)
    fetches(talk, 3, start=3)
    messages, (note,) = read(talk.pcap())
    assert told(messages) == pairs(3, start=3)
    assert {message.peers.client for message in messages} == {"10.0.0.1:50000"}
    skipped = [message.skipped_bytes for message in messages]
    assert skipped == [len(cut), len(rest) - 1500, 0, 0, 0, 0]
    assert note.text == f"{sum(skipped)} bytes could not be read as frames"


def test_an_answer_without_its_request_is_passed_over_in_whole():
    """Much of it looks like the start of a large request, whose end is waited for."""
    keys = [ApiVersionsResponse.ApiVersion(api_key=key, max_version=9) for key in range(60)]
    answer = encode_response(ApiVersionsResponse(api_keys=tuple(keys)), 4, 0)
    messages, _ = read(fetches(Talk().say(1, answer), 2).pcap())
    assert told(messages) == pairs(2)
    assert [message.skipped_bytes for message in messages] == [0, len(answer), 0, 0]


@pytest.mark.parametrize("ports", [(), (9092,)])
def test_a_stream_caught_in_the_middle_of_a_large_answer(ports):
    talk = Talk().say(1, fetch_response(1, b"r" * 1_000_000)[1000:], 30_000)
    messages, _ = read(fetches(talk, 3, start=2).pcap(), ports)
    assert told(messages) == pairs(3, start=2)


def test_a_large_first_request():
    part = ProduceRequest.Topic.Partition(records=b"r" * 1_000_000)
    topics = (ProduceRequest.Topic(name="orders", partition_data=(part,)),)
    large = encode_request(ProduceRequest(acks=1, topic_data=topics), 9, 1, "writer")
    messages, _ = read(fetches(Talk().open().say(0, large, 30_000), 1, start=2).pcap())
    assert told(messages) == [(REQUEST, "Produce", 1), *pairs(1, start=2)]


def test_a_port_says_who_the_broker_is_and_leaves_the_rest_alone():
    talk = Talk().say(1, fetch_response(1)).say(0, fetch_request(2)).say(1, fetch_response(2))
    assert told(read(talk.pcap(), ports=[9092])[0]) == pairs(1, start=2)
    assert read(talk.pcap(), ports=[9093]) == ([], [])


def test_snapped_packets_show_what_was_captured():
    talk = Talk().open().say(0, fetch_request(1))
    talk.packet(1, payload=fetch_response(1, b"z" * 1000), keep=200)
    talk.seqs[1] += len(fetch_response(1, b"z" * 1000))
    messages, _ = read(fetches(talk, 2, start=2).pcap())
    assert told(messages) == pairs(3)
    assert messages[1].lost_bytes == messages[1].size_bytes - len(messages[1].payload) > 800


@pytest.mark.parametrize("ports", [[], [9092]])
def test_a_lost_first_request_does_not_hide_the_connection(ports):
    talk = Talk().open().lose(0, fetch_request(1)).say(1, fetch_response(1))
    messages, notes = read(fetches(talk, 20, start=2).close().pcap(), ports)
    assert set(pairs(15, start=7)) <= set(told(messages))
    assert not any("neither Kafka" in note.text for note in notes)


@pytest.mark.parametrize("ports", [[], [9092]])
def test_a_request_that_is_lost_with_its_answer_costs_no_other(ports):
    """Captures lose packets in bursts; the next requests wait, and their answers come meanwhile."""
    talk = fetches(Talk().open(), 2)
    talk.lose(0, fetch_request(3)).lose(1, fetch_response(3))
    fetches(talk, 1, start=4)
    for _ in range(10):  # the hole before the answer is given up first
        talk.packet(0)
    messages, notes = read(fetches(talk, 3, start=5).pcap(), ports)
    assert sorted(told(messages)) == sorted([*pairs(2), *pairs(4, start=4)])
    assert all(message.answers for message in messages if message.kind == RESPONSE)
    assert len(notes) == 1
    assert "were not captured" in notes[0].text


@pytest.mark.parametrize("ports", [[], [9092]])
def test_a_lost_first_request_costs_no_answer_but_its_own(ports):
    """The next requests wait for it, and are known before their answers are looked at."""
    talk = Talk().open().lose(0, metadata_request(1)).say(1, metadata_response(1))
    messages, notes = read(fetches(talk, 3, start=2).pcap(), ports)
    assert told(messages) == pairs(3, start=2)
    assert all(message.answers for message in messages if message.kind == RESPONSE)
    assert len(notes) == 1
    assert "were not captured" in notes[0].text


@pytest.mark.parametrize("ports", [[], [9092]])
def test_a_first_answer_that_stands_before_its_request(ports):
    """Several queues of a network card, captured with `tcpdump -i any`."""
    talk = Talk().open()
    opened = len(talk.packets)
    fetches(talk, 1)
    talk.packets[opened:] = talk.packets[opened:][::-1]
    messages, _ = read(fetches(talk, 5, start=2).close().pcap(), ports)
    assert told(messages) == [(REQUEST, "Fetch", 1), *pairs(5, start=2)]


def test_snapped_packets_whose_length_is_left_to_the_card():
    """How much is missing of a request is known before its answer comes."""

    def unsaid(packet):
        return ethernet(packet[:2] + bytes(2) + packet[4:])

    talk = Talk(wrap=unsaid).open()
    for number in (1, 2):
        for side, frame in ((0, fetch_request(number)), (1, fetch_response(number))):
            talk.packet(side, payload=frame, keep=54 + 30)
            talk.seqs[side] += len(frame)
    messages, notes = read(talk.close().pcap())
    assert told(messages) == pairs(2)
    assert {message.latency_ns for message in messages} == {None, 1_000_000}
    assert [note.text.partition(" ")[2] for note in notes] == ["bytes were not captured"]


def test_the_shortest_start_of_a_frame_is_enough():
    """A snap length that leaves 12 bytes: size, API, version, correlation id."""
    talk = Talk().open()
    for number in range(1, 6):
        for side, frame in ((0, fetch_request(number)), (1, fetch_response(number))):
            talk.packet(side, payload=frame, keep=14 + 20 + 20 + 12)
            talk.seqs[side] += len(frame)
    messages, _ = read(talk.close().pcap())
    assert told(messages) == pairs(5)
    assert {len(message.payload) for message in messages} == {8}
    assert all("were not captured" in line(message) for message in messages)
    assert all(list(detail_lines(message)) for message in messages)


def test_a_port_that_was_named_is_searched_whatever_comes_first():
    talk = Talk().open().say(0, b"PROXY TCP4 10.0.0.1 10.0.0.2 50000 9092\r\n")
    fetches(talk, 3)
    assert told(read(talk.pcap(), ports=[9092])[0]) == pairs(3)


def processor_s(job):
    began = time.process_time()
    job()
    return time.process_time() - began


def candidates(count, size):
    """Junk in which a frame of `size` bytes seems to begin every 16 bytes."""
    return pack(">ihhihh", size, 3, 0, 1, -1, 0) * count


@pytest.mark.slow
def test_junk_full_of_seeming_frames_takes_time_in_proportion():
    talk = Talk().open().say(0, fetch_request(1)).say(0, b"\xff" * 4)
    talk.say(0, candidates(8_000, 4 << 20), 60_000)
    talk.say(0, b"\xff" * (5 << 20), 60_000)  # so that the last of them can be judged
    capture = fetches(talk, 5, start=2).pcap()
    messages = []
    assert processor_s(lambda: messages.extend(read(capture)[0])) < 3
    assert set(pairs(5, start=2)) <= set(told(messages))


@pytest.mark.slow
def test_zeros_are_passed_over_at_once():
    talk = Talk().say(1, bytes(2 << 20), 30_000)
    junk = talk.pcap()
    assert processor_s(lambda: read(junk)) < 2
    messages, _ = read(fetches(talk, 3).pcap())
    assert told(messages) == pairs(3)


@pytest.mark.parametrize("blocks", [40, pytest.param(780, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_reversed", [True, False])
def test_very_many_early_segments_take_time_in_proportion(is_reversed, blocks):
    fed, gaps = [], []
    sink = SimpleNamespace(feed=lambda chunk, _: fed.append(chunk), gap=lambda n, _: gaps.append(n))
    budget = Budget(128 << 20)
    assembler = Assembler(sink, budget)
    assembler.begin(0)
    seqs = range(1, 256 * blocks)

    def push():
        for seq in reversed(seqs) if is_reversed else seqs:
            assembler.push(seq, bytes([seq & 255]), 0, 1)
        assert budget.left_bytes < (128 << 20) - 200 * len(seqs)
        assembler.push(0, b"\0", 0, 1)

    assert processor_s(push) < 4
    assert b"".join(fed) == bytes(range(256)) * blocks
    assert (gaps, budget.left_bytes) == ([], 128 << 20)


def test_an_overlap_does_not_mix_up_what_waits():
    fed = []
    assembler = Assembler(SimpleNamespace(feed=lambda c, _: fed.append(c), gap=None), Budget(9999))
    assembler.begin(100)
    assembler.push(100, b"0123456789", 0, 1)
    assembler.push(130, b"d" * 10, 0, 1)
    assembler.push(105, b"56789" + b"b" * 10, 0, 1)  # its new end is delivered: 120 is next
    assembler.push(135, b"d" * 5 + b"e" * 5, 0, 1)
    assembler.push(120, b"c" * 10, 0, 1)
    assert b"".join(fed) == b"0123456789" + b"b" * 10 + b"c" * 10 + b"d" * 10 + b"e" * 5


def test_early_segments_keep_their_order_without_memory_for_them():
    fed, gaps = [], []
    sink = SimpleNamespace(
        feed=lambda chunk, _: fed.append(chunk), gap=lambda size, _: gaps.append((len(fed), size))
    )
    assembler = Assembler(sink, Budget(300))
    assembler.begin(0)
    for seq, payload in ((1000, b"c" * 10), (500, b"b" * 10), (1010, b"d" * 5), (2000, b"e")):
        assembler.push(seq, payload, 0, 1)
    assembler.flush()
    assert b"".join(fed) == b"b" * 10 + b"c" * 10 + b"d" * 5 + b"e"
    assert gaps == [(0, 500), (1, 490), (3, 985)]


def test_a_port_is_used_again():
    first = fetches(Talk().open(), 2).close()
    again = Talk(seqs=(900_000, 100_000))
    again.packets, again.time_ns = first.packets, first.time_ns
    messages, notes = read(fetches(again.open(), 2).pcap())
    assert told(messages) == pairs(2) * 2
    assert [message.peers.number for message in messages] == [1] * 4 + [2] * 4
    assert notes == []


@pytest.mark.parametrize("seqs", [(5000, 900_000), (900_000, 5000), (5000, 6000)])
def test_a_port_is_used_again_after_an_end_that_was_not_captured(seqs):
    """The new sequence numbers may lie before the old ones as well as behind them."""
    first = fetches(Talk(seqs=(500_000, 500_000)).open(), 2)
    again = Talk(seqs=seqs)
    again.packets, again.time_ns = first.packets, first.time_ns
    messages, _ = read(fetches(again.open(), 3).pcap())
    assert told(messages) == pairs(2) + pairs(3)


def test_an_opening_that_comes_again_or_late_opens_nothing():
    talk = Talk().open()
    opening = list(talk.packets)
    fetches(talk, 2).packets[4:4] = opening
    messages, _ = read(talk.pcap())
    assert told(messages) == pairs(2)
    late = fetches(Talk().open(), 2)
    late.packets[:4] = [late.packets[each] for each in (2, 0, 1, 3)]
    messages, _ = read(late.pcap())
    assert told(messages) == pairs(2)
    assert {message.peers.number for message in messages} == {1}


def test_a_connection_of_an_end_with_itself_is_passed_over():
    """Both of its directions have the same addresses: nobody could tell them apart."""
    conversation = Conversation(limits=Limits(connections=4))
    for port in range(1, 40):
        end = ("10.0.0.1", port)
        talk = Talk(client=end, broker=end).say(0, fetch_request(1))
        for packet in open_capture(io.BytesIO(talk.pcap())):
            conversation.feed(packet)
    assert conversation.flows == {}


@pytest.mark.parametrize("lost", [False, True])
def test_correlation_ids_go_on_below_zero(lost):
    """After 2^31 requests; the frame behind a loss is known by those that wait."""
    talk = fetches(Talk().open(), 1, start=2**31 - 1)
    first, second = -(2**31), -(2**31) + 1
    talk.say(0, fetch_request(first)).say(0, fetch_request(second))
    answer = fetch_response(first, b"x" * 3000)
    if lost:
        talk.say(1, answer[:2]).lose(1, answer[2:])
    else:
        talk.say(1, answer)
    messages, _ = read(talk.say(1, fetch_response(second, b"y" * 3000)).close().pcap())
    asked = [*pairs(1, 2**31 - 1), (REQUEST, "Fetch", first), (REQUEST, "Fetch", second)]
    answered = [(RESPONSE, "Fetch", first)] * (not lost) + [(RESPONSE, "Fetch", second)]
    assert told(messages) == asked + answered


def below_zero(count):
    """A client that has counted so far, and connects anew."""
    talk = fetches(Talk().open(), count, start=-(2**31) + 5)
    return talk, pairs(count, -(2**31) + 5)


def test_a_connection_begins_below_zero():
    talk, expected = below_zero(3)
    assert told(read(talk.close().pcap())[0]) == expected
    caught, expected = below_zero(3)
    assert told(read(pcap(caught.packets[4:]))[0]) == expected[2:]


def test_requests_below_zero_are_found_behind_a_loss():
    talk, expected = below_zero(2)
    talk.lose(0, fetch_request(-50)[:20]).say(0, fetch_request(-50)[20:])
    fetches(talk, 2, start=-40)
    messages, _ = read(talk.close().pcap())
    assert told(messages) == [*expected, *pairs(2, -40)]


def test_a_token_is_no_request_with_an_id_below_zero():
    handshake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1, "c")
    talk = Talk().open().say(0, handshake)
    talk.say(1, encode_response(SaslHandshakeResponse(), 0, 1))
    token = pack(">hhih", 3, 99, -7, 2) + b"secret"
    messages, _ = read(talk.say(0, len(token).to_bytes(4) + token).close().pcap())
    assert [message.kind for message in messages] == [REQUEST, RESPONSE, TOKEN]


def test_a_reset_and_an_unanswered_request():
    talk = fetches(Talk().open(), 1).say(0, fetch_request(2)).close(reset=True)
    messages, notes = read(talk.pcap())
    assert told(messages) == [*pairs(1), (REQUEST, "Fetch", 2)]
    assert "no response in the capture to Fetch v11 #2" in notes[0].text


def test_produce_without_acknowledgement_waits_for_no_response():
    produce = encode_request(ProduceRequest(acks=0), 8, 1, "writer")
    messages, notes = read(Talk().open().say(0, produce).close().pcap())
    assert (told(messages), notes) == ([(REQUEST, "Produce", 1)], [])


def test_nor_does_one_whose_records_were_not_captured():
    """Its acks stand before them."""
    topics = (ProduceRequest.Topic(name="orders"),)
    produce = encode_request(ProduceRequest(acks=0, topic_data=topics), 8, 1, "writer")
    talk = Talk().open().say(0, produce).close()
    at = next(i for i, (_, data, _) in enumerate(talk.packets) if produce in data)
    time_ns, data, size = talk.packets[at]
    talk.packets[at] = time_ns, data[:-5], size
    messages, notes = read(talk.pcap())
    assert told(messages) == [(REQUEST, "Produce", 1)]
    assert [note.text for note in notes] == ["5 bytes were not captured"]


def test_topic_ids_get_the_names_that_the_capture_tells():
    topic_id = bytes(range(16))
    request = FetchRequest(topics=(FetchRequest.Topic(topic_id=topic_id),))
    talk = Talk().open().say(0, metadata_request(1)).say(1, metadata_response(1))
    messages, _ = read(talk.say(0, encode_request(request, 13, 2, "reader")).pcap())
    assert list(about(messages[-1]).topics) == ["orders"]
    alone, _ = read(Talk().open().say(0, encode_request(request, 13, 2, "reader")).pcap())
    assert list(about(alone[0]).topics) == ["AAECAwQFBgcICQoLDA0ODw"]


@pytest.mark.parametrize("seen", [1, 600])
def test_a_client_id_that_is_not_utf_8_is_read_as_brokers_do(seen):
    talk = Talk().open()
    for number in range(seen):  # the last ones have a reader of their own
        said = fetch_request(number, client_id="cafe").replace(b"cafe", b"caf\xe9")
        talk.say(0, said).say(1, fetch_response(number))
    messages, _ = read(talk.pcap())
    assert {message.client_id for message in messages} == {"caf\ufffd"}
    assert {text_of(about(message)) for message in messages[::2]} == {"orders[0@0]"}
    assert messages[-2].body().topics[0].topic == "orders"
    assert not any(message.problem for message in messages)


def test_a_refused_version_is_answered_in_version_0():
    ask = encode_request(ApiVersionsRequest(), 5, 1, "new")
    answer = encode_response(ApiVersionsResponse(error_code=35), 0, 1)
    messages, _ = read(Talk().open().say(0, ask).say(1, answer).pcap())
    assert text_of(about(messages[1])) == "UNSUPPORTED_VERSION(35)"
    assert messages[1].problem == ""


def test_an_unknown_api_and_an_unknown_version_are_shown_as_they_are():
    raft = b"\x00\x34\x00\x01\x00\x00\x00\x05\xff\xffbody"
    new = fetch_request(6)
    talk = Talk().open().say(0, fetch_request(4)).say(0, len(raft).to_bytes(4) + raft)
    messages, _ = read(talk.say(0, new[:6] + b"\x00\x27" + new[8:]).pcap())
    assert [message.title for message in messages[1:]] == ["API 52 v1 request", "Fetch v39 request"]
    assert [message.body() for message in messages[1:]] == [None, None]
    assert "no API 52" in messages[1].problem
    assert "Fetch request v39: known are 0-18" in messages[2].problem


@pytest.mark.parametrize("api_key", [58, 59])
def test_what_only_brokers_say_of_secrets_is_hidden(api_key):
    """An Envelope holds whole requests for controllers, a snapshot holds credentials."""
    said = pack(">hhih", api_key, 0, 2, -1) + b"\0" + b"s3cret"
    talk = Talk().open().say(0, fetch_request(1)).say(0, len(said).to_bytes(4) + said)
    answer = pack(">i", 2) + b"\0" + b"s3cret"
    talk.say(1, fetch_response(1)).say(1, len(answer).to_bytes(4) + answer)
    messages, _ = read(talk.pcap())
    assert [message.api_key for message in messages] == [1, api_key, 1, api_key]
    for message in messages:
        shown = [line(message), *detail_lines(message), str(as_json(message, with_fields=True))]
        assert "s3cret" not in "".join(shown)
        assert b"s3cret".hex(" ") not in "".join(shown)


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1,)])
def test_an_answer_of_which_nobody_knows_the_request_is_hidden(order):
    """Its correlation id may be damaged; the request may be lost, or come late in the capture."""
    token = DescribeDelegationTokenResponse.Token(token_id="id", hmac=b"s3cret")
    asked = encode_request(DescribeDelegationTokenRequest(owners=None), 3, 2, "c")
    answer = encode_response(DescribeDelegationTokenResponse(tokens=(token,)), 3, 2)
    talk = fetches(Talk().open(), 1)
    for side in order:
        talk.say(side, (asked, answer)[side])
    messages, _ = read(talk.say(1, answer[:7] + b"\x4d" + answer[8:]).pcap())
    assert told(messages)[-1] == (RESPONSE, "unknown", 77)
    shown = [
        "".join([*detail_lines(message), str(as_json(message, with_fields=True))])
        for message in messages
    ]
    for each in ("s3cret", b"s3cret".hex(" "), b"s3cret".hex()):
        assert each not in "".join(shown)


def test_bare_sasl_tokens_after_the_old_handshake():
    shake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1, "c")
    answer = encode_response(SaslHandshakeResponse(mechanisms=("PLAIN",)), 0, 1)
    token = b"\0alice\0secret"
    talk = Talk().open().say(0, shake).say(1, answer)
    talk.say(0, len(token).to_bytes(4) + token).say(1, (4).to_bytes(4) + b"good")
    messages, _ = read(fetches(talk, 1, start=2).pcap())
    assert [message.kind for message in messages[2:4]] == [TOKEN, TOKEN]
    assert told(messages)[4:] == pairs(1, start=2)


@pytest.mark.parametrize("answer", [b"", b"ok", b"\0\0\0"])
def test_bare_sasl_tokens_may_be_shorter_than_any_header(answer):
    """A broker answers PLAIN's token with an empty one."""
    shake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, 0, "c")
    talk = Talk().open().say(0, shake)
    talk.say(1, encode_response(SaslHandshakeResponse(mechanisms=("PLAIN",)), 0, 0))
    talk.say(0, (1).to_bytes(4) + b"\0").say(1, len(answer).to_bytes(4) + answer)
    messages, notes = read(fetches(talk, 2, start=1).pcap())
    assert [(message.kind, message.size_bytes) for message in messages[2:4]] == [
        (TOKEN, 1),
        (TOKEN, len(answer)),
    ]
    assert told(messages)[4:] == pairs(2, start=1)
    assert notes == []


HELLO = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"


@pytest.mark.parametrize("opened", [True, False])
def test_tls_is_recognised_and_said_once(opened):
    talk = Talk().open() if opened else Talk()
    for _ in range(4):
        talk.say(0, HELLO).say(1, b"\x17\x03\x03\x00\x20" + os.urandom(32))
    messages, notes = read(talk.close().pcap())
    assert messages == []
    assert [note.text for note in notes if "TLS" in note.text] == [notes[0].text]
    assert notes[0].text.startswith("TLS: it is encrypted")


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00\x00\x00\x02ab"])
def test_what_is_no_kafka_is_counted_and_left_alone(greeting):
    talk = Talk().open().say(0, greeting).say(1, b"HTTP/1.1 200 OK\r\n" + bytes(2000))
    messages, notes = read(talk.close().pcap())
    assert messages == []
    assert notes[-1].text == "1 connection carried neither Kafka nor TLS"


@pytest.mark.slow
def test_other_traffic_in_the_middle_of_a_capture_ends_the_search(monkeypatch):
    monkeypatch.setattr(sides, "_CAUGHT_BYTES_MAX", 1 << 20)
    talk = Talk()
    for _ in range(900):
        talk.say(0, os.urandom(1400))
    _, notes = read(talk.pcap())
    assert notes[-1].text == "1 connection carried neither Kafka nor TLS"


@pytest.mark.parametrize("kept", [0, 20])
@pytest.mark.parametrize("ports", [(), (9092,)])
def test_a_connection_that_shows_too_little_of_itself_is_told_of(ports, kept):
    """Caught in the middle, by a capture that keeps the start of each packet alone."""
    talk = Talk()
    for number in range(1, 4):
        for side, frame in ((0, fetch_request(number)), (1, fetch_response(number))):
            talk.packet(side, payload=frame, keep=14 + 40 + kept)
            talk.seqs[side] += len(frame)
    messages, notes = read(talk.pcap(), ports)
    assert messages == []
    (note,) = notes
    assert note.text.startswith("1 connection had too little to tell what is said: caught in the ")


def test_a_connection_on_which_nothing_is_said_is_none_to_tell_of():
    assert read(Talk().open().close().pcap()) == ([], [])


def test_a_frame_beyond_the_memory_that_is_left_keeps_its_start():
    talk = fetches(Talk().open(), 1)
    big = fetch_response(2, b"z" * 200_000)
    talk.say(0, fetch_request(2)).say(1, big, 1448)
    messages, _ = read(fetches(talk, 1, start=3).pcap(), limits=Limits(buffered_bytes=100_000))
    assert told(messages) == pairs(3)
    assert messages[3].size_bytes == len(big) - 4
    assert 0 < len(messages[3].payload) <= 16 << 10


def test_too_many_connections_give_up_the_oldest():
    talk = fetches(Talk().open(), 1)
    for port in range(1, 41):
        other = Talk(client=("10.0.0.1", 1000 + port)).open().say(0, fetch_request(1))
        talk.packets += other.packets
    messages, _ = read(talk.pcap(), limits=Limits(connections=8))
    assert len(messages) == 42


@pytest.mark.slow
def test_requests_that_nobody_answers_are_bounded_over_all_connections(monkeypatch):
    monkeypatch.setattr(sides, "_ALL_PENDING_MAX", 100)
    conversation = Conversation()
    answered = fetches(Talk().open(), 1)
    packets = list(answered.packets)
    for port in range(1, 41):
        other = Talk(client=("10.0.0.1", 1000 + port)).open()
        for number in range(50):
            other.say(0, fetch_request(number))
        packets += other.packets
    opened = len(answered.packets)
    packets += fetches(answered, 5, start=2).packets[opened:]
    found = []
    for packet in open_capture(io.BytesIO(pcap(packets))):
        found += conversation.feed(packet)
        waiting = {id(of): len(of.pending) for of, _ in conversation.flows.values()}
        assert sum(waiting.values()) == conversation._shared.pending <= 100 + 8 * 41
    assert told(found)[-10:] == pairs(5, start=2)
    conversation.finish()
    assert conversation._shared.pending == 0


def test_an_unknown_link_type_is_said():
    _, notes = read(Talk().open().pcap(link_type=147))
    assert [note.text for note in notes] == [
        "link type 147 is not known here: its packets are passed over"
    ]


def test_an_incomplete_frame_at_the_end_is_shown():
    messages, _ = read(Talk().open().say(0, fetch_request(1)[:-5]).pcap())
    assert told(messages) == [(REQUEST, "Fetch", 1)]
    assert messages[0].lost_bytes == 5


def test_acknowledgements_without_bytes_open_no_connection():
    talk = Talk()
    talk.packet(0)
    assert read(talk.pcap()) == ([], [])
    assert tcp  # the builder's own piece


@pytest.mark.parametrize("late", [-3, -4, -5])
def test_segments_that_stand_behind_the_ends_change_nothing(late):
    """Lost on the way and sent again, or delivered by another queue of the network card."""
    talk = fetches(Talk().open(), 2, pieces=1448).close()
    talk.packets.append(talk.packets.pop(late))
    messages, notes = read(talk.pcap())
    assert told(messages) == pairs(2)
    assert [message.lost_bytes for message in messages] == [0] * 4
    assert notes == []


def test_what_is_missing_before_the_ends_is_waited_for_a_while():
    talk = Talk().open().say(0, fetch_request(1))
    talk.lose(1, fetch_response(1)[:20]).say(1, fetch_response(1)[20:]).close()
    conversation = Conversation()
    told_of = []
    for packet in open_capture(io.BytesIO(talk.pcap())):
        told_of += conversation.feed(packet)
    assert len(told_of) == 1
    told_of += conversation.feed(packet._replace(time_ns=packet.time_ns + 3_000_000_000))
    assert "20 bytes were not captured" in told_of[1].text
    assert conversation._shared.budget.left_bytes == Limits().buffered_bytes


@pytest.mark.parametrize("ahead", [500, 0])
def test_what_comes_after_the_end_gives_its_memory_back(ahead):
    """Segments of a connection that both sides have closed: early ones, and half a frame."""
    talk = Talk().open().say(0, fetch_request(1)).say(1, fetch_response(1)).close()
    late = (100_000).to_bytes(4) + bytes(20_000)
    talk.packet(1, payload=late, seq=talk.seqs[1] + ahead)
    conversation = Conversation()
    for packet in open_capture(io.BytesIO(talk.pcap())):
        conversation.feed(packet)
    budget = conversation._shared.budget
    assert budget.left_bytes < Limits().buffered_bytes
    conversation.finish()
    assert budget.left_bytes == Limits().buffered_bytes


@pytest.mark.parametrize(
    ("lost", "junk", "text"),
    [
        (b"x" * 30, b"", "30 bytes were not captured"),
        (b"", b"?" * 30, "30 bytes could not be read as frames"),
        (b"x" * 30, b"?" * 30, "30 bytes were not captured, 30 more could not be read as frames"),
    ],
)
def test_what_is_missing_is_told_from_what_cannot_be_read(lost, junk, text):
    talk = fetches(Talk().open(), 1).say(0, junk).lose(0, lost)
    _, notes = read(fetches(talk, 2, start=2).pcap())
    assert [note.text for note in notes] == [text]

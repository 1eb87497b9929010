"""Captures of our own: what they say beside the frames."""

import io
import shutil
import subprocess

import pytest

from pyspark_kafkaproto.capture import Message, open_capture, read_messages
from pyspark_kafkaproto.capture.merged import MergedReader
from pyspark_kafkaproto.capture.recorder import Address, Recorder, file_start
from pyspark_kafkaproto.capture.report import line
from pyspark_kafkaproto.capture.selection import Selection
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.wire.frame import encode_request
from pyspark_kafkaproto.wire.ids import id_text
from tests.unit.capture.wire import block, option, read


def by_id(topic_id):
    """A Fetch that names its topic by id alone."""
    part = FetchRequest.Topic.Partition(partition=3, fetch_offset=5)
    request = FetchRequest(topics=(FetchRequest.Topic(topic_id=topic_id, partitions=(part,)),))
    return memoryview(encode_request(request, 18, 1, "c"))[4:]


def ids(count):
    return {number.to_bytes(16): f"topic-{number}.x_y" for number in range(1, count + 1)}


def recorded(names, asked):
    """A capture whose process knew `names` and asked for a topic by id."""
    out = io.BytesIO()
    recorder = Recorder(out.write)
    recorder.name_topics(names)
    track = recorder.connection(Address("10.0.0.1", 1), Address("10.0.0.2", 9092), time_ns=1)
    for number, topic_id in enumerate(asked):
        track.on_frame("sent", [by_id(topic_id)], 2 + number)
    return out.getvalue()


@pytest.mark.parametrize("count", [1, pytest.param(2500, marks=pytest.mark.slow)])
def test_topics_are_named_where_the_process_knew_them(count):
    names = ids(count)
    messages, notes = read(recorded(names, names))
    assert len(messages) == count
    chosen = [Selection(topics=[name]).choose(messages[-1]) for name in names.values()]
    assert [bool(found) for found in chosen] == [False] * (count - 1) + [True]
    assert line(messages[-1]).endswith(f"topic-{count}.x_y[3@5]")
    assert "no response" in notes[0].text


def test_names_that_come_later_stand_at_the_next_packet_and_once():
    out, names = io.BytesIO(), ids(1)
    recorder = Recorder(out.write)
    recorder.name_topics(names)
    track = recorder.connection(Address("10.0.0.1", 1), Address("10.0.0.2", 9092), time_ns=1)
    names |= ids(2)
    recorder.name_topics(names)
    recorder.name_topics(names)
    track.on_frame("sent", [by_id((2).to_bytes(16))], 2)
    assert out.getvalue().count(b"is topic-1.x_y") == 1
    assert out.getvalue().count(b"is topic-2.x_y") == 1
    (message,), _ = read(out.getvalue())
    assert line(message).endswith("topic-2.x_y[3@5]")


@pytest.mark.parametrize(
    "name",
    ["to\x1b[31mpic", "a topic", "", "t" * 250, "topic\n"],
    ids=["esc", "two", "0", "250", "nl"],
)
def test_what_no_topic_can_be_called_is_no_name(name):
    topic_id = bytes(range(16))
    (message,), _ = read(recorded({topic_id: name}, [topic_id]))
    assert message.topic_names == {}
    assert line(message).endswith(f"{id_text(topic_id)}[3@5]")


def recorded_of(broker, client="10.0.0.1", port=1):
    """A capture of a connection to a broker that its process knows by name."""
    out = io.BytesIO()
    track = Recorder(out.write).connection(Address(client, port), Address(broker, 9092), time_ns=1)
    track.on_frame("sent", [by_id(bytes(16))], 2)
    return out.getvalue()


def test_brokers_known_by_name_are_shown_by_it_and_told_apart():
    """Each process makes up addresses of its own: two brokers may have the same in two files."""
    brokers = ["broker-1.example", "broker-2.example"]
    files = [recorded_of(name, port=port) for port, name in enumerate(brokers, 1)]
    readers = {str(number): open_capture(io.BytesIO(file)) for number, file in enumerate(files)}
    messages = [each for each in read_messages(MergedReader(readers)) if isinstance(each, Message)]
    assert [each.peers.broker for each in messages] == [f"{name}:9092" for name in brokers]
    assert [each.peers.client for each in messages] == ["10.0.0.1:1", "10.0.0.1:2"]
    (message,), _ = read(recorded_of("broker-1", client="fe80::1"))
    assert message.peers[1:] == ("[fe80::1]:1", "broker-1:9092")


def test_two_processes_may_have_the_same_port_to_brokers_known_by_name():
    """The system gives a port to connections to several brokers: they are not one connection."""
    brokers = ["broker-1.example", "broker-2.example"]
    readers = {name: open_capture(io.BytesIO(recorded_of(name))) for name in brokers}
    messages = [each for each in read_messages(MergedReader(readers)) if isinstance(each, Message)]
    assert [each.peers.broker for each in messages] == [f"{name}:9092" for name in brokers]
    assert [each.peers.client for each in messages] == ["10.0.0.1:1"] * 2


def test_no_two_names_of_a_file_share_an_address():
    """One is made of each name, and of these two the same: the second gets the next."""
    out = io.BytesIO()
    recorder = Recorder(out.write)
    brokers = ["broker-203", "broker-456"]
    for name in brokers:
        track = recorder.connection(Address("10.0.0.1", 1), Address(name, 9092), time_ns=1)
        track.on_frame("sent", [by_id(bytes(16))], 2)
    messages, _ = read(out.getvalue())
    assert [each.peers.broker for each in messages] == [f"{name}:9092" for name in brokers]
    alone = [open_capture(io.BytesIO(recorded_of(name))) for name in brokers]
    assert [packet.data for packet in alone[0]] == [packet.data for packet in alone[1]]


def test_what_others_say_of_names_is_no_address_of_ours():
    """Wireshark's files name hosts, too: those are shown by the address that packets have."""
    resolved = block(4, option(1, bytes((10, 0, 0, 2)) + b"elsewhere\0") + option(0, b""))
    data = recorded_of("10.0.0.2")
    at = len(file_start())
    (message,), _ = read(data[:at] + resolved + data[at:])
    assert message.peers.broker == "10.0.0.2:9092"


@pytest.mark.parametrize("is_one_file", [True, False])
def test_a_port_that_is_used_again_is_another_connection(is_one_file):
    """By the same process, or by a later one whose file is read with that of the first."""
    files = [io.BytesIO() for _ in range(3)]
    recorders = [Recorder(file.write) for file in files[: 1 if is_one_file else 3]]
    for number in range(3):
        recorder = recorders[number % len(recorders)]
        client, broker = Address("10.0.0.1", 1), Address("10.0.0.2", 9092)
        track = recorder.connection(client, broker, time_ns=10 * number + 1)
        for said in range(3 - number):
            track.on_frame("sent", [by_id(bytes(16))], 10 * number + said + 2)
    written = {str(file): file.getvalue() for file in files[: len(recorders)]}
    reader = MergedReader({name: open_capture(io.BytesIO(each)) for name, each in written.items()})
    messages = [each for each in read_messages(reader) if isinstance(each, Message)]
    assert [each.peers.number for each in messages] == [1, 1, 1, 2, 2, 3]


@pytest.mark.long  # needs Debian's tshark
def test_a_file_of_names_is_a_capture_like_any_other(tmp_path):
    path = tmp_path / "named.pcapng"
    path.write_bytes(recorded(ids(3), ids(3)))
    tshark = shutil.which("tshark")
    assert tshark, "Debian's tshark is needed"
    command = [tshark, "-r", path, "-T", "fields", "-e", "frame.comment", "-e", "tcp.len"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    shown = done.stdout.splitlines()
    assert len(shown) == 5
    assert all(f"is topic-{number}.x_y" in shown[0] for number in (1, 2, 3))
    assert "cut short" not in done.stderr
    assert "appears" not in done.stderr

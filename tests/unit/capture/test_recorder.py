"""Captures of our own: what they say beside the frames."""

import io
import shutil
import subprocess

import pytest

from pyspark_kafkaproto.capture.recorder import Address, Recorder
from pyspark_kafkaproto.capture.report import line
from pyspark_kafkaproto.capture.selection import Selection
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.wire.frame import encode_request
from pyspark_kafkaproto.wire.ids import id_text
from tests.unit.capture.wire import read


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

"""`capture.to`: what a process says and hears, in a file of its own that its owner alone reads."""

import io
import os
import pickle
import shlex
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from time import time_ns

import pytest

from pyspark_kafkaproto.capture import open_capture
from pyspark_kafkaproto.capture.about import about, text_of
from pyspark_kafkaproto.capture.recorder import Address, Recorder
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition, capturing
from pyspark_kafkaproto.cluster.capturing import packets_explain, packets_with_errors
from pyspark_kafkaproto.cluster.ring import FRAMES_KEPT, Ring, write_rings
from pyspark_kafkaproto.error_codes import ERROR_CODES
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    ConfigError,
    ConnectionFailed,
    CorruptRecords,
    DataLoss,
    DeadlineExceeded,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.spark.options import client_config
from pyspark_kafkaproto.wire.frame import encode_request
from tests.fake_broker import FakeCluster, cut
from tests.unit.capture.talks import fetch_request, fetch_response
from tests.unit.capture.wire import read


def test_a_process_writes_its_frames_into_one_private_file(tmp_path):
    folder = tmp_path / "frames"
    with FakeCluster({"orders": 1}) as fake:
        properties = {"bootstrap.servers": fake.bootstrap_servers, "capture.to": str(folder)}
        for _ in range(2):
            with KafkaCluster(properties) as cluster:
                cluster.get_partitions(["orders"])
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    messages, notes = read(path.read_bytes())
    assert [message.problem for message in messages if message.body() is None] == []
    told = {(message.api, message.kind) for message in messages}
    kinds = ("request", "response")
    assert told == {(api, kind) for api in ("ApiVersions", "Metadata") for kind in kinds}
    assert {message.peers.broker for message in messages} == {fake.bootstrap_servers}
    assert notes == []


def test_without_it_nothing_looks_on():
    assert client_config({"kafka.bootstrap.servers": "b:9092"}).capture_to == ""


def test_the_sources_option_is_the_same():
    config = client_config({"kafka.bootstrap.servers": "b:9092", "captureto": "/frames"})
    assert config.capture_to == "/frames"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    path = Path(tmp_path / "file")
    path.touch()
    with FakeCluster({"orders": 1}) as fake:
        properties = {"bootstrap.servers": fake.bootstrap_servers, "capture.to": str(path)}
        with pytest.raises(ConfigError, match=r"capture\.to"), KafkaCluster(properties) as cluster:
            cluster.get_partitions(["orders"])
        named = {f"kafka.{name}": value for name, value in properties.items()}
        with KafkaCluster(client_config(named)) as cluster, pytest.raises(ConfigError) as caught:
            cluster.get_partitions(["orders"])
    assert caught.value.option == "kafka.capture.to"


ASK_TWICE = """
import sys
from pyspark_kafkaproto.cluster import KafkaCluster
properties = {"bootstrap.servers": sys.argv[1], "capture.to": sys.argv[2]}
for _ in range(2):
    with KafkaCluster(properties) as cluster:
        print(len(cluster.get_partitions(["orders"])))
"""
WITHOUT_ROOM = f"""
import logging, resource, signal
logging.basicConfig()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
{ASK_TWICE}
"""


@pytest.mark.slow
def test_the_file_is_closed_when_the_process_ends(tmp_path):
    with FakeCluster({"orders": 3}) as fake:
        asking = ("-c", ASK_TWICE, fake.bootstrap_servers, str(tmp_path))
        command = [sys.executable, "-W", "default::ResourceWarning", *asking]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.stderr, done.returncode) == (["3", "3"], "", 0)


@pytest.mark.slow
def test_a_disk_that_is_full_ends_the_capture_and_not_the_work(tmp_path):
    with FakeCluster({"orders": 3}) as fake:
        command = [sys.executable, "-c", WITHOUT_ROOM, fake.bootstrap_servers, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.returncode) == (["3", "3"], 0), done.stderr
    (path,) = tmp_path.iterdir()
    assert done.stderr.count(f"{path} takes no more frames: File too large") == 1
    messages, notes = read(path.read_bytes())
    assert messages
    assert not [note for note in notes if "ends early" in note.text]


def failing(topic="orders", answer=None, **properties):
    """Ask where a partition ends; the answer is cut unless another one is given."""
    with FakeCluster({"orders": 1}) as fake:
        fake.on("ListOffsets", answer or cut(ListOffsetsResponse(), 5))
        # There is no time for a second try.
        times = {"default.api.timeout.ms": 1000, "retry.backoff.ms": 2000}
        times["retry.backoff.max.ms"] = 2000
        common = {"bootstrap.servers": fake.bootstrap_servers, **times}
        with packets_with_errors(), KafkaCluster({**common, **properties}) as cluster:
            cluster.get_latest_leader_offsets([TopicPartition(topic, 0)])


def refusal(code):
    """ListOffsets answered with an error code."""
    partition = ListOffsetsResponse.Topic.Partition(partition_index=0, error_code=code)
    topic = ListOffsetsResponse.Topic(name="orders", partitions=(partition,))
    return ListOffsetsResponse(topics=(topic,))


def test_an_error_says_where_its_last_packets_are(nothing_remembered):
    with pytest.raises(KafkaProtoError, match="its last packets: kafkaproto dissect") as caught:
        failing()
    (path,) = nothing_remembered.iterdir()
    assert str(caught.value).endswith(f"kafkaproto dissect {path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    messages, _ = read(path.read_bytes())
    assert messages[-1].api == "ListOffsets"
    assert text_of(about(messages[-1])).startswith("orders[0")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_command_that_shows_them_can_be_pasted(nothing_remembered, monkeypatch):
    folder = nothing_remembered / "it's here"
    folder.mkdir()
    monkeypatch.setattr(capturing.tempfile, "tempdir", str(folder))
    with pytest.raises(KafkaProtoError) as caught:
        failing()
    (path,) = folder.iterdir()
    said = str(caught.value).rpartition("its last packets: ")[2]
    assert shlex.split(said) == ["kafkaproto", "dissect", str(path)]


@pytest.mark.parametrize("name", ["TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION"])
def test_an_answer_that_is_complete_leaves_no_packets(nothing_remembered, name):
    (code,) = [row.code for row in ERROR_CODES.values() if row.name == name]
    with pytest.raises(BrokerError, match=name) as caught:
        failing(answer=refusal(code))
    assert "dissect" not in str(caught.value)
    assert list(nothing_remembered.iterdir()) == []


@pytest.mark.slow
def test_a_topic_that_nobody_knows_leaves_no_packets(nothing_remembered):
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        failing(topic="nothing")
    assert list(nothing_remembered.iterdir()) == []


def test_an_answer_that_nobody_expects_leaves_its_packets(nothing_remembered):
    with pytest.raises(BrokerError, match=r"UNKNOWN_SERVER_ERROR.*\n.*dissect"):
        failing(answer=refusal(-1))
    (path,) = nothing_remembered.iterdir()
    messages, _ = read(path.read_bytes())
    assert text_of(about(messages[-1])).endswith("UNKNOWN_SERVER_ERROR(-1) for orders-0")


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        (ConnectionFailed("b:1", "receive", "it was closed"), True),
        (DeadlineExceeded("fetching", 3), True),
        (RemoteProtocolError("3 bytes are left"), True),
        (CorruptRecords("the CRC differs"), True),
        (UnsupportedVersion("no version of Fetch is shared"), True),
        (DataLoss("X", "gone"), True),
        (BrokerError(6, "Fetch", "orders-0"), True),
        (BrokerError(32_000, "Fetch", "orders-0"), True),
        (BrokerError(3, "Metadata", "topic 'orders'"), False),
        (BrokerError(30, "JoinGroup", "group 'g'"), False),
        (AuthenticationFailed("b:1", "PLAIN", "wrong password"), False),
        (ConfigError("subscribe", "", "a topic"), False),
        (LocalProtocolError("no transaction is open"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_packets_explain_what_an_answer_does_not_say(error, explained):
    assert packets_explain(error) is explained


def test_every_answer_that_is_plain_is_an_error_of_kafkas():
    names = {row.name for row in ERROR_CODES.values()}
    assert names.issuperset(capturing._PLAIN_ANSWERS)


@pytest.mark.slow
def test_blocks_inside_each_other_say_it_once(nothing_remembered):
    with pytest.raises(KafkaProtoError) as caught, packets_with_errors():
        failing()
    assert str(caught.value).count("dissect") == 1
    assert len(list(nothing_remembered.iterdir())) == 1


@pytest.mark.slow
def test_errors_come_without_packets_when_that_is_asked_for(nothing_remembered):
    with pytest.raises(KafkaProtoError) as caught:
        failing(**{"capture.errors": "false"})
    assert "dissect" not in str(caught.value)
    assert list(nothing_remembered.iterdir()) == []


def test_where_nothing_can_be_written_an_error_stays_as_it_is(nothing_remembered, monkeypatch):
    """Python finds no temporary folder then, and raises."""
    monkeypatch.setattr(capturing.tempfile, "tempdir", None)
    nowhere = [str(nothing_remembered / "no" / "such")]
    monkeypatch.setattr(capturing.tempfile, "_candidate_tempdir_list", lambda: nowhere)
    with pytest.raises(KafkaProtoError) as caught:
        failing()
    assert "dissect" not in str(caught.value)


def test_a_process_that_fails_again_and_again_leaves_few_files(nothing_remembered):
    ring = Ring("127.0.0.1:1", Endpoint("127.0.0.1", 2))
    ring.on_frame("sent", [memoryview(bytes(20))], time_ns())
    capturing._rings.append(ring)
    for _ in range(20):
        with pytest.raises(ConnectionFailed), packets_with_errors():
            raise ConnectionFailed("b:1", "receive", "it was closed")
    assert 0 < len(list(nothing_remembered.iterdir())) <= 5


@pytest.mark.slow
def test_all_processes_together_leave_the_last_files_alone(nothing_remembered, monkeypatch):
    monkeypatch.setattr(capturing, "_KEPT_MAX", 3)
    for number in range(5):
        file = nothing_remembered / f"kafkaproto-error-1-{number}.pcapng"
        file.touch()
        os.utime(file, (number, number))
    (nothing_remembered / "another.pcapng").touch()
    with pytest.raises(KafkaProtoError) as caught:
        failing()
    left = {path.name for path in nothing_remembered.iterdir()}
    assert {"another.pcapng", "kafkaproto-error-1-3.pcapng", "kafkaproto-error-1-4.pcapng"} < left
    assert Path(str(caught.value).split()[-1]).name in left
    assert len(left) == 4


def test_packets_of_an_error_know_what_topics_are_called(nothing_remembered, monkeypatch):
    topic_id = bytes(range(16))
    monkeypatch.setattr(capturing, "NAMES", {topic_id: "orders"})
    request = FetchRequest(
        topics=(
            FetchRequest.Topic(
                topic_id=topic_id, partitions=(FetchRequest.Topic.Partition(partition=3),)
            ),
        )
    )
    ring = Ring("127.0.0.1:1", Endpoint("127.0.0.1", 2))
    ring.on_frame("sent", [memoryview(encode_request(request, 17, 1, "c"))[4:]], time_ns())
    capturing._rings.append(ring)
    with pytest.raises(ConnectionFailed), packets_with_errors():
        raise ConnectionFailed("b:1", "receive", "it was closed")
    (path,) = nothing_remembered.iterdir()
    (message,), _ = read(path.read_bytes())
    assert text_of(about(message)) == "orders[3@0]"


def test_a_large_frame_is_remembered_by_its_start():
    ring, out = Ring("127.0.0.1:1", Endpoint("::1", 2)), io.BytesIO()
    frame = fetch_response(7, bytes(200_000))[4:]
    ring.on_frame("sent", [memoryview(fetch_request(7)[4:])], 1)
    ring.on_frame("received", [memoryview(frame)], 2)
    write_rings([ring], Recorder(out.write))
    assert len(out.getvalue()) < 3000
    (_, answer), _ = read(out.getvalue())
    assert (answer.size_bytes, len(answer.payload)) == (len(frame), 1024)


def test_passwords_never_reach_a_capture():
    request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cret")
    ring, out = Ring("127.0.0.1:1", Endpoint("kafka.example", 2)), io.BytesIO()
    whole = io.BytesIO()
    track = Recorder(whole.write).connection(Address("127.0.0.1", 1), Address("127.0.0.1", 2))
    for on_frame in (ring.on_frame, track.on_frame):
        for version in range(3):
            frame = encode_request(request, version, version, "c")
            on_frame("sent", [memoryview(frame)[4:]], 1 + version)
    write_rings([ring], Recorder(out.write))
    for written in (out.getvalue(), whole.getvalue()):
        assert b"s3cret" not in written
        assert [message.api for message in read(written)[0]] == ["SaslAuthenticate"] * 3


@pytest.mark.parametrize("cuts", [(), (1023,), (20, 1024), (20, 21, 1400)])
def test_a_frame_in_pieces_is_remembered_as_one_in_one(cuts):
    frame = memoryview(bytes(range(256)) * 8)
    ring, out = Ring("127.0.0.1:1", Endpoint("127.0.0.1", 2)), io.BytesIO()
    pieces = [frame[start:stop] for start, stop in pairwise([0, *cuts, len(frame)])]
    ring.on_frame("sent", pieces, 1)
    ((time_ns_, direction, start, size_bytes),) = ring._frames
    assert (time_ns_, direction, size_bytes) == (1, "sent", 2048)
    assert start == frame[:1024]
    track = Recorder(out.write).connection(Address("127.0.0.1", 1), Address("127.0.0.1", 2))
    track.on_frame("sent", pieces, 1)
    assert frame.tobytes() in out.getvalue()


def test_an_answer_whose_request_is_forgotten_is_left_out():
    """It could be anything: a delegation token, say."""
    ring, out = Ring("127.0.0.1:1", Endpoint("127.0.0.1", 2)), io.BytesIO()
    ring.on_frame("sent", [memoryview(fetch_request(7)[4:])], 1)
    for number in range(FRAMES_KEPT - 2):
        ring.on_frame("sent", [memoryview(fetch_request(9)[4:])], 2 + number)
    ring.on_frame("received", [memoryview((7).to_bytes(4) + b"s3cret")], 50)
    ring.on_frame("received", [memoryview(fetch_response(9)[4:])], 51)
    write_rings([ring], Recorder(out.write))
    assert b"s3cret" not in out.getvalue()
    messages, notes = read(out.getvalue())
    assert [message.kind for message in messages] == ["request"] * (FRAMES_KEPT - 2) + ["response"]
    assert [note.text for note in notes if "frames" in note.text] == []


def test_what_is_remembered_of_several_connections_is_written_in_the_order_of_time():
    rings = [Ring(f"127.0.0.1:{port}", Endpoint("127.0.0.1", 9092)) for port in (1, 2, 3)]
    for turn in range(4):
        for number, ring in enumerate(rings):
            at = 100 * turn + 10 * number + 1
            ring.on_frame("sent", [memoryview(fetch_request(turn)[4:])], at)
            ring.on_frame("received", [memoryview(fetch_response(turn)[4:])], at + 15)
    out = io.BytesIO()
    write_rings(rings, Recorder(out.write))
    packets = [packet.time_ns for packet in open_capture(io.BytesIO(out.getvalue()))]
    assert packets == sorted(packets)
    messages, _ = read(out.getvalue())
    assert len(messages) == 24
    assert {message.latency_ns for message in messages if message.kind == "response"} == {15}


def test_a_clock_that_is_set_back_puts_no_answer_before_its_request():
    ring, out = Ring("127.0.0.1:1", Endpoint("127.0.0.1", 2)), io.BytesIO()
    ring.on_frame("sent", [memoryview(fetch_request(1)[4:])], 1000)
    ring.on_frame("received", [memoryview(fetch_response(1)[4:])], 500)
    write_rings([ring], Recorder(out.write))
    assert [message.kind for message in read(out.getvalue())[0]] == ["request", "response"]


@pytest.mark.slow
def test_remembering_imports_nothing_of_the_analyser():
    """Executors open connections at every start: they do not pay for what errors need."""
    code = (
        "import sys; from pyspark_kafkaproto.cluster.capturing import error_observer;"
        "from pyspark_kafkaproto.net import ClientConfig, Endpoint;"
        "config = ClientConfig.parse({'bootstrap.servers': 'b:1'});"
        "look = error_observer(config, '127.0.0.1:1', Endpoint('127.0.0.1', 2));"
        "look('sent', [memoryview(bytes(20))], 1);"
        "assert not [name for name in sys.modules if 'kafkaproto.capture' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

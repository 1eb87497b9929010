"""Lines, trees, JSON, filters, statistics and the page."""

import json
import re
from base64 import b64encode

import pytest

from pyspark_kafkaproto.capture import secrets
from pyspark_kafkaproto.capture.message import Message, Peers
from pyspark_kafkaproto.capture.page import Page
from pyspark_kafkaproto.capture.report import as_json, detail_lines, line, note_line
from pyspark_kafkaproto.capture.secrets import Speakers
from pyspark_kafkaproto.capture.selection import Selection
from pyspark_kafkaproto.capture.sides import _request_facts
from pyspark_kafkaproto.capture.statistics import Statistics
from pyspark_kafkaproto.capture.tree import tree
from pyspark_kafkaproto.messages.alter_configs import AlterConfigsRequest
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.wire.frame import encode_request, encode_response
from tests.unit.capture.talks import (
    fetch_request,
    fetch_response,
    metadata_request,
    metadata_response,
)
from tests.unit.capture.wire import Talk, read

BATCH = encode_batch([NewRecord(b"<value>", b"\xffkey", 1000)], base_offset=17)


def talk():
    said = Talk().open()
    said.say(0, metadata_request(1)).say(1, metadata_response(1))
    said.say(0, fetch_request(2, offset=17, client_id="other")).say(1, fetch_response(2, BATCH))
    return said.say(0, fetch_request(3)).say(1, fetch_response(3, error_code=6))


@pytest.fixture
def messages():
    return read(talk().pcap())[0]


def test_a_line_says_who_what_and_what_about(messages):
    assert [re.sub(" +", " ", line(message)).strip() for message in messages[2:4]] == [
        (
            "3 22:13:20.005000 conn 1 10.0.0.1:50000 → 10.0.0.2:9092 Fetch v11 request #2 90 B "
            "orders[0@17]"
        ),
        (
            "4 22:13:20.006000 conn 1 10.0.0.1:50000 ← 10.0.0.2:9092 Fetch v11 response #2 "
            f"{messages[3].size_bytes} B 1 ms orders[0@9 {len(BATCH)} B]"
        ),
    ]
    assert line(messages[5]).endswith("NOT_LEADER_OR_FOLLOWER(6) for orders-0")


def test_the_tree_has_every_field_with_its_bytes(messages):
    texts = list(detail_lines(messages[3]))
    frame = fetch_response(2, BATCH)
    start = frame.index(b"<value>")
    (value,) = [text for text in texts if text.strip().startswith(f"{start}:{start + 7}")]
    assert value.endswith('value: "<value>"')
    assert any(text.endswith("key: ff 6b 65 79") for text in texts)
    assert any(text.endswith("error_code: 0 NONE") for text in texts)


def test_json_has_the_same_for_programs(messages):
    shown = json.loads(json.dumps(as_json(messages[3], with_fields=True)))
    assert (shown["api"], shown["api_version"], shown["answers"]) == ("Fetch", 11, 3)
    assert shown["latency_ms"] == 1.0
    assert shown["topics"] == {
        "orders": [{"partition": 0, "offset": 9, "record_bytes": len(BATCH), "error": 0}]
    }
    text = json.dumps(shown["fields"])
    assert '{"hex": "ff6b6579"}' in text
    assert '"<value>"' in text
    assert as_json(messages[5])["errors"][0]["name"] == "NOT_LEADER_OR_FOLLOWER"


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"apis": ["Fetch"]}, [3, 4, 5, 6]),
        ({"topics": ["orders"]}, [1, 2, 3, 4, 5, 6]),
        ({"topics": ["others"]}, []),
        ({"topics": ["AAECAwQFBgcICQoLDA0ODw"]}, [1, 2, 3, 4, 5, 6]),
        ({"topics": ["AQECAwQFBgcICQoLDA0ODw"]}, []),
        ({"clients": ["other"]}, [3, 4]),
        ({"clients": ["10.0.0.1"]}, [1, 2, 3, 4, 5, 6]),
        ({"only_errors": True}, [6]),
        ({"slower_than_ns": 1_000_000}, [2, 4, 6]),
        ({"slower_than_ns": 1_000_001}, []),
        ({"connection": 1}, [1, 2, 3, 4, 5, 6]),
        ({"connection": 2}, []),
    ],
)
def test_filters(messages, wanted, numbers):
    selection = Selection(**wanted)
    assert [message.number for message in messages if selection.choose(message)] == numbers


def test_statistics(messages):
    statistics = Statistics()
    for message in messages:
        statistics.add(*Selection().choose(message))
    shown = statistics.as_json()
    assert shown["topics"] == {"orders": {"written_bytes": 0, "read_bytes": len(BATCH)}}
    assert shown["errors"] == [{"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER", "count": 1}]
    fetch = shown["apis"]["Fetch"]
    assert (fetch["requests"], fetch["responses"]) == (2, 2)
    assert set(fetch["latency_ms"].values()) == {1.0}
    assert list(shown["apis"]) == ["Fetch", "Metadata"]


def page_of(capture):
    page = Page("</script><b>title")
    for message in read(capture)[0]:
        page.add(*Selection().choose(message))
    return page.html()


def test_the_page_is_one_file_that_loads_nothing(messages):
    html = page_of(talk().pcap())
    assert "http://" not in html
    assert "https://" not in html
    assert html.count("</script>") == 3
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])
    assert len(data["rows"]) == len(messages)
    assert data["columns"][0] == ["reader @ 10.0.0.1", False]


def test_neither_page_nor_text_shows_a_secret():
    request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cret")
    frames = [encode_request(request, version, version + 1, "c") for version in range(3)]
    frames.append(frames[0][:7] + b"\x09" + frames[0][8:])  # of a version that is not known
    frames.append(frames[2][:-1] + b"\x05")  # and one that cannot be read to its end
    said = Talk().open()
    for frame in frames:
        said.say(0, frame)
    messages, _ = read(said.pcap())
    assert len(messages) == len(frames)
    texts = [text for message in messages for text in detail_lines(message)]
    texts += [json.dumps(as_json(message, with_fields=True)) for message in messages]
    texts += [line(message) for message in messages]
    texts.append(page_of(said.pcap()))
    for text in texts:
        assert "s3cret" not in text
        assert b"s3cret".hex() not in text.replace(" ", "")
        assert "czNjcmV0" not in text


def test_notes_name_their_connection():
    _, (note,) = read(Talk().open().say(0, fetch_request(1)).close().pcap())
    assert "connection 1, 10.0.0.1:50000 → 10.0.0.2:9092: no response" in note_line(note)


SECRETS = (
    SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cret"),
    AlterConfigsRequest(
        resources=(
            AlterConfigsRequest.Resource(
                resource_type=2,
                resource_name="orders",
                configs=(AlterConfigsRequest.Resource.Config(name="password", value="s3cret"),),
            ),
        )
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("request_", SECRETS, ids=lambda request: request.API_NAME)
def test_what_damage_makes_unreadable_is_hidden_as_a_whole(request_):
    hidden = 0
    for version in request_.VERSIONS:
        frame = encode_request(request_, version, 7, "client")
        for at in range(12, len(frame)):
            for byte in (0x00, 0x01, 0x7F, 0xFF):
                payload = frame[4:at] + bytes([byte]) + frame[at + 1 :]
                message = Message(
                    1,
                    0,
                    Peers(1, "c:1", "b:1"),
                    "request",
                    payload=payload,
                    size_bytes=len(payload),
                    **_request_facts(payload),
                )
                if not tree(message).problem:
                    continue
                hidden += 1
                assert Speakers().hide_request(payload) == payload[:8] + bytes(len(payload) - 8)
                texts = [*detail_lines(message), json.dumps(as_json(message, with_fields=True))]
                assert "s3cret" not in "".join(texts), (version, at, byte)
    assert hidden > 30


METADATA_LOG = {12: {"topic": "__cluster_metadata"}, 17: {"topic_id": bytes(15) + b"\x01"}}


def credentials(version, correlation_id):
    """Request and answer of a broker that follows the controllers' log."""
    asked = FetchRequest.Topic.Partition(partition=0)
    part = FetchResponse.Topic.Partition(partition_index=0, high_watermark=9, records=b"s3cret" * 9)
    topic, answer = FetchRequest.Topic, FetchResponse.Topic
    named = METADATA_LOG[version]
    request = FetchRequest(topics=(topic(partitions=(asked,), **named),))
    response = FetchResponse(responses=(answer(partitions=(part,), **named),))
    return (
        encode_request(request, version, correlation_id, "raft-client-1"),
        encode_response(response, version, correlation_id),
    )


@pytest.mark.parametrize("kept", [None, 150])
@pytest.mark.parametrize("version", METADATA_LOG)
def test_the_controllers_log_shows_none_of_its_records(version, kept):
    """It holds SCRAM credentials and the values of secret settings, as a FetchSnapshot does."""
    asked, answer = credentials(version, 1)
    talk = Talk().open().say(0, asked)
    talk.packet(1, payload=answer, keep=kept)  # the second is one that a snaplen has cut
    talk.seqs[1] += len(answer)
    unasked = credentials(version, 77)[1]
    talk.say(1, unasked)
    if version > 12:  # of a version that is not known here
        later = credentials(version, 2)
        talk.say(0, later[0][:6] + b"\x00\x27" + later[0][8:]).say(1, later[1])
    messages, _ = read(talk.pcap())
    assert len(messages) == (3 if version == 12 else 5)
    texts = [text for message in messages for text in detail_lines(message)]
    texts += [json.dumps(as_json(message, with_fields=True)) for message in messages]
    texts.append(page_of(talk.pcap()))
    for text in texts:
        assert "s3cret" not in text
        assert b"s3cret".hex() not in text.replace(" ", "")
        assert b64encode(b"s3cret").decode() not in text
    if kept is None:
        assert any("high_watermark: 9" in text for text in texts)


@pytest.mark.parametrize("version", METADATA_LOG)
def test_no_capture_of_ours_holds_records_of_the_controllers_log(version):
    speakers = Speakers()
    asked, answer = credentials(version, 5)
    assert speakers.hide_request(memoryview(asked)[4:]) == asked[4:]
    hidden = bytes(speakers.hide_response(memoryview(answer)[4:]))
    assert hidden == answer[4:].replace(b"s3cret", bytes(6))
    speakers.hide_request(asked[4:])
    assert b"s3cret" not in bytes(speakers.hide_response(answer[4:90]))  # only its start is kept
    other = fetch_response(5, b"s3cret")[4:]
    assert speakers.hide_response(other) is other


def test_what_is_remembered_of_unanswered_requests_is_bounded_and_nothing_shows(monkeypatch):
    """Behind more of them than are kept nobody knows what an answer holds."""
    monkeypatch.setattr(secrets, "_PENDING_MAX", 3)
    speakers = Speakers()
    for correlation_id in range(5):
        request = SaslAuthenticateRequest(auth_bytes=b"s3cret")
        speakers.hide_request(encode_request(request, 2, correlation_id, "me")[4:])
    assert len(speakers._pending) == 3
    answer = encode_response(SaslAuthenticateResponse(auth_bytes=b"s3cret"), 2, 4)[4:]
    assert b"s3cret" not in bytes(speakers.hide_response(answer))


def test_names_do_not_steer_the_terminal():
    name = "to\x1b[31mXX\x9b\u202e"
    said = Talk().open().say(0, metadata_request(1, topic=name, client_id="good\x1b]0;x\x07"))
    (message,), _ = read(said.pcap())
    shown = [line(message), *detail_lines(message)]
    assert all(text.isprintable() for text in shown)
    assert r"to\x1b[31mXX\x9b\u202e" in shown[0]


def test_what_is_kept_of_names_is_bounded():
    names = metadata_response(1, topic="t" * 30_000)
    said = Talk().open().say(0, metadata_request(1, client_id="c" * 30_000)).say(1, names)
    first, second = read(said.pcap())[0]
    assert len(first.client_id) == len(second.client_id) == 256
    assert [len(name) for name in second.topic_names.values()] == [256]

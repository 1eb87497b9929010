"""What a declaration means on the wire: version by version, in both directions."""

import tracemalloc

import pytest

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from pyspark_kafkaproto.wire.cursor import Cursor
from pyspark_kafkaproto.wire.declaration import Request, Struct, Versions, array, field
from pyspark_kafkaproto.wire.schema import decode, encode, read


class SampleRequest(Request):
    """A message with everything that a definition may say."""

    API_KEY = 999
    API_NAME = "Sample"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 3

    class Topic(Struct):
        class Partition(Struct):
            index: int = field("int32", "0+")
            epoch: int = field("int32", "1+", default=-1, ignorable=True)

        name: str | None = field("string", "0+", nullable="2+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    class Cursor(Struct):
        start: int = field("int8", "2+")

    wait_ms: int = field("int32", "0+")
    level: int = field("int8", "1+")
    topics: tuple[Topic, ...] | None = array(Topic, "0+", nullable="1+")
    cursor: Cursor | None = field(Cursor, "2+", default=None, nullable="2+")
    rack: str = field("string", "3+", tag=0)
    limit: int = field("int64", "4+", default=5, tag=2, ignorable=True)


Topic = SampleRequest.Topic
Partition = Topic.Partition

FULL = SampleRequest(
    wait_ms=1,
    level=2,
    topics=(Topic(name="a", partitions=(Partition(index=3, epoch=4),)),),
    cursor=SampleRequest.Cursor(start=7),
    rack="r",
    limit=6,
)

KNOWN = [
    (0, SampleRequest(wait_ms=1), "00000001" + "00000000"),
    (
        0,
        SampleRequest(wait_ms=1, topics=(Topic(name="a", partitions=(Partition(index=3),)),)),
        "00000001" + "00000001" + "000161" + "00000001" + "00000003",
    ),
    (1, SampleRequest(wait_ms=1, level=2, topics=None), "00000001" + "02" + "ffffffff"),
    (2, SampleRequest(), "00000000" + "00" + "00000000" + "ff"),
    (
        2,
        SampleRequest(topics=(Topic(name=None),), cursor=SampleRequest.Cursor(start=7)),
        "00000000" + "00" + "00000001" + "ffff" + "00000000" + "0107",
    ),
    (3, SampleRequest(topics=None), "00000000" + "00" + "00" + "ff" + "00"),
    (
        4,
        FULL,
        # numbers | one topic: name, one partition and its tags, its tags | cursor, its tags
        "00000001" + "02" + "02" + "0261" + "02" + "0000000300000004" + "00" + "00" + "0107" + "00"
        # two tagged fields: 0 in two bytes, 2 in eight
        + "02" + "00" + "02" + "0272" + "02" + "08" + "0000000000000006",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "message", "spelt"), KNOWN)
def test_known_bytes_both_ways(version, message, spelt):
    assert encode(message, version).hex() == spelt
    assert decode(SampleRequest, bytes.fromhex(spelt), version) == message


def test_a_tagged_field_with_its_default_is_not_written():
    spelt = encode(SampleRequest(rack="", limit=5), 4)
    assert spelt.hex() == "00000000" + "00" + "01" + "ff" + "00"


def test_an_ignorable_field_is_dropped_where_a_version_lacks_it():
    message = SampleRequest(topics=(Topic(partitions=(Partition(epoch=9),)),), limit=6)
    again = decode(SampleRequest, encode(message, 0), 0)
    assert again.topics[0].partitions[0].epoch == -1
    assert again.limit == 5


@pytest.mark.parametrize(
    ("version", "message", "text"),
    [
        (0, SampleRequest(level=2), "Sample request v0: level: this version has no such field"),
        (2, SampleRequest(rack="r"), "Sample request v2: rack: this version has no such field"),
        (0, SampleRequest(topics=None), "v0: topics: None where no null is allowed"),
        (0, SampleRequest(topics=(Topic(name=None),)), r"v0: topics\[0\].name: None where"),
        (0, SampleRequest(wait_ms=None), "v0: wait_ms: None cannot be written"),
        (1, SampleRequest(level=200), "v1: level: 200 cannot be written"),
        (
            1,
            SampleRequest(topics=(Topic(), Topic(partitions=(Partition(epoch="x"),)))),
            r"v1: topics\[1\].partitions\[0\].epoch: 'x' cannot be written",
        ),
        (0, SampleRequest(topics=("a",)), r"topics\[0\]: expected SampleRequest.Topic, got str"),
        (0, SampleRequest(topics=(None,)), r"topics\[0\]: expected SampleRequest.Topic, got None"),
        (2, SampleRequest(cursor=Topic()), "cursor: expected SampleRequest.Cursor, got"),
        (3, SampleRequest(rack=None), "v3: rack: None where no null is allowed"),
        (5, SampleRequest(), "Sample request v5: known are versions 0-4"),
        (
            2,
            SampleRequest(unknown_tagged_fields=((9, b""),)),
            "unknown_tagged_fields: this version has no tagged fields",
        ),
        (
            3,
            SampleRequest(unknown_tagged_fields=((0, b""),)),
            "unknown_tagged_fields: tag 0 is 'rack', not unknown",
        ),
    ],
)
def test_what_a_version_cannot_carry_is_refused_by_name(version, message, text):
    with pytest.raises(LocalProtocolError, match=text):
        encode(message, version)


def test_unknown_tagged_fields_are_kept_in_their_place():
    spelt = (
        "00000000" + "00" + "01" + "ff"
        # four tagged fields, 1 and 300 of them unknown
        + "04" + "00" + "02" + "0272" + "01" + "00" + "02" + "08" + "0000000000000006"
        + "ac02" + "03" + "abcdef"
    )  # fmt: skip
    message = decode(SampleRequest, bytes.fromhex(spelt), 4)
    assert message.unknown_tagged_fields == ((1, b""), (300, b"\xab\xcd\xef"))
    assert (message.rack, message.limit) == ("r", 6)
    assert encode(message, 4).hex() == spelt


def test_a_field_that_is_tagged_in_a_later_version_is_unknown_in_this_one():
    message = decode(SampleRequest, encode(SampleRequest(limit=6), 4), 3)
    assert message.limit == 5
    assert message.unknown_tagged_fields == ((2, (6).to_bytes(8, "big")),)


BODY_V4 = "00000000" + "00" + "01" + "ff"


@pytest.mark.parametrize(
    ("version", "spelt", "path", "reason"),
    [
        (1, "", "wait_ms", "4 bytes are announced, 0 are left"),
        (1, "00000000", "level", "1 bytes are announced, 0 are left"),
        (1, "0000000000", "topics", "4 bytes are announced, 0 are left"),
        (1, "0000000000" + "fffffffe", "topics", "negative size -2"),
        (1, "0000000000" + "7fffffff", "topics", "2147483647 elements are announced"),
        (0, "00000000" + "ffffffff", "topics", "null where none is allowed"),
        (0, "00000000" + "00000001" + "ffff", "topics[0].name", "null where none is allowed"),
        (
            1,
            "0000000000" + "00000001" + "0000" + "00000001" + "0000000100",
            "topics[0].partitions[0].epoch",
            "4 bytes are announced, 1 are left",
        ),
        (2, "0000000000" + "00000000" + "05", "cursor", "neither 1 nor -1"),
        (2, "0000000000" + "00000000" + "01", "cursor.start", "1 bytes are announced"),
        (2, "0000000000" + "00000000" + "ff00", "", "1 bytes are left over"),
        (4, "00000000" + "00" + "ffffffff0f", "topics", "4294967294 elements are announced"),
        (4, "00000000" + "00" + "ffffffff1f", "topics", "over 32 bits"),
        (4, "00000000" + "00" + "02" + "00", "topics[0].partitions", "ends inside a varint"),
        (4, BODY_V4, "tagged_fields", "ends inside a varint"),
        (4, BODY_V4 + "ffffffff0f", "tagged_fields", "ends inside a varint"),
        (4, BODY_V4 + "01" + "09" + "05" + "00", "tagged_fields", "5 bytes are announced"),
        (4, BODY_V4 + "02" + "0900" + "0900", "tagged_fields", "tag 9 after tag 9"),
        (4, BODY_V4 + "02" + "0900" + "0800", "tagged_fields", "tag 8 after tag 9"),
        (4, BODY_V4 + "01" + "00" + "01" + "00", "rack", "null where none is allowed"),
        (4, BODY_V4 + "01" + "00" + "02" + "01ff", "rack", "1 bytes are left over"),
        (4, BODY_V4 + "01" + "02" + "04" + "00000000", "limit", "8 bytes are announced"),
    ],
)
def test_damaged_bytes_are_reported_with_their_field(version, spelt, path, reason):
    with pytest.raises(RemoteProtocolError) as caught:
        decode(SampleRequest, bytes.fromhex(spelt), version)
    error = caught.value
    assert error.where == f"Sample request v{version}"
    assert error.path == path
    assert reason in error.reason


@pytest.mark.parametrize(
    ("version", "spelt"),
    [
        (1, "0000000000" + "7fffffff"),
        (4, "00000000" + "00" + "ffffffff0f"),
        (4, BODY_V4 + "ffffffff0f"),
        (4, BODY_V4 + "01" + "09" + "ffffffff0f"),
    ],
)
def test_no_memory_is_taken_for_what_is_only_announced(version, spelt):
    decode(SampleRequest, encode(FULL, 4), 4)  # builds the codec
    data = bytes.fromhex(spelt)
    tracemalloc.start()
    with pytest.raises(RemoteProtocolError):
        decode(SampleRequest, data, version)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100_000


def test_a_version_that_the_class_lacks_is_our_mistake():
    with pytest.raises(LocalProtocolError, match="Sample request v5: known are versions 0-4"):
        decode(SampleRequest, b"", 5)


def test_text_that_cannot_be_written_is_shown_unless_it_is_a_secret():
    resource = IncrementalAlterConfigsRequest.Resource
    config = resource.Config
    for item, told in (
        (config(name="ssl.key.password", value="hunter2\udcff"), r"\.value: it cannot be UTF-8"),
        (config(name="n", value="hunter2" * 9999), r"\.value: 69993 bytes of text, the most is"),
        (
            config(name="ssl.key\udcff", value="hunter2"),
            r"\.name: 'ssl.key\\udcff' cannot",
        ),
    ):
        request = IncrementalAlterConfigsRequest(
            resources=(resource(resource_name="1", configs=(item,)),)
        )
        with pytest.raises(LocalProtocolError, match=told) as caught:
            encode(request, 1)
        assert "hunter2" not in str(caught.value)


def test_read_leaves_what_is_behind_the_message():
    cursor = Cursor(encode(FULL, 4) + b"more")
    assert read(SampleRequest, cursor, 4) == FULL
    assert cursor.left == 4

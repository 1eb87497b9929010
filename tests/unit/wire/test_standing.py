"""A question asked again and again: its bytes, and when an answer counts as the last one."""

import pytest

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.wire.frame import encode_request, encode_response, request_pieces
from pyspark_kafkaproto.wire.standing import Standing, message_of

T = ListOffsetsResponse.Topic
ASKED = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsRequest.Topic(name="orders"),))


def answer(offset=5, correlation_id=1, version=10):
    found = T.Partition(partition_index=0, offset=offset)
    message = ListOffsetsResponse(topics=(T(name="orders", partitions=(found,)),))
    return encode_response(message, version, correlation_id)[4:]


@pytest.mark.parametrize("version", [1, 10])
def test_its_frames_are_those_of_its_message(version):
    standing = Standing(ASKED)
    for correlation_id in (1, 2):
        pieces = request_pieces(ASKED, version, correlation_id, "me", standing.body(version))
        assert b"".join(pieces) == encode_request(ASKED, version, correlation_id, "me")
    assert standing.body(version) is standing.body(version)


def test_what_cannot_be_written_is_an_error_each_time():
    standing = Standing(ListOffsetsRequest(replica_id=2**40))
    for _ in range(2):
        with pytest.raises(LocalProtocolError, match="replica_id"):
            standing.body(10)


def test_an_answer_of_the_same_bytes_is_the_message_of_the_last_time():
    standing = Standing(ASKED)
    first = standing.read_answer(ListOffsetsResponse, answer(), 10)
    assert standing.read_answer(ListOffsetsResponse, answer(correlation_id=2), 10) is first
    other = standing.read_answer(ListOffsetsResponse, answer(offset=6), 10)
    assert other.topics[0].partitions[0].offset == 6
    again = standing.read_answer(ListOffsetsResponse, answer(), 10)
    assert again == first
    assert again is not first  # the last one alone is kept


def test_another_version_or_class_reads_the_bytes_anew():
    standing = Standing(ASKED)
    # Without topics an answer of either version has the same bytes behind the correlation id.
    body = encode_response(ListOffsetsResponse(), 2, 1)[4:]
    first = standing.read_answer(ListOffsetsResponse, body, 2)
    assert standing.read_answer(ListOffsetsResponse, body, 3) is not first
    assert not isinstance(
        standing.read_answer(MetadataResponse, encode_response(MetadataResponse(), 0, 1)[4:], 0),
        ListOffsetsResponse,
    )


def test_memory_of_a_frame_may_be_used_again():
    standing = Standing(ASKED)
    frame = bytearray(answer())
    first = standing.read_answer(ListOffsetsResponse, memoryview(frame), 10)
    frame[:] = bytes(len(frame))
    assert standing.read_answer(ListOffsetsResponse, answer(), 10) is first


def test_a_damaged_answer_is_an_error_and_not_kept():
    standing = Standing(ASKED)
    first = standing.read_answer(ListOffsetsResponse, answer(), 10)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="ListOffsets response v10"):
            standing.read_answer(ListOffsetsResponse, answer()[:-1], 10)
    assert standing.read_answer(ListOffsetsResponse, answer(), 10) is first


def test_the_message_of_either_kind_of_request():
    assert message_of(Standing(ASKED)) is ASKED
    assert message_of(ASKED) is ASKED

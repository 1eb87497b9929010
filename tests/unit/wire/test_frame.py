"""Size prefix and headers, by hand from the protocol guide."""

import pytest

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyspark_kafkaproto.wire.frame import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    frame_size,
    peek_correlation_id,
    peek_request,
)

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")

# size | api key 12, version, correlation id 5 | client id "me" | body
REQUEST_V0 = (
    "00000016" + "000c" + "0000" + "00000005" + "00026d65" + "000167" + "00000001" + "00016d"
)
# The client id stays classic; a byte for no tagged fields ends the header, another the body.
REQUEST_V4 = (
    "00000017" + "000c" + "0004" + "00000005" + "00026d65" + "00" + "0267" + "00000001" + "026d"
    "00" + "00"
)


@pytest.mark.parametrize(("version", "frame"), [(0, REQUEST_V0), (4, REQUEST_V4)])
def test_request_header_v1_and_v2(version, frame):
    assert encode_request(HEARTBEAT, version, 5, "me").hex() == frame
    payload = bytes.fromhex(frame)[4:]
    assert peek_request(payload) == (12, version, 5)
    assert decode_request(HeartbeatRequest, payload) == (
        RequestHeader(12, version, 5, "me"),
        HEARTBEAT,
    )


@pytest.mark.parametrize(("correlation_id", "client_id"), [(2**31, "me"), (1, b"me")])
def test_a_header_that_cannot_be_written(correlation_id, client_id):
    with pytest.raises(LocalProtocolError, match="Heartbeat request v4, header: "):
        encode_request(HEARTBEAT, 4, correlation_id, client_id)


def test_a_null_client_id():
    payload = encode_request(HEARTBEAT, 4, 5, None)[4:]
    assert payload[8:10] == b"\xff\xff"
    header, _ = decode_request(HeartbeatRequest, payload)
    assert header.client_id is None


@pytest.mark.parametrize(
    ("version", "frame"),
    [
        (0, "00000006" + "00000005" + "001b"),
        (4, "0000000c" + "00000005" + "00" + "00000000" + "001b" + "00"),
    ],
)
def test_response_header_v0_and_v1(version, frame):
    response = HeartbeatResponse(error_code=27)
    assert encode_response(response, version, 5).hex() == frame
    payload = bytes.fromhex(frame)[4:]
    assert peek_correlation_id(payload) == 5
    assert decode_response(HeartbeatResponse, payload, version) == (5, response)


def test_the_api_versions_response_always_has_header_v0():
    # correlation id | error 0 | one API: 18, 0 to 4, no tags | throttle 0 | no tags
    frame = "00000013" + "00000007" + "0000" + "02" + "001200000004" + "00" + "00000000" + "00"
    response = ApiVersionsResponse(
        api_keys=(ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4),)
    )
    assert encode_response(response, 3, 7).hex() == frame
    assert decode_response(ApiVersionsResponse, bytes.fromhex(frame)[4:], 3) == (7, response)


def test_the_answer_to_an_unknown_api_versions_version_is_readable_as_v0_only():
    refusal = ApiVersionsResponse(
        error_code=35,
        api_keys=(ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=3),),
    )
    payload = encode_response(refusal, 0, 1)[4:]
    with pytest.raises(RemoteProtocolError, match=r"ApiVersions response v4: api_keys: null"):
        decode_response(ApiVersionsResponse, payload, 4)
    assert decode_response(ApiVersionsResponse, payload, 0) == (1, refusal)


def test_unknown_tagged_fields_of_a_header_are_skipped():
    payload = bytes.fromhex("00000005" + "01" + "07" + "02" + "abcd" + "00000000001b00")
    assert decode_response(HeartbeatResponse, payload, 4)[1].error_code == 27


@pytest.mark.parametrize("size", [-1, 0, 3, 101, 2**31 - 1])
def test_frame_sizes_that_are_refused(size):
    with pytest.raises(RemoteProtocolError, match=f"a frame of {size} bytes: allowed are 4 to 100"):
        frame_size(size.to_bytes(4, "big", signed=True), limit_bytes=100)


@pytest.mark.parametrize("size", [4, 100])
def test_frame_sizes_that_are_allowed(size):
    assert frame_size(size.to_bytes(4, "big"), limit_bytes=100) == size


@pytest.mark.parametrize("payload", ["", "000000", "00000005", "0000000501"])
def test_a_response_cut_in_its_header_or_before_its_body(payload):
    with pytest.raises(RemoteProtocolError, match="Heartbeat response v4"):
        decode_response(HeartbeatResponse, bytes.fromhex(payload), 4)


@pytest.mark.parametrize("payload", ["", "000c0000", "000c000000000005", "000c0000000000050002"])
def test_a_request_cut_in_its_header(payload):
    with pytest.raises(RemoteProtocolError, match="Heartbeat request"):
        decode_request(HeartbeatRequest, bytes.fromhex(payload))


@pytest.mark.parametrize(
    ("start", "named"),
    [("00120000", "API key 18, version 0"), ("000c0063", "API key 12, version 99")],
)
def test_a_request_of_another_api_or_of_an_unknown_version(start, named):
    payload = bytes.fromhex(start + "00000005" + "ffff")
    with pytest.raises(RemoteProtocolError, match=f"Heartbeat request, header: {named}"):
        decode_request(HeartbeatRequest, payload)

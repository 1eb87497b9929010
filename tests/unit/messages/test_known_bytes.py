"""Real messages spelt by hand from Kafka's definitions, before and after flexible versions."""

import pytest

from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitRequest
from pyspark_kafkaproto.messages.offset_fetch import OffsetFetchRequest
from pyspark_kafkaproto.wire.schema import decode, encode

TOPIC_ID = bytes(range(16))
TOPIC_ID_HEX = TOPIC_ID.hex()
ONE = "00000001"


def _list_offsets(**partition):
    topic = ListOffsetsRequest.Topic(
        name="t", partitions=(ListOffsetsRequest.Topic.Partition(**partition),)
    )
    return ListOffsetsRequest(replica_id=-1, topics=(topic,))


def _old_offsets():
    partition = ListOffsetsResponse.Topic.Partition(error_code=0, old_style_offsets=(7, 5))
    return ListOffsetsResponse(
        topics=(ListOffsetsResponse.Topic(name="t", partitions=(partition,)),)
    )


def _commit(**topic):
    partition = OffsetCommitRequest.Topic.Partition(committed_offset=9, committed_metadata=None)
    return OffsetCommitRequest(
        group_id="g", topics=(OffsetCommitRequest.Topic(partitions=(partition,), **topic),)
    )


def _fetch_answer(**topic):
    partition = FetchResponse.Topic.Partition(
        high_watermark=5,
        last_stable_offset=5,
        log_start_offset=0,
        aborted_transactions=None,
        records=b"\xaa\xbb",
    )
    return FetchResponse(responses=(FetchResponse.Topic(partitions=(partition,), **topic),))


# partition 0, error 0, high watermark 5, last stable offset 5, log start offset 0
FETCHED = "00000000" + "0000" + "0000000000000005" * 2 + "0000000000000000"

KNOWN = [
    ("all topics in v0", MetadataRequest(topics=()), 0, "00000000"),
    ("all topics since v1", MetadataRequest(topics=None), 1, "ffffffff"),
    (
        "a topic by name, flexible",
        MetadataRequest(
            topics=(MetadataRequest.Topic(name="t"),), allow_auto_topic_creation=False
        ),
        9,
        "02" + "0274" + "00" + "00" + "00" + "00" + "00",
    ),
    (
        "a topic by id",
        MetadataRequest(topics=(MetadataRequest.Topic(topic_id=TOPIC_ID, name=None),)),
        12,
        "02" + TOPIC_ID_HEX + "00" + "00" + "01" + "00" + "00",
    ),
    (
        "offsets as v0 asked for them",
        _list_offsets(timestamp=-1, max_num_offsets=2),
        0,
        "ffffffff" + ONE + "000174" + ONE + "00000000" + "ff" * 8 + "00000002",
    ),
    (
        "offsets as v0 answered",
        _old_offsets(),
        0,
        ONE + "000174" + ONE + "00000000" + "0000" + "00000002" + f"{7:016x}" + f"{5:016x}",
    ),
    (
        "a partition's offset, flexible",
        _list_offsets(partition_index=1, timestamp=-2),
        6,
        "ffffffff" + "00" + "02" + "0274" + "02" + ONE + "ffffffff" + "ff" * 7 + "fe" + "000000",
    ),
    (
        "a commit with the timestamp that only v1 had",
        OffsetCommitRequest(
            group_id="g",
            topics=(
                OffsetCommitRequest.Topic(
                    name="t",
                    partitions=(OffsetCommitRequest.Topic.Partition(commit_timestamp=3),),
                ),
            ),
        ),
        1,
        "000167" + "ffffffff" + "0000" + ONE + "000174" + ONE
        + "00000000" + "00" * 8 + f"{3:016x}" + "0000",
    ),
    (
        "a commit by topic id",
        _commit(topic_id=TOPIC_ID),
        10,
        "0267" + "ffffffff" + "01" + "00" + "02" + TOPIC_ID_HEX + "02"
        + "00000000" + f"{9:016x}" + "ffffffff" + "00" + "000000",
    ),
    (
        "all offsets of a group, in the shape since v8",
        OffsetFetchRequest(groups=(OffsetFetchRequest.Group(group_id="g", topics=None),)),
        9,
        "02" + "0267" + "00" + "ffffffff" + "00" + "00" + "00" + "00",
    ),
    (
        "several coordinators at once",
        FindCoordinatorRequest(coordinator_keys=("g", "h")),
        4,
        "00" + "03" + "0267" + "0268" + "00",
    ),
    (
        "a fetched partition before flexible versions",
        _fetch_answer(topic="t"),
        11,
        "00000000" + "0000" + "00000000" + ONE + "000174" + ONE
        + FETCHED + "ffffffff" + "ffffffff" + "00000002aabb",
    ),
    (
        "a fetched partition by topic id",
        _fetch_answer(topic_id=TOPIC_ID),
        13,
        "00000000" + "0000" + "00000000" + "02" + TOPIC_ID_HEX + "02"
        + FETCHED + "00" + "ffffffff" + "03aabb" + "000000",
    ),
    (
        "a new leader, its address, and nothing else (KIP-951)",
        FetchResponse(
            responses=(
                FetchResponse.Topic(
                    topic_id=TOPIC_ID,
                    partitions=(
                        FetchResponse.Topic.Partition(
                            error_code=6,
                            current_leader=FetchResponse.Topic.Partition.CurrentLeader(
                                leader_id=2, leader_epoch=8
                            ),
                            aborted_transactions=(),
                        ),
                    ),
                ),
            ),
            node_endpoints=(FetchResponse.NodeEndpoint(node_id=2, host="h", port=9092),),
        ),
        16,
        "00000000" + "0000" + "00000000" + "02" + TOPIC_ID_HEX + "02"
        + "00000000" + "0006" + "00" * 8 + "ff" * 16 + "01" + "ffffffff" + "00"
        # the partition's tag 1 of 9 bytes; no tags of the topic
        + "01" + "01" + "09" + "00000002" + "00000008" + "00" + "00"
        # the answer's tag 0 of 13 bytes: one node
        + "01" + "00" + "0d" + "02" + "00000002" + "0268" + "00002384" + "00" + "00",
    ),
    (
        "a cursor that is there",
        DescribeTopicPartitionsResponse(
            next_cursor=DescribeTopicPartitionsResponse.Cursor(topic_name="t", partition_index=4)
        ),
        0,
        "00000000" + "01" + "01" + "0274" + "00000004" + "00" + "00",
    ),
    ("a cursor that is not", DescribeTopicPartitionsResponse(), 0, "00000000" + "01" + "ff" + "00"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "version", "spelt"), [row[1:] for row in KNOWN], ids=[row[0] for row in KNOWN]
)
def test_known_bytes_both_ways(message, version, spelt):
    assert encode(message, version).hex() == spelt
    assert decode(type(message), bytes.fromhex(spelt), version) == message


def test_the_default_flag_that_only_the_first_describe_configs_had():
    config = DescribeConfigsResponse.Resource.Config(name="a", value="b", is_default=True)
    message = DescribeConfigsResponse(
        results=(DescribeConfigsResponse.Resource(configs=(config,)),)
    )
    (resource,) = decode(DescribeConfigsResponse, encode(message, 0), 0).results
    assert resource.configs[0].is_default is True
    with pytest.raises(LocalProtocolError, match=r"results\[0\].configs\[0\].is_default"):
        encode(message, 1)


def test_a_consumer_that_names_only_what_matters():
    partition = FetchRequest.Topic.Partition(partition=0, fetch_offset=5, partition_max_bytes=100)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=(FetchRequest.Topic(topic="t", topic_id=TOPIC_ID, partitions=(partition,)),),
    )
    by_name, by_id = (
        decode(FetchRequest, encode(request, version), version) for version in (12, 13)
    )
    assert (by_name.topics[0].topic, by_id.topics[0].topic_id) == ("t", TOPIC_ID)
    assert (by_name.replica_id, by_name.session_epoch, by_name.max_bytes) == (-1, -1, 2**31 - 1)

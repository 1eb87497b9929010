"""Things that clients and brokers say, as frames."""

from __future__ import annotations

from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.wire.frame import encode_request, encode_response


def fetch_request(correlation_id, offset=0, version=11, client_id="reader", topic="orders"):
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=offset)
    topics = (FetchRequest.Topic(topic=topic, partitions=(part,)),)
    return encode_request(FetchRequest(topics=topics), version, correlation_id, client_id)


def fetch_response(correlation_id, records=b"", version=11, error_code=0, topic="orders"):
    part = FetchResponse.Topic.Partition(
        partition_index=0, error_code=error_code, high_watermark=9, records=records
    )
    topics = (FetchResponse.Topic(topic=topic, partitions=(part,)),)
    return encode_response(FetchResponse(responses=topics), version, correlation_id)


def metadata_request(correlation_id, topic="orders", version=12, client_id="reader"):
    topics = (MetadataRequest.Topic(name=topic),)
    return encode_request(MetadataRequest(topics=topics), version, correlation_id, client_id)


def metadata_response(correlation_id, topic="orders", topic_id=bytes(range(16)), version=12):
    broker = MetadataResponse.Broker(node_id=1, host="broker-1", port=9092)
    topics = (MetadataResponse.Topic(name=topic, topic_id=topic_id),)
    response = MetadataResponse(brokers=(broker,), topics=topics)
    return encode_response(response, version, correlation_id)

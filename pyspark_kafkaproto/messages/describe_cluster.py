"""DescribeCluster, API key 60.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeClusterRequest(Request):
    API_KEY = 60
    API_NAME = "DescribeCluster"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    include_cluster_authorized_operations: bool = field("bool", "0+")
    endpoint_type: int = field("int8", "1+", default=1)
    include_fenced_brokers: bool = field("bool", "2+")


class DescribeClusterResponse(Response):
    API_KEY = 60
    API_NAME = "DescribeCluster"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    class Broker(Struct):
        broker_id: int = field("int32", "0+")
        host: str = field("string", "0+")
        port: int = field("int32", "0+")
        rack: str | None = field("string", "0+", default=None, nullable="0+")
        is_fenced: bool = field("bool", "2+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
    endpoint_type: int = field("int8", "1+", default=1)
    cluster_id: str = field("string", "0+")
    controller_id: int = field("int32", "0+", default=-1)
    brokers: tuple[Broker, ...] = array(Broker, "0+")
    cluster_authorized_operations: int = field("int32", "0+", default=-2147483648)

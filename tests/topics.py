"""Topics for tests, made by a request: a JVM for each would take a second and a half."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from pyspark_kafkaproto.cluster import NewTopic, Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import LATEST_TIMESTAMP, list_found
from pyspark_kafkaproto.cluster.topics import create_topics
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import ClientConfig
from tests.waiting import until

# Records whose timestamps are old would be deleted at the broker's next look, every five minutes.
KEPT = {"retention.ms": "-1"}


def make_topic(
    servers: str,
    name: str,
    partitions: int = 1,
    *,
    replication_factor: int = 1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Make a topic, and wait for its leaders: not every client asks again for one so new.

    It keeps records of any timestamp, unless `configs` say otherwise.
    """
    configs = KEPT | dict(configs or {})
    with closing(Router(ClientConfig.parse({"bootstrap.servers": servers}))) as router:
        create_topics(router, [NewTopic(name, partitions, replication_factor, configs)])
        ends = {TopicPartition(name, number): LATEST_TIMESTAMP for number in range(partitions)}

        def are_led() -> bool:
            try:
                list_found(router, ends)
            except BrokerError as error:  # a busy node may hear of it later than clients wait for
                if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                return False
            return True

        until(are_led, 60, f"the leaders of {name}")

"""The part of KafkaCluster that changes a cluster: topics, records, configurations."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark_kafkaproto.cluster.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    alter_configs,
    describe_configs,
)
from pyspark_kafkaproto.cluster.given import by_partition
from pyspark_kafkaproto.cluster.routing import Router, one_call
from pyspark_kafkaproto.cluster.topics import (
    NewTopic,
    add_partitions,
    create_topics,
    delete_records,
    delete_topics,
)
from pyspark_kafkaproto.cluster.topology import TopicPartition


class TopicWindow:
    """What KafkaCluster does about topics and configurations."""

    _router: Router

    def create_topics(self, topics: Collection[NewTopic], *, validate_only: bool = False) -> None:
        """Make topics, or only ask whether they could be made.

        Raises:
            BrokerError: one could not be; `usable` has the names of those that are made.
        """
        create_topics(self._router, topics, validate_only=validate_only)

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete topics with all their records.

        Raises:
            BrokerError: one could not be deleted; `usable` has those that are.
        """
        delete_topics(self._router, topics)

    def add_partitions(self, counts: Mapping[str, int], *, validate_only: bool = False) -> None:
        """Give each topic so many partitions in all; never fewer than it has.

        Raises:
            BrokerError: one could not be grown; `usable` has those that are.
        """
        add_partitions(self._router, counts, validate_only=validate_only)

    @one_call
    def delete_records(
        self, before: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, int]:
        """Delete the records below each offset (-1: all there are).

        Returns:
            The earliest offset of each partition from now on.

        Raises:
            BrokerError: a partition refused; `usable` has what would be returned of the others.
        """
        return delete_records(self._router, by_partition(before))

    def describe_configs(
        self, resources: Collection[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """All settings of each resource, by name: `ConfigResource("topic", "orders")`.

        Raises:
            BrokerError: there is no such resource, or it may not be seen; `usable` has the others.
        """
        return describe_configs(self._router, resources)

    def list_config_resources(self, types: Collection[str] | None = None) -> list[ConfigResource]:
        """What has a configuration, sorted: the names that `describe_configs` takes (KIP-1142).

        All topics and brokers; groups and client-metrics that something is set for.

        Args:
            types: of topic, broker, broker-logger, client-metrics, group; None: all of them.

        Raises:
            BrokerError: this user may not see them.
            ConfigError: there is no such type.
            UnsupportedVersion: brokers before Kafka 4.1 list those of client-metrics alone, and
                brokers with ZooKeeper none.
        """
        from pyspark_kafkaproto.cluster.admin.config_resources import list_config_resources

        return list_config_resources(self._router, types)

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Collection[ConfigChange]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change settings, and leave all others as they are.

        Raises:
            BrokerError: a setting is not known or its value is refused; `usable` has the resources
                that are changed.
            ConfigError: a setting is to be changed twice.
        """
        alter_configs(self._router, changes, validate_only=validate_only)

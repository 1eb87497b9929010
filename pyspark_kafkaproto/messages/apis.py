"""Every API whose messages are in this room.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark_kafkaproto.wire.declaration import Versions


class Api(NamedTuple):
    """An API: number, name, file, the versions known here, the first flexible one if any."""

    key: int
    name: str
    module: str
    versions: Versions
    flexible_from: int | None


APIS = (
    Api(0, "Produce", "produce", Versions(0, 13), 9),
    Api(1, "Fetch", "fetch", Versions(0, 18), 12),
    Api(2, "ListOffsets", "list_offsets", Versions(0, 11), 6),
    Api(3, "Metadata", "metadata", Versions(0, 13), 9),
    Api(8, "OffsetCommit", "offset_commit", Versions(0, 10), 8),
    Api(9, "OffsetFetch", "offset_fetch", Versions(0, 10), 6),
    Api(10, "FindCoordinator", "find_coordinator", Versions(0, 6), 3),
    Api(11, "JoinGroup", "join_group", Versions(0, 9), 6),
    Api(12, "Heartbeat", "heartbeat", Versions(0, 4), 4),
    Api(13, "LeaveGroup", "leave_group", Versions(0, 5), 4),
    Api(14, "SyncGroup", "sync_group", Versions(0, 5), 4),
    Api(15, "DescribeGroups", "describe_groups", Versions(0, 6), 5),
    Api(16, "ListGroups", "list_groups", Versions(0, 5), 3),
    Api(17, "SaslHandshake", "sasl_handshake", Versions(0, 1), None),
    Api(18, "ApiVersions", "api_versions", Versions(0, 5), 3),
    Api(19, "CreateTopics", "create_topics", Versions(0, 7), 5),
    Api(20, "DeleteTopics", "delete_topics", Versions(0, 6), 4),
    Api(21, "DeleteRecords", "delete_records", Versions(0, 2), 2),
    Api(22, "InitProducerId", "init_producer_id", Versions(0, 5), 2),
    Api(23, "OffsetForLeaderEpoch", "offset_for_leader_epoch", Versions(0, 4), 4),
    Api(24, "AddPartitionsToTxn", "add_partitions_to_txn", Versions(0, 5), 3),
    Api(25, "AddOffsetsToTxn", "add_offsets_to_txn", Versions(0, 4), 3),
    Api(26, "EndTxn", "end_txn", Versions(0, 5), 3),
    Api(27, "WriteTxnMarkers", "write_txn_markers", Versions(0, 2), 1),
    Api(28, "TxnOffsetCommit", "txn_offset_commit", Versions(0, 6), 3),
    Api(29, "DescribeAcls", "describe_acls", Versions(0, 3), 2),
    Api(30, "CreateAcls", "create_acls", Versions(0, 3), 2),
    Api(31, "DeleteAcls", "delete_acls", Versions(0, 3), 2),
    Api(32, "DescribeConfigs", "describe_configs", Versions(0, 4), 4),
    Api(33, "AlterConfigs", "alter_configs", Versions(0, 2), 2),
    Api(34, "AlterReplicaLogDirs", "alter_replica_log_dirs", Versions(0, 2), 2),
    Api(35, "DescribeLogDirs", "describe_log_dirs", Versions(0, 5), 2),
    Api(36, "SaslAuthenticate", "sasl_authenticate", Versions(0, 2), 2),
    Api(37, "CreatePartitions", "create_partitions", Versions(0, 3), 2),
    Api(38, "CreateDelegationToken", "create_delegation_token", Versions(0, 3), 2),
    Api(39, "RenewDelegationToken", "renew_delegation_token", Versions(0, 2), 2),
    Api(40, "ExpireDelegationToken", "expire_delegation_token", Versions(0, 2), 2),
    Api(41, "DescribeDelegationToken", "describe_delegation_token", Versions(0, 3), 2),
    Api(42, "DeleteGroups", "delete_groups", Versions(0, 3), 2),
    Api(43, "ElectLeaders", "elect_leaders", Versions(0, 2), 2),
    Api(44, "IncrementalAlterConfigs", "incremental_alter_configs", Versions(0, 1), 1),
    Api(45, "AlterPartitionReassignments", "alter_partition_reassignments", Versions(0, 1), 0),
    Api(46, "ListPartitionReassignments", "list_partition_reassignments", Versions(0, 0), 0),
    Api(47, "OffsetDelete", "offset_delete", Versions(0, 0), None),
    Api(48, "DescribeClientQuotas", "describe_client_quotas", Versions(0, 1), 1),
    Api(49, "AlterClientQuotas", "alter_client_quotas", Versions(0, 1), 1),
    Api(50, "DescribeUserScramCredentials", "describe_user_scram_credentials", Versions(0, 0), 0),
    Api(51, "AlterUserScramCredentials", "alter_user_scram_credentials", Versions(0, 0), 0),
    Api(55, "DescribeQuorum", "describe_quorum", Versions(0, 2), 0),
    Api(57, "UpdateFeatures", "update_features", Versions(0, 2), 0),
    Api(60, "DescribeCluster", "describe_cluster", Versions(0, 2), 0),
    Api(61, "DescribeProducers", "describe_producers", Versions(0, 0), 0),
    Api(64, "UnregisterBroker", "unregister_broker", Versions(0, 0), 0),
    Api(65, "DescribeTransactions", "describe_transactions", Versions(0, 0), 0),
    Api(66, "ListTransactions", "list_transactions", Versions(0, 2), 0),
    Api(68, "ConsumerGroupHeartbeat", "consumer_group_heartbeat", Versions(0, 1), 0),
    Api(69, "ConsumerGroupDescribe", "consumer_group_describe", Versions(0, 1), 0),
    Api(71, "GetTelemetrySubscriptions", "get_telemetry_subscriptions", Versions(0, 0), 0),
    Api(72, "PushTelemetry", "push_telemetry", Versions(0, 0), 0),
    Api(74, "ListConfigResources", "list_config_resources", Versions(0, 1), 0),
    Api(75, "DescribeTopicPartitions", "describe_topic_partitions", Versions(0, 0), 0),
    Api(76, "ShareGroupHeartbeat", "share_group_heartbeat", Versions(1, 1), 0),
    Api(77, "ShareGroupDescribe", "share_group_describe", Versions(1, 1), 0),
    Api(78, "ShareFetch", "share_fetch", Versions(1, 2), 0),
    Api(79, "ShareAcknowledge", "share_acknowledge", Versions(1, 2), 0),
    Api(80, "AddRaftVoter", "add_raft_voter", Versions(0, 1), 0),
    Api(81, "RemoveRaftVoter", "remove_raft_voter", Versions(0, 0), 0),
    Api(83, "InitializeShareGroupState", "initialize_share_group_state", Versions(0, 0), 0),
    Api(84, "ReadShareGroupState", "read_share_group_state", Versions(0, 0), 0),
    Api(85, "WriteShareGroupState", "write_share_group_state", Versions(0, 1), 0),
    Api(86, "DeleteShareGroupState", "delete_share_group_state", Versions(0, 0), 0),
    Api(87, "ReadShareGroupStateSummary", "read_share_group_state_summary", Versions(0, 1), 0),
    Api(88, "StreamsGroupHeartbeat", "streams_group_heartbeat", Versions(0, 1), 0),
    Api(89, "StreamsGroupDescribe", "streams_group_describe", Versions(0, 1), 0),
    Api(90, "DescribeShareGroupOffsets", "describe_share_group_offsets", Versions(0, 1), 0),
    Api(91, "AlterShareGroupOffsets", "alter_share_group_offsets", Versions(0, 0), 0),
    Api(92, "DeleteShareGroupOffsets", "delete_share_group_offsets", Versions(0, 0), 0),
    Api(
        93,
        "StreamsGroupTopologyDescriptionUpdate",
        "streams_group_topology_description_update",
        Versions(0, 0),
        0,
    ),
    Api(94, "UnregisterController", "unregister_controller", Versions(0, 0), 0),
)

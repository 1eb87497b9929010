"""The one table of Kafka's error codes: names, what a client does about each, and missing rights.

This room is the lowest one and imports nothing of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

# Those that this package asks for by name.
UNKNOWN_SERVER_ERROR: Final = -1
OFFSET_OUT_OF_RANGE: Final = 1
CORRUPT_MESSAGE: Final = 2
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
REPLICA_NOT_AVAILABLE: Final = 9
MESSAGE_TOO_LARGE: Final = 10
OFFSET_METADATA_TOO_LARGE: Final = 12
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
INVALID_TOPIC_EXCEPTION: Final = 17
RECORD_LIST_TOO_LARGE: Final = 18
NOT_ENOUGH_REPLICAS: Final = 19
ILLEGAL_GENERATION: Final = 22
INCONSISTENT_GROUP_PROTOCOL: Final = 23
UNKNOWN_MEMBER_ID: Final = 25
INVALID_SESSION_TIMEOUT: Final = 26
REBALANCE_IN_PROGRESS: Final = 27
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_TIMESTAMP: Final = 32
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
TOPIC_ALREADY_EXISTS: Final = 36
INVALID_PARTITIONS: Final = 37
INVALID_REPLICATION_FACTOR: Final = 38
INVALID_REPLICA_ASSIGNMENT: Final = 39
NOT_CONTROLLER: Final = 41
INVALID_REQUEST: Final = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT: Final = 43
POLICY_VIOLATION: Final = 44
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
DUPLICATE_SEQUENCE_NUMBER: Final = 46
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
INVALID_TRANSACTION_TIMEOUT: Final = 50
CONCURRENT_TRANSACTIONS: Final = 51
TRANSACTION_COORDINATOR_FENCED: Final = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
SECURITY_DISABLED: Final = 54
OPERATION_NOT_ATTEMPTED: Final = 55
KAFKA_STORAGE_ERROR: Final = 56
LOG_DIR_NOT_FOUND: Final = 57
SASL_AUTHENTICATION_FAILED: Final = 58
UNKNOWN_PRODUCER_ID: Final = 59
DELEGATION_TOKEN_AUTH_DISABLED: Final = 61
DELEGATION_TOKEN_NOT_FOUND: Final = 62
DELEGATION_TOKEN_OWNER_MISMATCH: Final = 63
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = 64
DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = 65
DELEGATION_TOKEN_EXPIRED: Final = 66
INVALID_PRINCIPAL_TYPE: Final = 67
NON_EMPTY_GROUP: Final = 68
GROUP_ID_NOT_FOUND: Final = 69
LISTENER_NOT_FOUND: Final = 72
FENCED_LEADER_EPOCH: Final = 74
OFFSET_NOT_AVAILABLE: Final = 78
MEMBER_ID_REQUIRED: Final = 79
PREFERRED_LEADER_NOT_AVAILABLE: Final = 80
GROUP_MAX_SIZE_REACHED: Final = 81
FENCED_INSTANCE_ID: Final = 82
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = 83
ELECTION_NOT_NEEDED: Final = 84
NO_REASSIGNMENT_IN_PROGRESS: Final = 85
GROUP_SUBSCRIBED_TO_TOPIC: Final = 86
INVALID_RECORD: Final = 87
UNSTABLE_OFFSET_COMMIT: Final = 88
THROTTLING_QUOTA_EXCEEDED: Final = 89
PRODUCER_FENCED: Final = 90
RESOURCE_NOT_FOUND: Final = 91
INVALID_UPDATE_VERSION: Final = 95
UNKNOWN_TOPIC_ID: Final = 100
BROKER_ID_NOT_REGISTERED: Final = 102
INCONSISTENT_TOPIC_ID: Final = 103
TRANSACTIONAL_ID_NOT_FOUND: Final = 105
FENCED_MEMBER_EPOCH: Final = 110
UNRELEASED_INSTANCE_ID: Final = 111
UNSUPPORTED_ASSIGNOR: Final = 112
STALE_MEMBER_EPOCH: Final = 113
TRANSACTION_ABORTABLE: Final = 120
INVALID_RECORD_STATE: Final = 121
SHARE_SESSION_NOT_FOUND: Final = 122
INVALID_SHARE_SESSION_EPOCH: Final = 123
INVALID_REGULAR_EXPRESSION: Final = 128
REBOOTSTRAP_REQUIRED: Final = 129
SHARE_SESSION_LIMIT_REACHED: Final = 133


class Retry(Enum):
    """What a client does about an error code."""

    FATAL = "not retried"
    RETRIABLE = "retried where it was sent"
    COORDINATOR = "retried after the coordinator was looked up again"
    METADATA = "retried after metadata was fetched again"


class ErrorCode(NamedTuple):
    """One row of Kafka's error table."""

    code: int
    name: str
    retry: Retry

    @property
    def is_retriable(self) -> bool:
        """Whether a later try can succeed."""
        return self.retry is not Retry.FATAL

    @property
    def refreshes_metadata(self) -> bool:
        """Whether the leader has to be looked up again before the next try."""
        return self.retry is Retry.METADATA


def error_code(code: int, api: str = "") -> ErrorCode:
    """The row for `code`, with what clients of `api` do about it where an API is given.

    A number that is not in the table keeps itself and is fatal.
    """
    row = ERROR_CODES.get(code) or ErrorCode(code, f"UNKNOWN_ERROR_CODE_{code}", Retry.FATAL)
    return row._replace(retry=_RETRY_IN.get((api, code), row.retry))


def missing_right(api: str, code: int) -> str | None:
    """The right that `api` misses when it answers `code`: `READ on the topic`; None if not so."""
    return _RIGHTS.get(code, {}).get(api)


_READ_GROUP, _DESCRIBE_GROUP = "READ on the group", "DESCRIBE on the group"
_READ_TOPIC, _DESCRIBE_TOPIC = "READ on the topic", "DESCRIBE on the topic"
_WRITE_TOPIC = "WRITE on the topic"
_WRITE_ID = "WRITE on the transactional id"
_DESCRIBE_ID = "DESCRIBE on the transactional id"
_IDEMPOTENT_WRITE = "IDEMPOTENT_WRITE on the cluster (or WRITE on some topic)"
_ALTER_CLUSTER, _DESCRIBE_CLUSTER = "ALTER on the cluster", "DESCRIBE on the cluster"

# By error code, then by API, as Kafka's documentation lists them (security, authorization
# primitives). WRITE, READ and DELETE bring DESCRIBE with them: where that is what is asked for
# first, the right that would be missed next is named, too.
_RIGHTS: Mapping[int, Mapping[str, str]] = {
    TOPIC_AUTHORIZATION_FAILED: {
        "AddPartitionsToTxn": _WRITE_TOPIC,
        "AlterConfigs": "ALTER_CONFIGS on the topic",
        "AlterShareGroupOffsets": _READ_TOPIC,
        "ConsumerGroupDescribe": _DESCRIBE_TOPIC,
        "ConsumerGroupHeartbeat": f"{_DESCRIBE_TOPIC}, and READ for its records",
        "CreatePartitions": "ALTER on the topic",
        "CreateTopics": "CREATE on the topic",
        "DeleteRecords": "DELETE on the topic",
        "DeleteShareGroupOffsets": _READ_TOPIC,
        "DeleteTopics": "DELETE on the topic",
        "DescribeConfigs": "DESCRIBE_CONFIGS on the topic",
        "DescribeProducers": _READ_TOPIC,
        "DescribeShareGroupOffsets": _DESCRIBE_TOPIC,
        "DescribeTopicPartitions": _DESCRIBE_TOPIC,
        "Fetch": _READ_TOPIC,
        "IncrementalAlterConfigs": "ALTER_CONFIGS on the topic",
        "ListOffsets": _DESCRIBE_TOPIC,
        "Metadata": f"{_DESCRIBE_TOPIC}, and READ, WRITE or DELETE for its records",
        "OffsetCommit": _READ_TOPIC,
        "OffsetDelete": _READ_TOPIC,
        "OffsetFetch": _DESCRIBE_TOPIC,
        "OffsetForLeaderEpoch": _DESCRIBE_TOPIC,
        "Produce": _WRITE_TOPIC,
        "ShareAcknowledge": _READ_TOPIC,
        "ShareFetch": _READ_TOPIC,
        "ShareGroupDescribe": _DESCRIBE_TOPIC,
        "ShareGroupHeartbeat": f"{_DESCRIBE_TOPIC}, and READ for its records",
        "StreamsGroupDescribe": _DESCRIBE_TOPIC,
        "TxnOffsetCommit": _READ_TOPIC,
    },
    GROUP_AUTHORIZATION_FAILED: {
        "AddOffsetsToTxn": _READ_GROUP,
        "AlterShareGroupOffsets": _READ_GROUP,
        "ConsumerGroupDescribe": _DESCRIBE_GROUP,
        "ConsumerGroupHeartbeat": _READ_GROUP,
        "DeleteGroups": "DELETE on the group",
        "DeleteShareGroupOffsets": "DELETE on the group",
        "DescribeConfigs": "DESCRIBE_CONFIGS on the group",
        "DescribeGroups": _DESCRIBE_GROUP,
        "DescribeShareGroupOffsets": _DESCRIBE_GROUP,
        "FindCoordinator": f"{_DESCRIBE_GROUP}, and READ for its members and commits, or DELETE",
        "Heartbeat": _READ_GROUP,
        "IncrementalAlterConfigs": "ALTER_CONFIGS on the group",
        "JoinGroup": _READ_GROUP,
        "LeaveGroup": _READ_GROUP,
        "OffsetCommit": _READ_GROUP,
        "OffsetDelete": "DELETE on the group",
        "OffsetFetch": _DESCRIBE_GROUP,
        "ShareAcknowledge": _READ_GROUP,
        "ShareFetch": _READ_GROUP,
        "ShareGroupDescribe": _DESCRIBE_GROUP,
        "ShareGroupHeartbeat": _READ_GROUP,
        "StreamsGroupDescribe": _DESCRIBE_GROUP,
        "SyncGroup": _READ_GROUP,
        "TxnOffsetCommit": _READ_GROUP,
    },
    CLUSTER_AUTHORIZATION_FAILED: {
        "AlterClientQuotas": "ALTER_CONFIGS on the cluster",
        "AlterConfigs": "ALTER_CONFIGS on the cluster",
        "AlterPartitionReassignments": _ALTER_CLUSTER,
        "AlterReplicaLogDirs": _ALTER_CLUSTER,
        "AlterUserScramCredentials": _ALTER_CLUSTER,
        "CreateAcls": _ALTER_CLUSTER,
        "CreateTopics": "CREATE on the cluster (or on the topic)",
        "DeleteAcls": _ALTER_CLUSTER,
        "DescribeAcls": _DESCRIBE_CLUSTER,
        "DescribeClientQuotas": "DESCRIBE_CONFIGS on the cluster",
        "DescribeCluster": _DESCRIBE_CLUSTER,
        "DescribeConfigs": "DESCRIBE_CONFIGS on the cluster",
        "DescribeLogDirs": _DESCRIBE_CLUSTER,
        "DescribeQuorum": _DESCRIBE_CLUSTER,
        "DescribeUserScramCredentials": _DESCRIBE_CLUSTER,
        "ElectLeaders": _ALTER_CLUSTER,
        "IncrementalAlterConfigs": "ALTER_CONFIGS on the cluster",
        "InitProducerId": _IDEMPOTENT_WRITE,
        "ListConfigResources": "DESCRIBE_CONFIGS on the cluster",
        "ListPartitionReassignments": _DESCRIBE_CLUSTER,
        "Produce": _IDEMPOTENT_WRITE,
        "UnregisterBroker": _ALTER_CLUSTER,
        "UpdateFeatures": _ALTER_CLUSTER,
        "WriteTxnMarkers": f"{_ALTER_CLUSTER} (CLUSTER_ACTION before Kafka 3.8)",
    },
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: {
        "AddOffsetsToTxn": _WRITE_ID,
        "AddPartitionsToTxn": _WRITE_ID,
        "DescribeTransactions": _DESCRIBE_ID,
        "EndTxn": _WRITE_ID,
        "FindCoordinator": f"{_DESCRIBE_ID}, and WRITE for its transactions",
        "InitProducerId": _WRITE_ID,
        "Produce": _WRITE_ID,
        "TxnOffsetCommit": _WRITE_ID,
    },
    DELEGATION_TOKEN_AUTHORIZATION_FAILED: {
        "CreateDelegationToken": "CREATE_TOKENS on the user",
    },
}

_FATAL = Retry.FATAL
_RETRIABLE = Retry.RETRIABLE
_COORDINATOR = Retry.COORDINATOR
_METADATA = Retry.METADATA

# Kafka 4.4's table. How each is retried follows the Java client's exception tree: its
# RetriableException, RefreshRetriableException (coordinator) and InvalidMetadataException.
_TABLE = (
    (-1, "UNKNOWN_SERVER_ERROR", _FATAL),
    (0, "NONE", _FATAL),
    (1, "OFFSET_OUT_OF_RANGE", _FATAL),
    (2, "CORRUPT_MESSAGE", _RETRIABLE),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", _METADATA),
    (4, "INVALID_FETCH_SIZE", _FATAL),
    (5, "LEADER_NOT_AVAILABLE", _METADATA),
    (6, "NOT_LEADER_OR_FOLLOWER", _METADATA),
    (7, "REQUEST_TIMED_OUT", _RETRIABLE),
    (8, "BROKER_NOT_AVAILABLE", _FATAL),
    (9, "REPLICA_NOT_AVAILABLE", _METADATA),
    (10, "MESSAGE_TOO_LARGE", _FATAL),
    (11, "STALE_CONTROLLER_EPOCH", _FATAL),
    (12, "OFFSET_METADATA_TOO_LARGE", _FATAL),
    (13, "NETWORK_EXCEPTION", _METADATA),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", _RETRIABLE),
    (15, "COORDINATOR_NOT_AVAILABLE", _COORDINATOR),
    (16, "NOT_COORDINATOR", _COORDINATOR),
    (17, "INVALID_TOPIC_EXCEPTION", _FATAL),
    (18, "RECORD_LIST_TOO_LARGE", _FATAL),
    (19, "NOT_ENOUGH_REPLICAS", _RETRIABLE),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", _RETRIABLE),
    (21, "INVALID_REQUIRED_ACKS", _FATAL),
    (22, "ILLEGAL_GENERATION", _FATAL),
    (23, "INCONSISTENT_GROUP_PROTOCOL", _FATAL),
    (24, "INVALID_GROUP_ID", _FATAL),
    (25, "UNKNOWN_MEMBER_ID", _FATAL),
    (26, "INVALID_SESSION_TIMEOUT", _FATAL),
    (27, "REBALANCE_IN_PROGRESS", _FATAL),
    (28, "INVALID_COMMIT_OFFSET_SIZE", _FATAL),
    (29, "TOPIC_AUTHORIZATION_FAILED", _FATAL),
    (30, "GROUP_AUTHORIZATION_FAILED", _FATAL),
    (31, "CLUSTER_AUTHORIZATION_FAILED", _FATAL),
    (32, "INVALID_TIMESTAMP", _FATAL),
    (33, "UNSUPPORTED_SASL_MECHANISM", _FATAL),
    (34, "ILLEGAL_SASL_STATE", _FATAL),
    (35, "UNSUPPORTED_VERSION", _FATAL),
    (36, "TOPIC_ALREADY_EXISTS", _FATAL),
    (37, "INVALID_PARTITIONS", _FATAL),
    (38, "INVALID_REPLICATION_FACTOR", _FATAL),
    (39, "INVALID_REPLICA_ASSIGNMENT", _FATAL),
    (40, "INVALID_CONFIG", _FATAL),
    (41, "NOT_CONTROLLER", _RETRIABLE),
    (42, "INVALID_REQUEST", _FATAL),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", _FATAL),
    (44, "POLICY_VIOLATION", _FATAL),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", _FATAL),
    (46, "DUPLICATE_SEQUENCE_NUMBER", _FATAL),
    (47, "INVALID_PRODUCER_EPOCH", _FATAL),
    (48, "INVALID_TXN_STATE", _FATAL),
    (49, "INVALID_PRODUCER_ID_MAPPING", _FATAL),
    (50, "INVALID_TRANSACTION_TIMEOUT", _FATAL),
    (51, "CONCURRENT_TRANSACTIONS", _RETRIABLE),
    (52, "TRANSACTION_COORDINATOR_FENCED", _FATAL),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", _FATAL),
    (54, "SECURITY_DISABLED", _FATAL),
    (55, "OPERATION_NOT_ATTEMPTED", _FATAL),
    (56, "KAFKA_STORAGE_ERROR", _METADATA),
    (57, "LOG_DIR_NOT_FOUND", _FATAL),
    (58, "SASL_AUTHENTICATION_FAILED", _FATAL),
    (59, "UNKNOWN_PRODUCER_ID", _FATAL),
    (60, "REASSIGNMENT_IN_PROGRESS", _FATAL),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", _FATAL),
    (62, "DELEGATION_TOKEN_NOT_FOUND", _FATAL),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", _FATAL),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", _FATAL),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", _FATAL),
    (66, "DELEGATION_TOKEN_EXPIRED", _FATAL),
    (67, "INVALID_PRINCIPAL_TYPE", _FATAL),
    (68, "NON_EMPTY_GROUP", _FATAL),
    (69, "GROUP_ID_NOT_FOUND", _FATAL),
    (70, "FETCH_SESSION_ID_NOT_FOUND", _RETRIABLE),
    (71, "INVALID_FETCH_SESSION_EPOCH", _RETRIABLE),
    (72, "LISTENER_NOT_FOUND", _METADATA),
    (73, "TOPIC_DELETION_DISABLED", _FATAL),
    (74, "FENCED_LEADER_EPOCH", _METADATA),
    (75, "UNKNOWN_LEADER_EPOCH", _RETRIABLE),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", _FATAL),
    (77, "STALE_BROKER_EPOCH", _FATAL),
    (78, "OFFSET_NOT_AVAILABLE", _RETRIABLE),
    (79, "MEMBER_ID_REQUIRED", _FATAL),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", _METADATA),
    (81, "GROUP_MAX_SIZE_REACHED", _FATAL),
    (82, "FENCED_INSTANCE_ID", _FATAL),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", _METADATA),
    (84, "ELECTION_NOT_NEEDED", _METADATA),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", _FATAL),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", _FATAL),
    (87, "INVALID_RECORD", _FATAL),
    (88, "UNSTABLE_OFFSET_COMMIT", _RETRIABLE),
    (89, "THROTTLING_QUOTA_EXCEEDED", _RETRIABLE),
    (90, "PRODUCER_FENCED", _FATAL),
    (91, "RESOURCE_NOT_FOUND", _FATAL),
    (92, "DUPLICATE_RESOURCE", _FATAL),
    (93, "UNACCEPTABLE_CREDENTIAL", _FATAL),
    (94, "INCONSISTENT_VOTER_SET", _FATAL),
    (95, "INVALID_UPDATE_VERSION", _FATAL),
    (96, "FEATURE_UPDATE_FAILED", _FATAL),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", _FATAL),
    (98, "SNAPSHOT_NOT_FOUND", _FATAL),
    (99, "POSITION_OUT_OF_RANGE", _FATAL),
    (100, "UNKNOWN_TOPIC_ID", _METADATA),
    (101, "DUPLICATE_BROKER_REGISTRATION", _FATAL),
    (102, "BROKER_ID_NOT_REGISTERED", _FATAL),
    (103, "INCONSISTENT_TOPIC_ID", _METADATA),
    (104, "INCONSISTENT_CLUSTER_ID", _FATAL),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", _FATAL),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", _RETRIABLE),
    (107, "INELIGIBLE_REPLICA", _FATAL),
    (108, "NEW_LEADER_ELECTED", _FATAL),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", _FATAL),
    (110, "FENCED_MEMBER_EPOCH", _FATAL),
    (111, "UNRELEASED_INSTANCE_ID", _FATAL),
    (112, "UNSUPPORTED_ASSIGNOR", _FATAL),
    (113, "STALE_MEMBER_EPOCH", _FATAL),
    (114, "MISMATCHED_ENDPOINT_TYPE", _FATAL),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", _FATAL),
    (116, "UNKNOWN_CONTROLLER_ID", _FATAL),
    (117, "UNKNOWN_SUBSCRIPTION_ID", _FATAL),
    (118, "TELEMETRY_TOO_LARGE", _FATAL),
    (119, "INVALID_REGISTRATION", _FATAL),
    (120, "TRANSACTION_ABORTABLE", _FATAL),
    (121, "INVALID_RECORD_STATE", _FATAL),
    (122, "SHARE_SESSION_NOT_FOUND", _RETRIABLE),
    (123, "INVALID_SHARE_SESSION_EPOCH", _RETRIABLE),
    (124, "FENCED_STATE_EPOCH", _FATAL),
    (125, "INVALID_VOTER_KEY", _FATAL),
    (126, "DUPLICATE_VOTER", _FATAL),
    (127, "VOTER_NOT_FOUND", _FATAL),
    (128, "INVALID_REGULAR_EXPRESSION", _FATAL),
    (129, "REBOOTSTRAP_REQUIRED", _FATAL),
    (130, "STREAMS_INVALID_TOPOLOGY", _FATAL),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", _FATAL),
    (132, "STREAMS_TOPOLOGY_FENCED", _FATAL),
    (133, "SHARE_SESSION_LIMIT_REACHED", _RETRIABLE),
    (134, "GROUP_DELETION_FAILED", _FATAL),
    (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", _FATAL),
    (136, "CONTROLLER_ID_NOT_REGISTERED", _FATAL),
)

# Where Java's clients do otherwise about an answer than its exceptions say: its consumer, and its
# admin client, which tells at once of a leader or a disk that is away. And where an end of a
# transaction failed within the broker, nobody knows whether it has ended: asked again it says so.
_RETRY_IN: Mapping[tuple[str, int], Retry] = {
    ("AlterReplicaLogDirs", KAFKA_STORAGE_ERROR): _FATAL,
    ("ElectLeaders", PREFERRED_LEADER_NOT_AVAILABLE): _FATAL,
    ("ElectLeaders", ELIGIBLE_LEADERS_NOT_AVAILABLE): _FATAL,
    ("EndTxn", UNKNOWN_SERVER_ERROR): _RETRIABLE,
    ("Fetch", UNKNOWN_SERVER_ERROR): _METADATA,
    ("Fetch", CORRUPT_MESSAGE): _FATAL,
    ("Fetch", OFFSET_NOT_AVAILABLE): _METADATA,
    ("FindCoordinator", UNKNOWN_SERVER_ERROR): _RETRIABLE,
    ("Heartbeat", UNKNOWN_SERVER_ERROR): _RETRIABLE,
    ("JoinGroup", UNKNOWN_SERVER_ERROR): _RETRIABLE,
    ("ListOffsets", UNKNOWN_SERVER_ERROR): _METADATA,
    ("OffsetForLeaderEpoch", UNKNOWN_SERVER_ERROR): _METADATA,
    ("ShareFetch", UNKNOWN_SERVER_ERROR): _METADATA,
    ("ShareFetch", CORRUPT_MESSAGE): _FATAL,
    ("SyncGroup", UNKNOWN_SERVER_ERROR): _RETRIABLE,
}

ERROR_CODES: Mapping[int, ErrorCode] = {row[0]: ErrorCode(*row) for row in _TABLE}

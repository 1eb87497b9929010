"""What the generator cannot take from the definitions: names, secrets, and words of our own.

Keyed by Kafka's names; a field is `Message.Field.Field`. All of it is written by hand.
"""

from __future__ import annotations

# Structures are named after the field that holds them, in the singular ("Topics" -> "Topic").
# Where that reads badly, by Kafka's name of the structure:
STRUCT_NAMES = {
    "AcquiredRecords": "AcquiredRecords",
    "AddPartitionsToTxnPartitionResult": "PartitionResult",
    "AddPartitionsToTxnResult": "TransactionResult",
    "AddPartitionsToTxnTopic": "Topic",
    "AddPartitionsToTxnTopicResult": "TopicResult",
    "AlterConfigsResourceResponse": "Resource",
    "AlterReplicaLogDirTopicResult": "Topic",
    "AlterShareGroupOffsetsResponseTopic": "Topic",
    "ApiVersion": "ApiVersion",
    "CreatePartitionsTopicResult": "Topic",
    "Cursor": "Cursor",
    "DeletableGroupResult": "Group",
    "DeletableTopicResult": "Topic",
    "DeleteShareGroupOffsetsResponseTopic": "Topic",
    "DeleteStateResult": "Topic",
    "DescribeConfigsResult": "Resource",
    "DescribeLogDirsResult": "LogDir",
    "EndpointToPartitions": "EndpointPartitions",
    "FetchableTopicResponse": "Topic",
    "ForgottenTopic": "ForgottenTopic",
    "InitializeStateResult": "Topic",
    "PartitionProduceResponse": "Partition",
    "ReadStateResult": "Topic",
    "ReadStateSummaryResult": "Topic",
    "ReassignableTopicResponse": "Topic",
    "ReplicaElectionResult": "Topic",
    "ShareAcknowledgeTopicResponse": "Topic",
    "ShareFetchableTopicResponse": "Topic",
    "TopicPartitions": "TopicPartitions",
    "TopicProduceResponse": "Topic",
    "UpdatableFeatureResult": "Feature",
    "WriteStateResult": "Topic",
}

# Fields whose values stay out of a repr, and so out of logs and errors.
SECRETS = {
    "AlterConfigsRequest.Resources.Configs.Value",
    "AlterUserScramCredentialsRequest.Upsertions.SaltedPassword",
    "CreateDelegationTokenResponse.Hmac",
    "DescribeConfigsResponse.Results.Configs.Synonyms.Value",
    "DescribeConfigsResponse.Results.Configs.Value",
    "DescribeDelegationTokenResponse.Tokens.Hmac",
    "ExpireDelegationTokenRequest.Hmac",
    "IncrementalAlterConfigsRequest.Resources.Configs.Value",
    "RenewDelegationTokenRequest.Hmac",
    "SaslAuthenticateRequest.AuthBytes",
    "SaslAuthenticateResponse.AuthBytes",
}

# One line about a field, where its name and type do not say enough to use it.
NOTES = {
    "ApiVersionsResponse.FinalizedFeatures": "meaningful only with an epoch of 0 or more",
    "ApiVersionsResponse.FinalizedFeaturesEpoch": "-1: unknown",
    "DeleteTopicsRequest.Topics.Name": "null where the topic is asked for by id",
    "EndTxnResponse.ProducerEpoch": "what the next transaction uses (KIP-890); -1: as before",
    "FetchRequest.IsolationLevel": "0: read_uncommitted, 1: read_committed",
    "FetchRequest.MaxBytes": "the first batch of an answer may be larger (KIP-74)",
    "FetchRequest.MinBytes": "the broker waits for so many, at most max_wait_ms",
    "FetchRequest.ReplicaId": "-1: a consumer",
    "FetchRequest.SessionEpoch": "-1: no incremental session",
    "FetchResponse.Responses.Partitions.AbortedTransactions": "may be unsorted",
    "FetchResponse.Responses.Partitions.HighWatermark": "-1 with OFFSET_OUT_OF_RANGE",
    "FetchResponse.Responses.Partitions.PreferredReadReplica": "-1: keep reading here (KIP-392)",
    "FetchResponse.Responses.Partitions.Records": "whole batches, then perhaps a piece of one",
    "FindCoordinatorRequest.KeyType": "0: group, 1: transaction, 2: share",
    "JoinGroupRequest.MemberId": "empty in the first try; the answer gives one (KIP-394)",
    "ListOffsetsRequest.IsolationLevel": "0: read_uncommitted, 1: read_committed",
    "ListOffsetsRequest.ReplicaId": "-1: a consumer",
    "ListOffsetsRequest.Topics.Partitions.Timestamp": "-1: latest, -2: earliest, else milliseconds",
    "ListOffsetsResponse.Topics.Partitions.Offset": "-1: no record is that young",
    "MetadataRequest.Topics": "null: all (in v0 the empty array means all)",
    "MetadataResponse.Topics.Partitions.LeaderId": "-1: none now",
    "OffsetCommitRequest.GenerationIdOrMemberEpoch": "-1: not a member",
    "OffsetFetchRequest.Groups.Topics": "null: all that the group has",
    "OffsetFetchRequest.RequireStable": "wait for open transactions (UNSTABLE_OFFSET_COMMIT)",
    "OffsetFetchRequest.Topics": "null: all that the group has",
    "OffsetFetchResponse.Groups.Topics.Partitions.CommittedOffset": "-1: none committed",
    "OffsetFetchResponse.Topics.Partitions.CommittedOffset": "-1: none committed",
    "ProduceRequest.Acks": "0: none, and no answer; 1: leader; -1: all in sync",
    "ProduceResponse.Responses.PartitionResponses.LogAppendTimeMs": "-1: the records' own times",
}

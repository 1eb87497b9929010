"""The exception tree pickles and says everything in its text; the table is Kafka's."""

import pickle
from collections import Counter

import pytest

from pyspark_kafkaproto import error_codes
from pyspark_kafkaproto.error_codes import ERROR_CODES, Retry, error_code
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BatchTooLarge,
    BrokerError,
    ConfigError,
    ConnectionFailed,
    CorruptRecords,
    DataLoss,
    DeadlineExceeded,
    DevBrokerFailed,
    InvalidRecord,
    KafkaProtoError,
    LocalProtocolError,
    OutOfMemory,
    RemoteProtocolError,
    Throttled,
    TimestampOutOfRange,
    UnreadableCapture,
    UnsupportedVersion,
)

EXAMPLES = [
    ConfigError("acks", "maybe", "expected all, 0 or 1"),
    ConnectionFailed("b-1:9092", "connect", "Connection refused"),
    DeadlineExceeded("list offsets", 2.5, ["b-1 refused", "b-2 was silent"]),
    AuthenticationFailed("b-1:9092", "PLAIN", "wrong password"),
    DevBrokerFailed("no Java"),
    LocalProtocolError("no request is in flight"),
    RemoteProtocolError("2 bytes are left", where="Fetch response v12", path="topics[3].name"),
    CorruptRecords("CRC is 1, computed 2", base_offset=7, pos=61).of("orders", 3),
    UnsupportedVersion("broker speaks Fetch 0 to 3"),
    DataLoss("COULD_NOT_READ_OFFSET_RANGE", "Offsets are gone."),
    BrokerError(29, "Fetch", "partition orders-0", "not for you.", usable={"orders-1": 5}),
    InvalidRecord("the key of its header 0 is null", row=7, position=3),
    UnreadableCapture("traffic.pcap", "it begins with b'GIF8'"),
    OutOfMemory("b-1:9092", 8_388_608),
    Throttled("b-1:9092", 60.0, 30.0),
    BatchTooLarge("9 bytes of records are more than the limit of 8", base_offset=7, pos=61),
    TimestampOutOfRange("record 0 of 1: its timestamp does not fit", base_offset=7, pos=61),
]


def _id(error):
    return type(error).__name__


def test_every_class_has_an_example():
    def tree(cls):
        return {cls}.union(*(tree(below) for below in cls.__subclasses__()))

    ours = {cls for cls in tree(KafkaProtoError) if cls.__module__ == KafkaProtoError.__module__}
    assert {type(error) for error in EXAMPLES} == ours - {KafkaProtoError}


def test_an_option_that_was_not_given_is_missing():
    error = ConfigError("bootstrap.servers", None, "say where")
    assert str(error) == "option 'bootstrap.servers' is missing: say where"


@pytest.mark.parametrize("error", EXAMPLES, ids=_id)
def test_pickles_with_text_and_attributes(error):
    error.patience_s = 1.5
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=_id)
def test_another_line_is_in_the_text_here_and_behind_a_pickle(error):
    longer = pickle.loads(pickle.dumps(error))
    longer.add_line("Look there")
    assert str(pickle.loads(pickle.dumps(longer))) == f"{error}\nLook there"
    assert vars(longer) == vars(error)


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (ConfigError, ValueError),
        (ConnectionFailed, ConnectionError),
        (DeadlineExceeded, TimeoutError),
        (CorruptRecords, RemoteProtocolError),
        (InvalidRecord, ValueError),
    ],
)
def test_is_what_python_calls_it_too(cls, builtin):
    assert issubclass(cls, builtin)
    assert issubclass(cls, KafkaProtoError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (EXAMPLES[0], "option 'acks' is 'maybe': expected all, 0 or 1"),
        (EXAMPLES[1], "broker b-1:9092: connect failed: Connection refused"),
        (
            EXAMPLES[2],
            "list offsets: not done within 2.5 s; tried:\n  - b-1 refused\n  - b-2 was silent",
        ),
        (EXAMPLES[3], "broker b-1:9092: PLAIN authentication failed: wrong password"),
        (EXAMPLES[6], "Fetch response v12: topics[3].name: 2 bytes are left"),
        (
            EXAMPLES[7],
            "orders-3, record batch at offset 7 (byte 61): CRC is 1, computed 2",
        ),
        (
            EXAMPLES[10],
            (
                "Fetch: partition orders-0: TOPIC_AUTHORIZATION_FAILED (29): not for you; "
                "this user needs the right READ on the topic"
            ),
        ),
        (EXAMPLES[11], "row 7: the key of its header 0 is null"),
    ],
    ids=lambda item: _id(item) if isinstance(item, Exception) else "",
)
def test_text_says_what_failed(error, text):
    assert str(error) == text


def test_data_loss_names_sparks_condition_and_the_way_out():
    text = str(EXAMPLES[9])
    assert text.startswith("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Offsets are gone.")
    assert "failOnDataLoss to false" in text


def test_table_has_every_code_of_kafka_once():
    # Kafka 4.4's org.apache.kafka.common.protocol.Errors: -1 to 136 without a gap.
    assert list(ERROR_CODES) == list(range(-1, 137))
    assert len({row.name for row in ERROR_CODES.values()}) == 138


def test_codes_have_the_names_of_the_table():
    named = {name: code for name, code in vars(error_codes).items() if type(code) is int}
    assert named == {ERROR_CODES[code].name: code for code in named.values()}
    assert named["FENCED_INSTANCE_ID"] == 82


def test_table_has_kafkas_retry_classes():
    # Counted over the exceptions of the same enum: RetriableException and, below it,
    # RefreshRetriableException and InvalidMetadataException.
    assert Counter(row.retry for row in ERROR_CODES.values()) == {
        Retry.FATAL: 106,
        Retry.RETRIABLE: 17,
        Retry.COORDINATOR: 2,
        Retry.METADATA: 13,
    }


@pytest.mark.parametrize(
    ("code", "name", "retry"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", Retry.FATAL),
        (0, "NONE", Retry.FATAL),
        (1, "OFFSET_OUT_OF_RANGE", Retry.FATAL),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", Retry.METADATA),
        (6, "NOT_LEADER_OR_FOLLOWER", Retry.METADATA),
        (7, "REQUEST_TIMED_OUT", Retry.RETRIABLE),
        (14, "COORDINATOR_LOAD_IN_PROGRESS", Retry.RETRIABLE),
        (15, "COORDINATOR_NOT_AVAILABLE", Retry.COORDINATOR),
        (16, "NOT_COORDINATOR", Retry.COORDINATOR),
        (25, "UNKNOWN_MEMBER_ID", Retry.FATAL),
        (29, "TOPIC_AUTHORIZATION_FAILED", Retry.FATAL),
        (58, "SASL_AUTHENTICATION_FAILED", Retry.FATAL),
        (74, "FENCED_LEADER_EPOCH", Retry.METADATA),
        (75, "UNKNOWN_LEADER_EPOCH", Retry.RETRIABLE),
        (78, "OFFSET_NOT_AVAILABLE", Retry.RETRIABLE),
        (88, "UNSTABLE_OFFSET_COMMIT", Retry.RETRIABLE),
        (100, "UNKNOWN_TOPIC_ID", Retry.METADATA),
        (136, "CONTROLLER_ID_NOT_REGISTERED", Retry.FATAL),
    ],
)
def test_rows_as_kafka_has_them(code, name, retry):
    row = error_code(code)
    assert (row.name, row.retry) == (name, retry)
    assert row.is_retriable == (retry is not Retry.FATAL)
    assert row.refreshes_metadata == (retry is Retry.METADATA)


@pytest.mark.parametrize("code", [137, -2, 32767, -32768])
def test_unknown_code_keeps_itself_and_is_fatal(code):
    error = BrokerError(code, "Fetch", "the request")
    assert f"({code})" in str(error)
    assert error.error.code == code
    assert not error.error.is_retriable
    assert pickle.loads(pickle.dumps(error)).code == code


@pytest.mark.parametrize(
    ("api", "code", "right"),
    [
        ("Fetch", 29, "READ on the topic"),
        ("Metadata", 29, "DESCRIBE on the topic, and READ, WRITE or DELETE for its records"),
        ("OffsetCommit", 30, "READ on the group"),
        ("DescribeConfigs", 30, "DESCRIBE_CONFIGS on the group"),
        ("IncrementalAlterConfigs", 30, "ALTER_CONFIGS on the group"),
        ("EndTxn", 53, "WRITE on the transactional id"),
        (
            *("FindCoordinator", 30),
            "DESCRIBE on the group, and READ for its members and commits, or DELETE",
        ),
        (
            *("FindCoordinator", 53),
            "DESCRIBE on the transactional id, and WRITE for its transactions",
        ),
    ],
)
def test_a_refusal_for_want_of_a_right_names_it(api, code, right):
    error = BrokerError(code, api, "it", "Not authorized to access it.")
    assert str(error).endswith(f": Not authorized to access it; this user needs the right {right}")
    assert str(error.at("b:1")).count("the right") == 1


def test_an_error_that_is_about_no_right_names_none():
    assert "right" not in str(BrokerError(3, "Fetch", "it"))
    assert "right" not in str(BrokerError(29, "an API of another time", "it"))

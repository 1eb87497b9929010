"""What a log that ends in an error says in one line."""

import pytest

from pyspark_kafkaproto.devbroker.logs import reason


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("org.apache.kafka.common.KafkaException: Failed to load keystore\n\tat x", "Failed to"),
        ("a.b.InvalidConfigurationException: no such thing", "no such thing"),
        ("java.lang.IllegalArgumentException: requirement failed: no", "requirement failed: no"),
        ("Caused by: a.b.ConfigException: Missing required", "Missing required"),
        ("a.b.ConfigException: No available authentication scheme", "ssl.keystore.location"),
    ],
)
def test_reasons(log, said):
    assert said in reason(f"1 INFO ok\n2 ERROR Exiting Kafka (x)\n{log}\n")


def test_a_log_without_a_known_exception_has_no_reason():
    assert not reason("1 INFO a.b.ConfigException: harmless\n2 ERROR Exiting Kafka\n\tat here\n")

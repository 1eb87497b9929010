"""The properties of a member of a share group, in Kafka's names."""

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ShareConfig

LEAST = {"bootstrap.servers": "broker-1:9092", "group.id": "mails"}


def test_defaults_are_the_java_clients():
    config = ShareConfig.parse(LEAST)
    assert (config.group_id, config.is_explicit, config.takes_few) == ("mails", False, False)
    assert (config.max_poll_records, config.max_poll_interval_s) == (500, 300)
    assert (config.fetch_min_bytes, config.fetch_max_wait_s) == (1, 0.5)


def test_properties_of_a_java_share_consumer_are_read():
    given = {
        "share.acknowledgement.mode": "EXPLICIT",
        "share.acquire.mode": "record_limit",
        "max.poll.records": "7",
        "max.poll.interval.ms": 60_000,
        "client.rack": "r1",
    }
    config = ShareConfig.parse(LEAST | given)
    assert (config.is_explicit, config.takes_few, config.max_poll_records) == (True, True, 7)
    member = config.member
    assert (member.group_id, member.group_protocol) == ("mails", "consumer")
    assert (member.max_poll_interval_s, member.client.client_rack) == (60, "r1")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("group.id", " ", "required"),
        ("share.acknowledgement.mode", "both", "implicit or explicit"),
        ("share.acquire.mode", "all", "batch_optimized or record_limit"),
        ("max.poll.records", "0", "from 1"),
        ("auto.offset.reset", "earliest", r"share\.auto\.offset\.reset"),
        ("isolation.level", "read_committed", r"share\.isolation\.level"),
        ("enable.auto.commit", "true", "nothing is committed"),
        ("group.instance.id", "till-1", "static"),
        ("session.timeout.ms", "6000", r"group\.share\.session\.timeout\.ms"),
        ("heartbeat.interval.ms", "100", r"share\.heartbeat\.interval\.ms"),
        ("partition.assignment.strategy", "range", r"group\.share\.assignors"),
    ],
)
def test_what_cannot_be_used_is_named(name, value, why):
    with pytest.raises(ConfigError, match=why) as raised:
        ShareConfig.parse(LEAST | {name: value}, "kafka.")
    assert f"kafka.{name}" in str(raised.value)


def test_a_bound_that_share_groups_do_not_have_is_named(caplog):
    ShareConfig.parse(LEAST | {"max.partition.fetch.bytes": "1000"})
    (said,) = caplog.messages
    assert "max.partition.fetch.bytes has no effect" in said
    assert "fetch.max.bytes" in said

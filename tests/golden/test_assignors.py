"""Partitions go where Kafka's own assignors put them: vectors made by the Java client."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_kafkaproto.client.group.classic.assignors import ASSIGNORS, Subscriber

LINES = (Path(__file__).parent / "assignors" / "java.tsv").read_text(encoding="utf-8").splitlines()
VECTORS = [line.split("\t") for line in LINES[1:]]


def subscriber(text: str) -> Subscriber:
    names, topics = text.split("=")
    member_id, _, instance_id = names.partition("@")
    return Subscriber(member_id, topics.split("+"), instance_id or None)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_partitions_go_where_java_puts_them(name):
    vectors = [vector for vector in VECTORS if vector[0] == name]
    assert len(vectors) > 100
    for _, topics, members, expected in vectors:
        counts = {item.split(":")[0]: int(item.split(":")[1]) for item in topics.split(",")}
        subscribers = [subscriber(text) for text in members.split(";")]
        # The order in which a coordinator lists members is nobody's business.
        found = ASSIGNORS[name](subscribers[::-1], counts)
        shown = {
            member: "+".join(sorted(f"{item.topic}-{item.partition}" for item in own))
            for member, own in found.items()
        }
        assert shown == dict(item.split("=") for item in expected.split(";")), members

"""Kafka's own tool for log files finds our batches valid, in every codec, down to each record."""

from __future__ import annotations

import re

import pytest

from pyspark_kafkaproto import Producer, ProducerRecord
from pyspark_kafkaproto.devbroker import DevBroker
from tests.brokers import dump_log_segments
from tests.topics import make_topic

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROWS = 500


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory):
    """A broker whose files can be looked at."""
    with DevBroker(tmp_path_factory.mktemp("segments")) as started:
        yield started


def test_every_batch_and_record_is_valid(own_broker):
    files = {}
    for codec in CODECS:
        make_topic(own_broker.bootstrap_servers, f"t-{codec}")
        config = {
            "bootstrap.servers": own_broker.bootstrap_servers,
            "compression.type": codec,
            "batch.size": 4000,
        }
        with Producer(config, topic=f"t-{codec}") as producer:
            producer.send(
                [
                    ProducerRecord(f"v{n}" * 9, key=f"k{n}", headers=[("h", b"x"), ("n", None)])
                    for n in range(ROWS)
                ]
            )
        (files[codec],) = own_broker._folder.rglob(f"t-{codec}-0/*.log")
    text = own_broker.run_tool(
        dump_log_segments(own_broker),
        *("--deep-iteration", "--files", ",".join(map(str, files.values()))),
    )
    for codec, part in zip(CODECS, text.split("Dumping ")[1:], strict=True):
        batches = [line for line in part.splitlines() if line.startswith("baseOffset")]
        assert len(batches) > 3
        assert all("isvalid: true" in line for line in batches)
        assert all(f"compresscodec: {codec}" in line for line in batches)
        found = re.findall(r"^\| offset: (\d+) .* sequence: (\d+) headerKeys: \[h,n\]", part, re.M)
        assert found == [(f"{n}", f"{n}") for n in range(ROWS)]

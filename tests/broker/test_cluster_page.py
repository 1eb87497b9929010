"""What docs/cluster.md shows is what the commands print: they are run in the page's order."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import KafkaCluster, Producer
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import CommittedOffset, NewTopic
from pyspark_kafkaproto.devbroker import DevBroker

pytestmark = pytest.mark.broker

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
_COMMAND = re.compile(
    r"^    \$ (?P<line>.*)\n(?P<shown>(?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", re.MULTILINE
)
# What other tests look at: other words each time.
ELSEWHERE = {"doctor", "loadtest"}
ENDS = (9000, 598134, 0, 91000)
COMMITTED = (9000, CommittedOffset(26886, "run 4711"), 0, 18296)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """The broker of the page: its topic, and its group."""
    properties = {"message.max.bytes": "64000000"}
    with DevBroker(tmp_path_factory.mktemp("page"), properties=properties) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        with KafkaCluster(config) as cluster, Producer(config, topic="orders") as producer:
            cluster.create_topics([NewTopic("orders", 4, 1, {"retention.ms": "86400000"})])
            for number, end in enumerate(ENDS):
                values = [f"order {n}" for n in range(end)]
                where = pa.array([number] * end, pa.int32())
                producer.send(pa.record_batch({"value": values, "partition": where}))
            offsets = {("orders", number): offset for number, offset in enumerate(COMMITTED)}
            cluster.set_consumer_offsets("test-consumer-group", offsets)
        yield broker.bootstrap_servers


def examples():
    """(line, what is shown below it) of each command of the page."""
    found = _COMMAND.findall(PAGE.read_text())
    return [(line, shown) for line, shown in found if not ELSEWHERE & set(line.split())]


def printed_by(line, servers):
    """What the shell would show."""
    before, is_piped, words = line.rpartition(" | ")
    given = subprocess.run(before, shell=True, check=True, capture_output=True).stdout
    _, *arguments = shlex.split(words)
    runner = CliRunner(env={"KAFKA_BOOTSTRAP_SERVERS": servers})
    done = runner.invoke(kafkaproto, arguments, input=given if is_piped else None)
    assert done.exit_code == 0, done.output
    return done.output


def plain(text):
    """Without what is another each time."""
    text = re.sub(r"127\.0\.0\.1:\d{5}", "ADDRESS", text)
    text = re.sub(r"cluster [\w-]{22},", "cluster ID,", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text).strip("\n")


def test_each_command_prints_what_the_page_shows(servers):
    shown = examples()
    assert {"metadata", "topics", "groups", "consume", "produce", "lag"} <= {
        shlex.split(line.rpartition(" | ")[2])[1] for line, _ in shown
    }
    for line, text in shown:
        assert plain(printed_by(line, servers)) == plain(dedent(text)), line

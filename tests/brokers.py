"""Which broker the tests use, in order: a given one, Docker's, the embedded one.

A broker that cannot be had is an error, never a reason to skip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark_kafkaproto.devbroker import DevBroker, KafkaTools
from pyspark_kafkaproto.devbroker.jars import version_key
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.ports import wait_until_answers
from pyspark_kafkaproto.net.transport import Endpoint

IMAGE = "confluentinc/cp-kafka:8.0.0"
_ANSWER_S = 15.0


@contextmanager
def open_broker(
    environ: Mapping[str, str],
    folder: Path,
    container_class: Callable[[str], Any] | None = None,
) -> Iterator[KafkaTools]:
    """The broker that `environ` asks for, with Kafka's tools pointed at it.

    KAFKA_BOOTSTRAP_SERVERS names a running one, KAFKAPROTO_BROKER=docker takes testcontainers';
    without both the embedded one runs in `folder`.
    """
    kind = environ.get("KAFKAPROTO_BROKER", "")
    if servers := environ.get("KAFKA_BOOTSTRAP_SERVERS"):
        _check_answers(servers)
        yield KafkaTools(servers)
    elif kind == "docker":
        with (container_class or _kafka_container())(IMAGE).with_kraft() as container:
            yield KafkaTools(container.get_bootstrap_server())
    elif kind == "":
        with DevBroker(folder) as broker:
            yield broker
    else:
        raise ConfigError("KAFKAPROTO_BROKER", kind, "expected docker, or nothing")


def dump_log_segments(tools: KafkaTools) -> str:
    """The class of Kafka's program that shows files of a log: it moved in 4.3."""
    package = "org.apache.kafka" if version_key(tools.version) >= (4, 3) else "kafka"
    return f"{package}.tools.DumpLogSegments"


def config_command(tools: KafkaTools) -> str:
    """The class of Kafka's program for configurations, quotas and users: it moved in 4.4."""
    package = "org.apache.kafka.tools" if version_key(tools.version) >= (4, 4) else "kafka.admin"
    return f"{package}.ConfigCommand"


def _check_answers(servers: str) -> None:
    for server in servers.split(","):
        endpoint = Endpoint.parse(server, "KAFKA_BOOTSTRAP_SERVERS")
        wait_until_answers(endpoint.host, endpoint.port, Deadline.after(_ANSWER_S))


def _kafka_container() -> Callable[[str], Any]:
    from testcontainers.kafka import KafkaContainer

    return KafkaContainer

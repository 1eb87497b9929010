"""Kafka's console consumer, told to say what it does: a wait in vain is to explain itself."""

from __future__ import annotations

from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.devbroker.java import SHORT_RUN, logging_options

_PATIENCE_MS = 90_000  # by the clock of the wall: it counts the time that a machine stands still


def console_lines(tools: KafkaTools, topic: str, count: int, *arguments: str) -> list[str]:
    """What it prints of the first `count` records of `topic`."""
    return tools.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", tools.bootstrap_servers, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(count), "--timeout-ms", str(_PATIENCE_MS)),
        *arguments,
        jvm_options=(*SHORT_RUN, *logging_options("info")),
    ).splitlines()

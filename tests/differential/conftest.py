"""Kafka's own classes, asked through Java; how much was compared is said at the end of the run."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.differential.java_process import JavaProcess, spark_jars
from tests.differential.kafka_records import RecordOracle

JACKSON = ("jackson-databind", "jackson-core", "jackson-annotations")
CODECS = ("slf4j-api", "lz4-java", "snappy-java", "zstd-jni")
TOOLS = Path(__file__).parents[2] / "tools"
_COMPARED = pytest.StashKey[Counter]()


def pytest_configure(config):
    config.stash[_COMPARED] = Counter()


def pytest_terminal_summary(terminalreporter, config):
    for what, count in sorted(config.stash[_COMPARED].items()):
        terminalreporter.write_line(f"compared with Kafka's own classes: {count:,} {what}")


@pytest.fixture(scope="session")
def compared(pytestconfig) -> Counter:
    """Counts what was compared, by a word for it."""
    return pytestconfig.stash[_COMPARED]


@pytest.fixture(scope="session")
def kafka_jars() -> Iterator[Any]:
    """tools/kafka_jars.py: the pinned releases of kafka-clients."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield importlib.import_module("kafka_jars")


@pytest.fixture(scope="session")
def client_jars(kafka_jars) -> dict[str, str]:
    """Path of the pinned jars by their version, newest first."""
    pinned = (kafka_jars.NEWEST, kafka_jars.OLDEST)
    return {jar.version: str(kafka_jars.find_jar(jar, ())) for jar in pinned}


@pytest.fixture(scope="session")
def facts(kafka_jars, client_jars) -> dict[str, Any]:
    """What the definitions in the jars say, by the name of the message."""
    definitions = importlib.import_module("kafka_definitions")
    messages = definitions.read_messages(*map(Path, client_jars.values()))
    return {message.name: message for message in messages}


@pytest.fixture(scope="session", params=["newest", "oldest"])
def record_oracle(request, kafka_jars, client_jars) -> Iterator[RecordOracle]:
    """Record batches, in the newest and in the oldest release."""
    is_new = request.param == "newest"
    pinned = kafka_jars.NEWEST if is_new else kafka_jars.OLDEST
    libraries = [*spark_jars(*JACKSON, *CODECS), client_jars[pinned.version]]
    moved = {} if is_new else {"record.internal.": "record.", "utils.internals.": "utils."}
    with JavaProcess("RecordOracle.java", libraries, replacing=moved) as process:
        yield RecordOracle(process)


@pytest.fixture(scope="session")
def message_oracle(client_jars) -> Iterator[JavaProcess]:
    """One process for all messages of the run."""
    libraries = spark_jars(*JACKSON, "slf4j-api")
    with JavaProcess("MessageOracle.java", libraries, list(client_jars.values())) as process:
        yield process

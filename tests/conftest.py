"""Fixtures for every folder: a real broker for the whole run, and topics of one's own."""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from pyspark_kafkaproto.devbroker import KafkaTools
from tests.brokers import open_broker
from tests.examples import FULL, left_out
from tests.topics import make_topic

if TYPE_CHECKING:
    from tests.secure_broker import SecureBroker

_TESTS = Path(__file__).parent
_MARKED_FOLDERS = ("broker", "differential", "fault", "spark")

# Processes share the files out as they come. Those of these folders take longest: last, one
# process would wait for the other.
_FOLDERS_FIRST = ("tests/notebooks/", "tests/fault/", "tests/spark/")

settings.load_profile(FULL)  # unless --hypothesis-profile says otherwise


@pytest.hookimpl(optionalhook=True)  # unknown where pytest-xdist is switched off
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process for each core, but few, for plain pytest; else one.

    Each process collects everything anew, which takes four seconds: a few files or a few tests are
    not worth it, nor is one process more. Tests with a broker share one, and what is to be printed
    has to come from this process.
    """
    is_plain = "not broker" in config.option.markexpr and not config.option.keyword
    if not _is_whole(config) or not is_plain or config.option.capture == "no":
        return 0
    return min(4, os.cpu_count() or 1)


def _is_whole(config: pytest.Config) -> bool:
    """Whether the command names no test of its own."""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def pytest_configure(config: pytest.Config) -> None:
    left_out.update(_left_out(config))


def _left_out(config: pytest.Config) -> set[str]:
    """Marks that `-m` excludes for certain; of an expression with `or` nothing is said."""
    terms = config.option.markexpr.split(" and ")
    is_plain = " or " not in config.option.markexpr
    return {term.removeprefix("not ") for term in terms if is_plain and term.startswith("not ")}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders whose tests all have a mark, their own name, that is not asked for.

    Each process of plain pytest would import and list them, to run none of them.
    """
    mark = collection_path.name
    is_marked = collection_path.parent == _TESTS and mark in _MARKED_FOLDERS
    return True if is_marked and _is_whole(config) and mark in left_out else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from going through thousands of tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(_FOLDERS_FIRST))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTools]:
    """A real Apache Kafka: `bootstrap_servers`, and Kafka's own tools to write and look."""
    with open_broker(os.environ, tmp_path_factory.mktemp("broker")) as opened:
        yield opened


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker of its own with a listener of each kind, users and ACLs; started at first use."""
    # What makes certificates is not needed by any other test.
    from tests.secure_broker import open_secure_broker

    with open_secure_broker(tmp_path_factory.mktemp("secure")) as opened:
        yield opened


@pytest.fixture(scope="session")
def kafka_tool(broker: KafkaTools) -> Callable[..., str]:
    """Runs one of Kafka's programs, by its class name after `org.apache.kafka.tools.`."""

    def run(name: str, *arguments: str, **options: object) -> str:
        pointed = ("--bootstrap-server", broker.bootstrap_servers, *arguments)
        return broker.run_tool(f"org.apache.kafka.tools.{name}", *pointed, **options)

    return run


@pytest.fixture(scope="session")
def new_name() -> Callable[..., str]:
    """Gives a name (of a topic, a group) that nothing has yet, also on a broker in other use."""

    def name(prefix: str = "test") -> str:
        return f"{prefix}-{uuid.uuid4().hex[:12]}"

    return name


@pytest.fixture(scope="session")
def new_topic(broker: KafkaTools, new_name: Callable[..., str]) -> Callable[..., str]:
    """Makes a topic and gives its name; arguments are those of `make_topic` behind the name."""

    def create(partitions: int = 1, **options: object) -> str:
        topic = new_name()
        make_topic(broker.bootstrap_servers, topic, partitions, **options)
        return topic

    return create

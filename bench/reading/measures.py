"""What is measured: each measure reads a whole topic once and says how long that took."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_kafkaproto.devbroker import KafkaTools
from reading.clients import NOT_INSTALLED, Job
from reading.processes import RunFailed, SparkApp, python_module, run
from reading.workloads import Workload

OURS = "kafkaproto"
CEILING = "prebuilt"
RIVAL = "kafka"

STOCK = "stock"
CONF = "conf"

CLIENT_TIMEOUT_S = 900.0
_GROUPED = 8  # maxPartitions of ours where partitions are many


class NotMeasured(Exception):
    """A rival is not installed, or cannot read this topic; the text says which."""


@dataclass(frozen=True, slots=True)
class Run:
    """One reading of a topic, or of its first `records`; of none where it is only planned."""

    seconds: float
    records: int


@dataclass(frozen=True)
class Place:
    """Where measures run: a broker, Spark applications by their settings, folders.

    `more` are client properties of ours on top of bootstrap.servers.
    """

    tools: KafkaTools
    folder: Path
    more: Mapping[str, str] = field(default_factory=dict)
    apps: Mapping[str, SparkApp] = field(default_factory=dict)

    @property
    def servers(self) -> str:
        """bootstrap.servers."""
        return self.tools.bootstrap_servers

    @property
    def properties(self) -> dict[str, str]:
        """Of our own client."""
        return {"bootstrap.servers": self.servers, **self.more}

    def shape_folder(self, workload: Workload) -> Path:
        """Where the ceiling finds what to yield; see `shape`."""
        return self.folder / "shapes" / workload.topic

    def write_shape(self, workload: Workload) -> dict[str, int]:
        """Read the topic once for the ceiling; the largest block and batch, in bytes."""
        folder = self.shape_folder(workload)
        folder.mkdir(parents=True, exist_ok=True)
        properties = json.dumps(self.properties)
        command = python_module("reading.shape", properties, workload.topic, str(folder))
        done = run(command, cwd=self.folder, timeout_s=CLIENT_TIMEOUT_S)
        sizes: dict[str, int] = json.loads(done.stdout)
        return sizes


@dataclass(frozen=True)
class Measure:
    """One row of the tables."""

    name: str
    run: Callable[[Place, Workload], Run]
    app: str | None = None
    source: str | None = None
    ours: bool = False


def spark_options(place: Place, workload: Workload, source: str) -> dict[str, str]:
    """What the source is told to read all of the topic."""
    if source == CEILING:
        return {"shape": str(place.shape_folder(workload))}
    options = {"kafka.bootstrap.servers": place.servers, "subscribe": workload.topic}
    if source == OURS:
        options |= {f"kafka.{name}": value for name, value in place.properties.items()}
        if workload.is_wide:
            options["maxPartitions"] = str(_GROUPED)
    return options


def _first_rows(options: Mapping[str, str], workload: Workload) -> dict[str, str]:
    """The same, but a row of each of the first four partitions."""
    if "shape" in options:
        return dict(options) | {"batches": "1"}
    numbers = range(min(4, workload.partitions))
    first = {name: value for name, value in options.items() if name.startswith("kafka.")}
    return first | {
        "assign": json.dumps({workload.topic: list(numbers)}),
        "endingOffsets": json.dumps({workload.topic: {str(number): 1 for number in numbers}}),
    }


def _spark(app: str, source: str) -> Callable[[Place, Workload], Run]:
    def read(place: Place, workload: Workload) -> Run:
        """Timed after a few rows: Spark ends Python workers that were idle for a minute."""
        options = spark_options(place, workload, source)
        place.apps[app].ask("read", source, _first_rows(options, workload))
        place.apps[app].ask("collect_garbage")
        answer = place.apps[app].ask("read", source, options)
        return Run(answer["seconds"], workload.records)

    return read


def _value_alone(place: Place, workload: Workload) -> Run:
    """Our source, asked for one column of the seven."""
    options = spark_options(place, workload, OURS) | {"columns": "value"}
    place.apps[STOCK].ask("read", OURS, _first_rows(options, workload))
    place.apps[STOCK].ask("collect_garbage")
    return Run(place.apps[STOCK].ask("read", OURS, options)["seconds"], workload.records)


def _plan(app: str) -> Callable[[Place, Workload], Run]:
    def read(place: Place, workload: Workload) -> Run:
        answer = place.apps[app].ask("plan", OURS, spark_options(place, workload, OURS))
        if answer["partitions"] != _GROUPED:
            raise RunFailed(f"planned {answer['partitions']} input partitions, asked {_GROUPED}")
        return Run(answer["seconds"], 0)

    return read


def _client(name: str, share: int = 1) -> Callable[[Place, Workload], Run]:
    def read(place: Place, workload: Workload) -> Run:
        records = workload.records // share
        job = Job(place.servers, workload.topic, records, place.properties)
        command = python_module("reading.clients", name, json.dumps(job._asdict()))
        done = run(
            command, cwd=place.folder, timeout_s=CLIENT_TIMEOUT_S, allowed=(0, NOT_INSTALLED)
        )
        if done.returncode == NOT_INSTALLED:
            raise NotMeasured("not installed")
        found = Run(**json.loads(done.stdout.splitlines()[-1]))
        if found.records < records:
            raise RunFailed(f"{name} read {found.records} records of {records}")
        return found

    return read


def _consumer_performance(place: Place, workload: Workload) -> Run:
    """Kafka's tool, by the fetch rate it prints: the time of joining its group is not in it."""
    printed = place.tools.run_tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", place.servers, "--topic", workload.topic),
        *("--num-records", str(workload.records), "--group", f"bench-{uuid.uuid4()}"),
        *("--timeout", "60000"),
        timeout_s=CLIENT_TIMEOUT_S,
        jvm_options=(),
    )
    return parse_consumer_performance(printed)


def parse_consumer_performance(printed: str) -> Run:
    """`fetch.time.ms` and the number of records from what ConsumerPerformance printed."""
    lines = [line.split(", ") for line in printed.splitlines() if ", " in line]
    header = next((line for line in lines if "fetch.time.ms" in line), None)
    if header is None or lines[-1] is header or len(lines[-1]) != len(header):
        raise RunFailed(f"ConsumerPerformance printed no result:\n{printed}")
    values = dict(zip(header, lines[-1], strict=True))
    return Run(float(values["fetch.time.ms"]) / 1000, int(values["data.consumed.in.nMsg"]))


def _kcat(place: Place, workload: Workload) -> Run:
    """The tool kcat, its output thrown away, the start of the process included."""
    kcat = shutil.which("kcat")
    if kcat is None:
        raise NotMeasured("not installed")
    command = [kcat, "-C", "-b", place.servers, "-t", workload.topic, "-o", "beginning", "-e", "-q"]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, "-f", ""],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=CLIENT_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise NotMeasured(f"kcat failed: {done.stderr.strip()[-200:]}")
    return Run(time.perf_counter() - began, workload.records)


def _spark_measure(name: str, app: str, source: str) -> Measure:
    ours = source != RIVAL
    return Measure(name, _spark(app, source), app=app, source=source, ours=ours)


SPARK_OURS = "Spark, ours"
SPARK_CEILING = "Spark, engine's ceiling"
SPARK_OURS_CONF = "Spark with conf/, ours"
SPARK_CEILING_CONF = "Spark with conf/, engine's ceiling"
SPARK_RIVAL = "Spark with conf/, Spark's own connector"
SPARK_VALUE = "Spark, ours: value alone"
PLAN = "Spark, ours: planning alone"
CLIENT_OURS = "ours"
DECODING = "ours: decoding alone"
BARE_SOCKET = "bare socket"
CONSUMER_PERFORMANCE = "Kafka's ConsumerPerformance"
CONFLUENT = "confluent-kafka"

_SPARK = (
    _spark_measure(SPARK_OURS, STOCK, OURS),
    _spark_measure(SPARK_CEILING, STOCK, CEILING),
    _spark_measure(SPARK_OURS_CONF, CONF, OURS),
    _spark_measure(SPARK_CEILING_CONF, CONF, CEILING),
    _spark_measure(SPARK_RIVAL, CONF, RIVAL),
)
_VALUE = Measure(SPARK_VALUE, _value_alone, app=STOCK, source=OURS, ours=True)
_PLAN = Measure(PLAN, _plan(STOCK), app=STOCK, ours=True)
_CLIENTS = (
    Measure(CLIENT_OURS, _client("ours"), ours=True),
    Measure(DECODING, _client("decoding"), ours=True),
    Measure(BARE_SOCKET, _client("bare-socket"), ours=True),
    Measure(CONSUMER_PERFORMANCE, _consumer_performance),
    Measure(CONFLUENT, _client("confluent-kafka")),
    Measure("kcat", _kcat),
    Measure("aiokafka, a tenth", _client("aiokafka", 10)),
    Measure("kafka-python, a tenth", _client("kafka-python", 10)),
)
ALL = (*_SPARK, _VALUE, _PLAN, *_CLIENTS)


def parts_of_names(text: str) -> list[str]:
    """For `measures_of`; a comma within a name, as in `Spark, ours`, has a space behind it.

    Raises:
        argparse.ArgumentTypeError: a part that no name holds.
    """
    parts = re.split(",(?! )", text)
    for part in parts:
        if not any(part in measure.name for measure in ALL):
            names = "; ".join(measure.name for measure in ALL)
            raise argparse.ArgumentTypeError(f"no row's name holds {part!r}: they are {names}")
    return parts


def measures_of(workload: Workload, only: Sequence[str], *, slow_rival: bool) -> Iterator[Measure]:
    """What is measured of a workload, in the order of its rounds.

    Many partitions are measured in Spark alone: ours with `maxPartitions`, its planning, and, if
    it is asked for, Spark's own connector, which takes minutes.
    """
    for measure in ALL:
        if only and not any(part in measure.name for part in only):
            continue
        if workload.is_wide:
            if (
                (measure.source == OURS and measure is not _VALUE)
                or measure is _PLAN
                or (slow_rival and measure.source == RIVAL)
            ):
                yield measure
        elif measure is not _PLAN:
            yield measure

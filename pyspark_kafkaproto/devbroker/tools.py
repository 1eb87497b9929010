"""Kafka's own command-line programs, run against any broker.

What they write is written by Kafka's Java client and not by ours: that is what they are for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyspark_kafkaproto.devbroker.jars import (
    Report,
    class_path,
    report_to_stderr,
    resolve_version,
    version_key,
)
from pyspark_kafkaproto.devbroker.java import SHORT_RUN, heap_options, logging_options, run_java
from pyspark_kafkaproto.errors import DevBrokerFailed

_TOOL_TIMEOUT_S = 120.0
_PERF_TIMEOUT_S = 900.0
_SHOWN_CHARACTERS = 20_000  # the last ones: a trace per line that was not sent can be megabytes
# The console producer would try three times in 0.3 s and wait 1.5 s for an answer: the leaders of a
# thousand partitions just made take longer. These are the Java producer's own.
_PATIENCE = {"retries": "2147483647", "request.timeout.ms": "30000"}


class KafkaTools:
    """Runs Kafka's tools of one version against `bootstrap_servers` (`host:port,…`).

    Each call starts a JVM: about a second and a half. Tools are fetched at the first call.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        version: str | None = None,
        report: Report = report_to_stderr,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self.version = resolve_version(version)
        self._report = report

    @property
    def bootstrap_servers(self) -> str:
        """The address the tools are pointed at."""
        return self._bootstrap_servers

    def run_tool(
        self,
        main_class: str,
        *arguments: str,
        stdin: str = "",
        timeout_s: float = _TOOL_TIMEOUT_S,
        jvm_options: Sequence[str] = SHORT_RUN,
    ) -> str:
        """Run one of Kafka's programs and return what it printed.

        Args:
            main_class: for instance `org.apache.kafka.tools.TopicCommand`.
            arguments: its arguments, `--bootstrap-server` included.
            stdin: what it reads.
            timeout_s: it is killed after so many seconds.
            jvm_options: the default suits runs of a second; give `()` where its speed matters,
                and `*logging_options("info")` where its warnings alone would not tell enough.

        Raises:
            DevBrokerFailed: it ended with an error, or not in time; with what it printed.
        """
        jars = class_path(self.version, with_tools=True, report=self._report)
        options = [*heap_options(), *logging_options("warn"), *jvm_options, "-cp", jars]
        done = run_java([*options, main_class, *arguments], stdin=stdin, timeout_s=timeout_s)
        # The console producer logs what it could not send and ends well all the same.
        if done.returncode or " ERROR " in done.stderr:
            shown = (done.stdout + done.stderr).strip()[-_SHOWN_CHARACTERS:]
            raise DevBrokerFailed(
                f"{main_class} {' '.join(arguments)}: exit code {done.returncode}:\n{shown}"
            )
        return done.stdout

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a topic; a topic of that name is an error unless `if_not_exists`."""
        self.run_tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self.bootstrap_servers),
            *("--create", "--topic", name),
            *("--partitions", str(partitions)),
            *("--replication-factor", str(replication_factor)),
            *_options("--config", configs),
            *(["--if-not-exists"] if if_not_exists else []),
        )

    def produce(
        self,
        topic: str,
        lines: Iterable[str],
        *,
        key_separator: str | None = None,
        properties: Mapping[str, str] | None = None,
        reader: Mapping[str, str] | None = None,
    ) -> None:
        """Write each of `lines` as a record, with Kafka's console producer.

        Args:
            topic: where to.
            lines: texts without line breaks.
            key_separator: what stands between key and value in each line; no keys if None.
            properties: the producer's (`compression.type`, …).
            reader: further properties of the line reader (`parse.headers`, `null.marker`, …).

        Raises:
            DevBrokerFailed: not every line was acknowledged; with what the tool said.
        """
        reading = dict(reader or {})
        if key_separator is not None:
            reading |= {"parse.key": "true", "key.separator": key_separator}
        # The tool's own defaults for these override what --command-property says.
        sending = {"acks": "-1"} | _PATIENCE | dict(properties or {})
        compression = sending.pop("compression.type", "none")
        package = "org.apache.kafka.tools" if self._is_since(4, 0) else "kafka.tools"
        new = self._is_since(4, 2)  # KIP-1147 renamed the options
        self.run_tool(
            f"{package}.ConsoleProducer",
            *("--bootstrap-server", self.bootstrap_servers, "--topic", topic),
            *("--compression-codec", compression),
            *_options("--command-property" if new else "--producer-property", sending),
            *_options("--reader-property" if new else "--property", reading),
            stdin="".join(f"{line}\n" for line in lines),
        )

    def produce_perf(
        self,
        topic: str,
        records: int,
        record_size_bytes: int,
        *,
        compression: str = "none",
        properties: Mapping[str, str] | None = None,
        payload_lines: Iterable[str] | None = None,
        timeout_s: float = _PERF_TIMEOUT_S,
    ) -> str:
        """Write many records without keys, fast, and return the tool's own report.

        Values are random letters of `record_size_bytes`, which hardly compress; with
        `payload_lines` each value is one of these, chosen at random, and the size is not used.
        """
        sending = {"compression.type": compression} | dict(properties or {})
        with tempfile.TemporaryDirectory() as folder:
            payload = ["--record-size", str(record_size_bytes)]
            if payload_lines is not None:
                file = Path(folder, "payload")
                file.write_text("\n".join(payload_lines), encoding="utf-8")
                payload = ["--payload-file", str(file)]
            return self.run_tool(
                "org.apache.kafka.tools.ProducerPerformance",
                *("--topic", topic, "--num-records", str(records), "--throughput", "-1"),
                *payload,
                *self._producer_props(sending),
                timeout_s=timeout_s,
                jvm_options=(),
            )

    def _producer_props(self, properties: Mapping[str, str]) -> list[str]:
        every = {"bootstrap.servers": self.bootstrap_servers} | dict(properties)
        option = "--command-property" if self._is_since(4, 2) else "--producer-props"
        return [option, *(f"{key}={value}" for key, value in every.items())]

    def _is_since(self, *version: int) -> bool:
        return version_key(self.version) >= version


def _options(option: str, properties: Mapping[str, str] | None) -> list[str]:
    return [
        word for key, value in (properties or {}).items() for word in (option, f"{key}={value}")
    ]

"""Kafka's jars: KAFKA_HOME's, or fetched once through the Ivy that PySpark ships.

Ivy asks Maven Central unless an Ivy settings file (KAFKAPROTO_IVY_SETTINGS, a path or a URL, as
Spark's `spark.jars.ivySettings`) names other repositories; http_proxy, https_proxy and no_proxy are
passed on. What is fetched stays in the user's cache folder: a folder of jars appears there by one
rename when it is whole, and a fetch that was cut off goes on with the jars it had.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

from pyspark_kafkaproto.devbroker.files import FileLock, user_folder
from pyspark_kafkaproto.devbroker.java import find_java, proxy_options
from pyspark_kafkaproto.devbroker.processes import ending_with_us
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed
from pyspark_kafkaproto.net.deadline import Deadline

DEFAULT_VERSION = "4.4.0"
OLDEST_VERSION = "3.9.0"
SCALA = "2.13"

Report = Callable[[str], None]

_FETCH_TIMEOUT_S = 900.0
_CSV, _CSV_GROUP = "jackson-dataformat-csv", "com.fasterxml.jackson.dataformat"
# With these first on the class path, Kafka logs through log4j 2; its own jars bring no back end,
# and a start that fails would say nothing.
_LOGGING_JARS = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
_HOW_ELSE = (
    "Behind a proxy set https_proxy; for another repository set KAFKAPROTO_IVY_SETTINGS to an Ivy "
    "settings file; without a network set KAFKA_HOME to an unpacked Apache Kafka"
)


def report_to_stderr(line: str) -> None:
    """Show one line of progress."""
    print(f"kafkaproto: {line}", file=sys.stderr, flush=True)  # noqa: T201 - this is the display


def resolve_version(asked: str | None) -> str:
    """The version that will run: KAFKA_HOME's if that is set, else `asked`, else the default.

    Raises:
        ConfigError: KAFKA_HOME is no Kafka, holds another version than `asked`, or the version is
            older than this package supports.
    """
    home = os.environ.get("KAFKA_HOME")
    version = _version_in(Path(home), asked) if home else asked or DEFAULT_VERSION
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ConfigError("version", version, f"expected a release such as {DEFAULT_VERSION}")
    if version_key(version) < version_key(OLDEST_VERSION):
        raise ConfigError("version", version, f"expected {OLDEST_VERSION} or later")
    return version


def version_key(version: str) -> tuple[int, ...]:
    """`4.10.0` as (4, 10, 0): compares as versions do."""
    return tuple(int(part) for part in version.split("."))


def class_path(version: str, *, with_tools: bool = False, report: Report = report_to_stderr) -> str:
    """Java's class path for the broker, fetching what is not there yet.

    Raises:
        DevBrokerFailed: PySpark's jars are not installed, or Ivy could not fetch Kafka's; the text
            has Ivy's own reason.
        ConfigError: they have to be fetched, and the cache folder cannot be written.
    """
    home = os.environ.get("KAFKA_HOME")
    if home:
        folders = [Path(home, "libs")]
    else:
        folders = [fetch(f"kafka_{SCALA}", version, report=report)]
        if with_tools:
            # What the tools need (argparse4j, jopt-simple, Jackson) is among the broker's jars:
            # taking them transitively would bring all of Kafka Connect, 40 jars more.
            folders.append(fetch("kafka-tools", version, transitive=False, report=report))
            folders += _csv_library(folders[0], report)
    return os.pathsep.join([*map(str, _logging_jars()), *(f"{folder}/*" for folder in folders)])


def _csv_library(broker: Path, report: Report) -> list[Path]:
    """What the tools read and write CSV with, where the broker's jars lack it (4.4)."""
    cores = list(broker.glob("jackson-core-*.jar"))
    if not cores or any(broker.glob(f"{_CSV}-*.jar")):
        return []
    version = cores[0].stem.removeprefix("jackson-core-")
    return [fetch(_CSV, version, group=_CSV_GROUP, transitive=False, report=report)]


def fetch(
    module: str,
    version: str,
    *,
    group: str = "org.apache.kafka",
    transitive: bool = True,
    report: Report = report_to_stderr,
) -> Path:
    """The folder with the jar `group:module:version` and, if `transitive`, all that it needs."""
    cache = cache_dir()
    folder = cache / f"{module}-{version}{'' if transitive else '-alone'}"
    if folder.is_dir():
        return folder
    with _only_one(cache, report):
        # Whoever held the lock before may have fetched just this.
        if not folder.is_dir():
            report(f"fetching {module} {version} into {cache} (once)")
            wanted = ["-dependency", group, module, version, "-confs", "default"]
            _fetch_into(folder, wanted if transitive else [*wanted, "-notransitive"], report)
    return folder


def cache_dir() -> Path:
    """Where fetched jars are kept: XDG_CACHE_HOME's, else ~/.cache's folder of this package."""
    return user_folder("XDG_CACHE_HOME", ".cache")


def _version_in(home: Path, asked: str | None) -> str:
    cores = [path.name for path in Path(home, "libs").glob("kafka_2.*.jar")]
    versions = {m[1] for name in cores if (m := re.fullmatch(r"kafka_2\.\d+-([\d.]+)\.jar", name))}
    if len(versions) != 1:
        raise ConfigError("KAFKA_HOME", str(home), "expected a folder with libs/kafka_2.*.jar")
    version = versions.pop()
    if asked and asked != version:
        raise ConfigError("version", asked, f"KAFKA_HOME ({home}) holds {version}; unset one")
    return version


def _spark_jars() -> Path:
    """PySpark's folder of jars, found without importing it."""
    spec = find_spec("pyspark")
    roots = [Path(root) for root in (spec.submodule_search_locations or ()) if spec] if spec else []
    if os.environ.get("SPARK_HOME"):
        roots.append(Path(os.environ["SPARK_HOME"]))
    for root in roots:
        if (root / "jars").is_dir():
            return root / "jars"
    raise DevBrokerFailed(
        "the embedded broker takes Ivy and log4j from PySpark, which is not installed: "
        "pip install 'pyspark-kafkaproto[spark]'"
    )


def _logging_jars() -> list[Path]:
    return [_spark_jar(name) for name in _LOGGING_JARS]


def _spark_jar(name: str) -> Path:
    jars = _spark_jars()
    found = sorted(jars.glob(f"{name}-[0-9]*.jar"))
    if not found:
        raise DevBrokerFailed(f"no {name}-*.jar in {jars}: expected PySpark 4.0 or later")
    return found[-1]


@contextmanager
def _only_one(cache: Path, report: Report) -> Iterator[None]:
    """Let one process at a time fetch into `cache`.

    Raises:
        ConfigError: nothing can be written there.
    """
    lock = FileLock(cache / "fetch.lock")
    deadline = Deadline.after(_FETCH_TIMEOUT_S)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        is_ours = lock.try_acquire()
    except OSError as error:
        why = f"expected a folder to write to: {error.strerror}"
        raise ConfigError("XDG_CACHE_HOME", str(cache.parent), why) from error
    if not is_ours:
        report("waiting for another process that is fetching Kafka")
        while not lock.try_acquire():
            deadline.check(f"waiting for the process that holds {lock.path}")
            time.sleep(0.2)
    try:
        yield
    finally:
        lock.release()


def _fetch_into(folder: Path, wanted: Sequence[str], report: Report) -> None:
    part = folder.with_name(folder.name + ".part")
    downloads = folder.with_name("ivy")
    shutil.rmtree(part, ignore_errors=True)
    arguments = [
        *proxy_options(),
        *("-jar", str(_spark_jar("ivy"))),
        *_settings_options(),
        *("-cache", str(downloads)),
        *wanted,
        *("-retrieve", f"{part}/[artifact]-[revision].[ext]"),
    ]
    _run_ivy(arguments, report)
    if not part.is_dir():
        raise DevBrokerFailed(f"Ivy ended well but brought nothing for {' '.join(wanted)}")
    part.rename(folder)
    # Only an unfinished fetch needs what Ivy keeps: it would hold every jar twice.
    shutil.rmtree(downloads, ignore_errors=True)


def _settings_options() -> list[str]:
    settings = os.environ.get("KAFKAPROTO_IVY_SETTINGS")
    return ["-settings", settings] if settings else []


def _run_ivy(arguments: list[str], report: Report) -> None:
    progress = _IvyOutput(report)
    with (
        subprocess.Popen(  # noqa: S603 - no shell, our own arguments
            [find_java(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as ivy,
        ending_with_us(ivy.pid),  # the next fetch is at the same files
    ):
        alarm = Timer(_FETCH_TIMEOUT_S, ivy.kill)
        alarm.start()
        try:
            for line in ivy.stdout or ():
                progress.read(line)
            code = ivy.wait()
        except BaseException:
            ivy.kill()
            raise
        finally:
            alarm.cancel()
    if code:
        raise DevBrokerFailed(f"Ivy could not fetch Kafka: {progress.reason()}\n{_HOW_ELSE}")


class _IvyOutput:
    """Makes a line of progress of each jar that arrives, and a reason of a failure."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._found = 0
        self._fetched = 0
        self._lines: list[str] = []

    def read(self, line: str) -> None:
        text = line.strip()
        if set(text) <= {"."} or text.startswith("."):
            return
        self._lines.append(text)
        if text.startswith("found "):
            self._found += 1
            if self._found == 1:
                self._report("asking which jars it needs")
        elif match := re.search(r"\[SUCCESSFUL \] .*!([^\s(]+)\.\w+\S* \(", text):
            self._fetched += 1
            self._report(f"fetched {match[1]} ({self._fetched} of {self._found})")

    def reason(self) -> str:
        """What Ivy names as unresolved or unreachable; its last lines if it names nothing."""
        telling = [
            line.strip(": \t")
            for line in self._lines
            if re.search(r"not found|ERROR\b|failed|[Ee]xception|unresolved dependency", line)
        ]
        chosen = telling or [line for line in self._lines if line]
        return "; ".join(dict.fromkeys(chosen[-8:]))

"""Java: finding it, running one program to its end, starting one that stays."""

from __future__ import annotations

import functools
import os
import re
import shutil

# Starting Java is what this room is for. No shell reads an argument: they stay what they are.
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from pyspark_kafkaproto.devbroker.processes import ending_with_us
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed

OLDEST_JAVA = 17
# Programs that run for a second or two: no time to profit from the optimising compiler.
SHORT_RUN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
# A shell that becomes Java when it is told to: process number and beginning stay the same.
_WHEN_TOLD = 'read -r told && exec "$@" </dev/null'
_HOW_TO_INSTALL = (
    f"install Java {OLDEST_JAVA} or later (Debian: apt-get install "
    f"openjdk-{OLDEST_JAVA}-jre-headless; macOS: brew install openjdk@{OLDEST_JAVA})"
)


def find_java() -> str:
    """The path of the Java launcher: JAVA_HOME's, else the one on PATH.

    Raises:
        DevBrokerFailed: there is none, or it is older than 17; the text says what to install. Or
            there is no folder to start it in.
    """
    try:
        Path.cwd()
    except FileNotFoundError:  # Java would not start, nor tell its version
        text = "the working directory was deleted: change to one that is there (cd)"
        raise DevBrokerFailed(text) from None
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home, "bin", "java")) if java_home else shutil.which("java")
    if java is None:
        raise DevBrokerFailed(f"no java on PATH and JAVA_HOME is not set: {_HOW_TO_INSTALL}")
    _check_version(java)
    return java


def heap_options() -> list[str]:
    """KAFKA_HEAP_OPTS as Kafka's own scripts take it, else a small heap."""
    return os.environ.get("KAFKA_HEAP_OPTS", "-Xmx512m").split()


def logging_options(level: str) -> list[str]:
    """System properties for a console log at `level` (warn, info, …)."""
    config = Path(__file__).with_name("log4j2.properties")
    return [f"-Dlog4j2.configurationFile={config}", f"-Dkafkaproto.log.level={level}"]


def proxy_options(environ: Mapping[str, str] | None = None) -> list[str]:
    """`http_proxy`, `https_proxy` and `no_proxy`, which Java does not read, as its properties."""
    environ = os.environ if environ is None else environ
    options = []
    for scheme in ("http", "https"):
        proxy = environ.get(f"{scheme}_proxy") or environ.get(f"{scheme.upper()}_PROXY")
        if proxy:
            options += _proxy_option(scheme, proxy)
    direct = environ.get("no_proxy") or environ.get("NO_PROXY")
    if options and direct:
        hosts = (host.strip() for host in direct.split(",") if host.strip())
        # `.example.org` there is `*.example.org` here.
        patterns = (f"*{host}" if host.startswith(".") else host for host in hosts)
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(patterns)}")
    return options


def run_java(
    arguments: Sequence[str], *, stdin: str = "", timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run Java to its end, or to ours, and return what it printed.

    Raises:
        DevBrokerFailed: it did not end within `timeout_s`; it was killed then.
    """
    with (
        subprocess.Popen(  # noqa: S603 - no shell, our own arguments
            [find_java(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as java,
        ending_with_us(java.pid),
    ):
        try:
            printed, complained = java.communicate(stdin, timeout=timeout_s)
        except BaseException as error:
            java.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                late = f"{' '.join(arguments[-6:])}: not done within {timeout_s:g} s"
                raise DevBrokerFailed(late) from error
            raise
    return subprocess.CompletedProcess(java.args, java.returncode, printed, complained)


def start_java(
    arguments: Sequence[str], log: Path, *, note: Callable[[int], None]
) -> subprocess.Popen[bytes]:
    """Start Java in a session of its own, all it prints appended to `log`.

    In a session of its own, so that a Ctrl-C at the terminal does not reach it: whoever started it
    decides when it ends.

    Args:
        arguments: Java's.
        log: what it prints goes there.
        note: takes its process number before Java begins. When the calling process is killed
            meanwhile, or this raises, Java never begins: none runs that nobody knows of.
    """
    with log.open("ab") as sink:
        java = subprocess.Popen(  # noqa: S603 - a shell's constant program, our own arguments
            ["/bin/sh", "-c", _WHEN_TOLD, "sh", find_java(), *arguments],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    with cast("IO[bytes]", java.stdin) as gate:  # closed without a word, the shell ends
        note(java.pid)
        gate.write(b"go\n")
    return java


@functools.cache
def _check_version(java: str) -> None:
    try:
        shown = subprocess.run(  # noqa: S603 - no shell, a path and a constant
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError as error:
        raise DevBrokerFailed(f"{java} cannot be run ({error}): {_HOW_TO_INSTALL}") from error
    # openjdk version "17.0.15" … and, before 9, java version "1.8.0_392"
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if match is None:
        raise DevBrokerFailed(f"{java} does not tell its version: {_HOW_TO_INSTALL}")
    if int(match[1]) < OLDEST_JAVA:
        raise DevBrokerFailed(f"{java} is Java {match[1]}: {_HOW_TO_INSTALL}")


def _proxy_option(scheme: str, proxy: str) -> list[str]:
    match = re.fullmatch(r"(?:https?://)?(?P<host>\[[^]]+\]|[^:/@\s]+)(?::(?P<port>\d+))?/?", proxy)
    if match is None:
        raise ConfigError(
            f"{scheme}_proxy",
            "(not shown)",
            "expected http://host:port; for a proxy with a password set KAFKAPROTO_IVY_SETTINGS "
            "to an Ivy settings file, or KAFKA_HOME to an unpacked Kafka",
        )
    port = match["port"] or ("443" if proxy.startswith("https:") else "80")
    return [f"-D{scheme}.proxyHost={match['host']}", f"-D{scheme}.proxyPort={port}"]

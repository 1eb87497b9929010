"""Finds Kafka's client jars, which hold the definitions of its messages.

Each jar is pinned by SHA-256. It comes from the user's cache folder, or through the Ivy that
PySpark ships, with the repositories that Ivy is configured for.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple


class Jar(NamedTuple):
    """A release of `kafka-clients` and the SHA-256 of its jar."""

    version: str
    sha256: str


NEWEST = Jar("4.4.0", "1ab07317eb6633241392449d329dbdc5d9251e6ffc4926860f42dd966e88bdf9")
OLDEST = Jar("3.9.2", "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8")


class WrongJar(Exception):
    """A jar that is not the pinned one, or could not be had."""


def find_jar(jar: Jar, given: Iterable[Path]) -> Path:
    """The pinned jar: one of `given`, or from the cache folder, fetched there if need be."""
    for path in given:
        if sha256(path) == jar.sha256:
            return path
    path = cached(jar.version)
    if not path.exists():
        _fetch(jar.version, path.parent)
    found = sha256(path)
    if found != jar.sha256:
        raise WrongJar(f"{path} has SHA-256 {found}, pinned is {jar.sha256}: delete it")
    return path


def fetch_release(version: str | None) -> tuple[str, Path]:
    """Fetch a release that is not pinned yet, None for the newest; its version and its jar."""
    with tempfile.TemporaryDirectory() as folder:
        _fetch(version or "latest.release", Path(folder))
        (fetched,) = Path(folder).glob("kafka-clients-*.jar")
        found = fetched.stem.removeprefix("kafka-clients-")
        cached(found).parent.mkdir(parents=True, exist_ok=True)
        return found, Path(shutil.move(fetched, cached(found)))


def cached(version: str) -> Path:
    """Where the cache folder has, or will have, the jar of a release."""
    return _cache_folder() / f"kafka-clients-{version}.jar"


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as the pins have it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "pyspark-kafkaproto" / "jars"


def _fetch(revision: str, folder: Path) -> None:
    """Bring a release's jar into `folder`; others may fetch the same meanwhile.

    Two Ivys with one cache take each other's half-written files away.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as own:
        # The configuration `master` is the jar alone, without what it depends on.
        command = ["java", "-jar", str(_ivy()), "-cache", f"{own}/ivy", "-confs", "master"]
        command += ["-dependency", "org.apache.kafka", "kafka-clients", revision]
        command += ["-retrieve", f"{own}/[artifact]-[revision].[ext]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched = next(Path(own).glob(f"kafka-clients-{_pattern(revision)}.jar"), None)
        if done.returncode or fetched is None:
            raise WrongJar(f"Ivy could not bring kafka-clients {revision}:\n{done.stdout}")
        fetched.replace(folder / fetched.name)


def _pattern(revision: str) -> str:
    return "*" if revision.startswith("latest.") else revision


def _ivy() -> Path:
    spec = find_spec("pyspark")
    for root in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(root, "jars").glob("ivy-*.jar")):
            return path
    raise WrongJar("install pyspark (it ships Ivy), or name the jars with --jar")

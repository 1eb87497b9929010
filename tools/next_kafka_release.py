"""Moves the package to the next release of Kafka: pin, messages, coverage page, and what is new.

    python tools/next_kafka_release.py            the newest release on Maven Central
    python tools/next_kafka_release.py 4.5.0      this one
    python tools/next_kafka_release.py --dry-run  says what would change, writes nothing

Fetches the release's kafka-clients, says which APIs, versions and fields it adds, changes or drops,
pins its SHA-256 in kafka_jars.py as NEWEST and runs generate_messages.py. What the definitions
cannot say (words of our own, new structures' names) that script asks for. Everything it writes is
in the checkout, for a person to read and commit.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kafka_definitions import FieldFact, MessageFact, StructFact, read_messages
from kafka_jars import NEWEST, OLDEST, Jar, WrongJar, fetch_release, find_jar, sha256

_TOOLS = Path(__file__).resolve().parent
_PINS = _TOOLS / "kafka_jars.py"


def main() -> int:
    """Run the command line; the exit code of the generator."""
    options = _parse_arguments()
    try:
        jar, path = _release(options.version, options.jar)
        if jar == NEWEST:
            print(f"kafka-clients {jar.version} is pinned already")
            return 0
        oldest = find_jar(OLDEST, ())
        now = read_messages(find_jar(NEWEST, ()), oldest)
        then = read_messages(path, oldest)
    except WrongJar as error:
        sys.exit(str(error))
    print(f"kafka-clients {NEWEST.version} -> {jar.version}, SHA-256 {jar.sha256}")
    print("\n".join(describe_changes(now, then)) or "no message differs")
    if options.dry_run:
        return 0
    _PINS.write_text(with_pin(_PINS.read_text(encoding="utf-8"), jar), encoding="utf-8")
    return _generate(path)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", nargs="?", help="a release; the newest where it is left out")
    parser.add_argument("--dry-run", action="store_true", help="write nothing, say what changes")
    parser.add_argument("--jar", type=Path, help="its kafka-clients jar, where it is at hand")
    return parser.parse_args()


def _release(version: str | None, given: Path | None) -> tuple[Jar, Path]:
    if given is None:
        found, path = fetch_release(version)
        return Jar(found, sha256(path)), path
    match = re.fullmatch(r"kafka-clients-(\d+\.\d+\.\d+)\.jar", given.name)
    if match is None or version not in {None, match[1]}:
        raise WrongJar(f"{given}: expected kafka-clients-{version or 'VERSION'}.jar")
    return Jar(match[1], sha256(given)), given


def with_pin(source: str, jar: Jar) -> str:
    """kafka_jars.py with `jar` as its newest; a file without that line is an error."""
    line = f'NEWEST = Jar("{jar.version}", "{jar.sha256}")'
    pinned, count = re.subn(r"^NEWEST = Jar\(.*\)$", line, source, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{count} lines pin NEWEST, expected one")
    return pinned


def _generate(jar: Path) -> int:
    command = [sys.executable, str(_TOOLS / "generate_messages.py"), "--jar", str(jar)]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print("now: tests/run.sh --long (its differential tests ask the new release), CHANGELOG.md")
    return code


def describe_changes(now: Iterable[MessageFact], then: Iterable[MessageFact]) -> Iterator[str]:
    """A line for each message or field that only one side has, or has otherwise."""
    was, will = ({_identity(fact): fact for fact in facts} for facts in (now, then))
    for key in sorted(was.keys() | will.keys()):
        yield from _message_changes(was.get(key), will.get(key))


def _identity(fact: MessageFact) -> tuple[int, str, str]:
    # An API keeps its number where its name changes.
    return (-1, fact.name, "") if fact.api_key is None else (fact.api_key, "", fact.role)


def _message_changes(was: MessageFact | None, will: MessageFact | None) -> Iterator[str]:
    if was is None or will is None:
        fact, word = (was, "dropped") if will is None else (will, "new")
        assert fact is not None
        yield f"{fact.name}: {word}, {_versions(fact)}"
        return
    if was.name != will.name:
        yield f"{was.name}: now called {will.name}"
    if _versions(was) != _versions(will):
        yield f"{will.name}: {_versions(was)} -> {_versions(will)}"
    before, after = (dict(_fields(fact.fields, fact.name)) for fact in (was, will))
    before = {will.name + path[len(was.name) :]: text for path, text in before.items()}
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield f"{path}: dropped"
        elif path not in before:
            yield f"{path}: new, {after[path]}"
        elif before[path] != after[path]:
            yield f"{path}: {before[path]} -> {after[path]}"


def _versions(fact: MessageFact) -> str:
    flexible = "never" if fact.flexible_from is None else fact.flexible_from
    return f"versions {fact.versions[0]} to {fact.versions[1]}, flexible from {flexible}"


def _fields(facts: Iterable[FieldFact], path: str) -> Iterator[tuple[str, str]]:
    """Path and description of every field, those of structures included."""
    for fact in facts:
        inner = f"{path}.{fact.name}"
        is_struct = isinstance(fact.kind, StructFact)
        kind = "struct" if is_struct else fact.kind
        words = [f"{'[]' if fact.is_array else ''}{kind}", fact.versions]
        words += [f"nullable {fact.nullable}"] if fact.nullable else []
        words += [f"tag {fact.tag}"] if fact.tag is not None else []
        words += [f"default {fact.default}"] if fact.has_default else []
        words += ["ignorable"] if fact.ignorable else []
        yield inner, " ".join(words)
        if isinstance(fact.kind, StructFact):
            yield from _fields(fact.kind.fields, inner)


if __name__ == "__main__":
    sys.exit(main())

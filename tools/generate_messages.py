"""Writes pyspark_kafkaproto/messages and docs/protocol-coverage.md from Kafka's definitions.

    python tools/generate_messages.py            writes the files
    python tools/generate_messages.py --check    says which differ from what the jars say

The definitions are in two releases of `kafka-clients`, pinned in kafka_jars.py: the newest, and
the oldest broker line that is supported. They are fetched when neither the cache folder nor
`--jar` has them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from kafka_definitions import MessageFact, read_messages
from kafka_jars import NEWEST, OLDEST, WrongJar, find_jar
from message_source import ORIGIN, api_name, module_name, render_call, render_module, unused_words

_ROOT = Path(__file__).resolve().parent.parent
_MESSAGES = "pyspark_kafkaproto/messages"
_COVERAGE = "docs/protocol-coverage.md"
_WRITTEN_BY_HAND = {"__init__.py", "registry.py"}


def main() -> int:
    """Run the command line; 1 if `--check` found differences."""
    options = _parse_arguments()
    try:
        messages = read_messages(find_jar(NEWEST, options.jar), find_jar(OLDEST, options.jar))
    except WrongJar as error:
        sys.exit(str(error))
    if unused := unused_words(messages):
        sys.exit(f"message_words.py names fields that do not exist: {', '.join(sorted(unused))}")
    files = _render(messages)
    differing = sorted({*_stale(files), *_surplus(files)})
    if options.check:
        for name in differing:
            print(f"{name} is not what the definitions say: run {Path(__file__).name}")
        return 1 if differing else 0
    for name in differing:
        _put(_ROOT / name, files.get(name))
    print(f"{len(files)} files, {len(differing)} written")
    return 0


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--jar", action="append", type=Path, default=[], help="a jar to use")
    return parser.parse_args()


def _render(messages: list[MessageFact]) -> dict[str, str]:
    """Every generated file, by its path below the project's root."""
    apis = {
        api: list(group)
        for api, group in groupby(sorted(messages, key=lambda fact: fact.name), key=_file_of)
    }
    files = {
        f"{_MESSAGES}/{module_name(api)}.py": render_module(_head(api, group), group)
        for api, group in apis.items()
    }
    requests = sorted((fact for fact in messages if fact.role == "request"), key=_api_key)
    files[f"{_MESSAGES}/apis.py"] = _render_apis(requests)
    files[_COVERAGE] = _render_coverage(requests)
    return files


def _file_of(fact: MessageFact) -> str:
    return "ConsumerProtocol" if fact.role == "data" else api_name(fact)


def _api_key(fact: MessageFact) -> int:
    return -1 if fact.api_key is None else fact.api_key


def _head(api: str, group: list[MessageFact]) -> str:
    return f"{api}." if group[0].api_key is None else f"{api}, API key {group[0].api_key}."


def _render_apis(requests: Iterable[MessageFact]) -> str:
    rows = "\n".join(line for fact in requests for line in _api_row(fact))
    return f'''"""Every API whose messages are in this room.

{ORIGIN}
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark_kafkaproto.wire.declaration import Versions


class Api(NamedTuple):
    """An API: number, name, file, the versions known here, the first flexible one if any."""

    key: int
    name: str
    module: str
    versions: Versions
    flexible_from: int | None


APIS = (
{rows}
)
'''


def _api_row(fact: MessageFact) -> list[str]:
    api = api_name(fact)
    arguments = [f"{fact.api_key}", f'"{api}"', f'"{module_name(api)}"']
    arguments += [f"Versions{fact.versions}", f"{fact.flexible_from}"]
    return [f"    {line}" for line in render_call("Api(", arguments, 1, "),")]


def _render_coverage(requests: Iterable[MessageFact]) -> str:
    rows = "\n".join(_coverage_row(fact) for fact in requests)
    return f"""# Protocol coverage

Requests and responses that this package reads and writes, in every version that brokers from
{OLDEST.version} to {NEWEST.version} speak. Left out are versions that Kafka calls unstable, and the
APIs that only controllers listen to.

Written by `tools/generate_messages.py` from the definitions in Kafka's own jars; `--check` proves
that this page and the messages are what the jars say. `tests/differential/test_messages.py`
compares every message here, in every version, byte for byte with what Kafka's own classes read and
write.

| API | key | versions | flexible from |
|---|---|---|---|
{rows}
"""


def _coverage_row(fact: MessageFact) -> str:
    start, end = fact.versions
    versions = f"{start}" if start == end else f"{start} to {end}"
    flexible = "never" if fact.flexible_from is None else fact.flexible_from
    return f"| {api_name(fact)} | {fact.api_key} | {versions} | {flexible} |"


def _stale(files: dict[str, str]) -> Iterable[str]:
    for name, text in files.items():
        path = _ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield name


def _surplus(files: dict[str, str]) -> Iterable[str]:
    for path in (_ROOT / _MESSAGES).glob("*.py"):
        name = f"{_MESSAGES}/{path.name}"
        if path.name not in _WRITTEN_BY_HAND and name not in files:
            yield name


def _put(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

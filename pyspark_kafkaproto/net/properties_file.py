"""Files of properties in Kafka's format, clients' and brokers'.

It is that of java.util.Properties, so a line that ends with a backslash goes on, and PEM text fits
in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pyspark_kafkaproto.errors import ConfigError

# A key ends at the first separator that has no backslash before it.
# Java's format knows three blanks and three ends of a line; all else belongs to a value.
_BLANKS = " \t\f"
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(
    rf"(?P<key>(?:[^\\=:{_BLANKS}]|\\.)*)[{_BLANKS}]*[=:]?[{_BLANKS}]*(?P<value>.*)", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<plain>.))", re.DOTALL)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path, named_by: str = "properties file") -> dict[str, str]:
    """The properties in a file of Kafka's format, which `named_by` (a flag, a variable) names.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(named_by, str(path), f"cannot be read ({error})") from error
    try:
        return parse_properties(data.decode())
    except UnicodeDecodeError:  # Java takes every file for ISO 8859-1
        return parse_properties(data.decode("latin-1"))


def parse_properties(text: str) -> dict[str, str]:
    """`key=value`, `key: value` or `key value`; `#` and `!` begin comments, backslashes escape."""
    found = {}
    for line in _whole_lines(text):
        match = _LINE.fullmatch(line)
        if match is not None:  # it matches whatever there is
            found[_unescaped(match["key"])] = _unescaped(match["value"])
    return found


def _whole_lines(text: str) -> Iterator[str]:
    """Lines with those that go on after a backslash put together; no comments, no empty ones."""
    held = ""
    for line in _LINE_ENDS.split(text):
        stripped = line.lstrip(_BLANKS)
        if not held and (not stripped or stripped[0] in "#!"):
            continue
        whole = held + stripped
        backslashes = len(whole) - len(whole.rstrip("\\"))
        if backslashes % 2:
            held = whole[:-1]
        else:
            yield whole
            held = ""
    if held:
        yield held


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match["code"]:
            return chr(int(match["code"], 16))
        return _NAMED.get(match["plain"], match["plain"])

    # Java's text is UTF-16: beyond its first plane a character is two escapes.
    return _PAIR.sub(_joined, _ESCAPE.sub(plain, text))


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")

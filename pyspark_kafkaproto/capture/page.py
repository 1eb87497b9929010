"""The conversation as one self-contained page: page.html with the messages put into it.

The page loads nothing from anywhere. What it shows of a message is made here, with secrets left
out; it is bounded per message and in the number of messages, so that a browser stays quick.
"""

from __future__ import annotations

import json
from base64 import b64encode
from importlib.resources import files
from typing import Any

from pyspark_kafkaproto.capture.about import text_of
from pyspark_kafkaproto.capture.message import REQUEST, Message
from pyspark_kafkaproto.capture.report import node_text, time_text
from pyspark_kafkaproto.capture.secrets import secret_ranges, without
from pyspark_kafkaproto.capture.subjects import About
from pyspark_kafkaproto.capture.tree import frame_bytes, tree
from pyspark_kafkaproto.wire.trace import Node

MESSAGES_MAX = 20_000
_BYTES_MAX = 4096
_RECORDS_MAX = 50
_NODES_MAX = 1500


class Page:
    """Collects messages and writes them as a page.

    Args:
        title: what was captured; it stands above the messages.

    Attributes:
        count: messages in the page. left_out: messages beyond MESSAGES_MAX.
    """

    def __init__(self, title: str) -> None:
        self.count = 0
        self.left_out = 0
        self._title = title
        self._rows: list[list[Any]] = []
        self._details: list[str] = []
        self._columns: dict[tuple[bool, str], int] = {}

    def add(self, message: Message, found: About) -> None:
        """One more message."""
        if self.count >= MESSAGES_MAX:
            self.left_out += 1
            return
        self.count += 1
        root = tree(message, _RECORDS_MAX)
        ranges = secret_ranges(root)
        shown = without(frame_bytes(message)[:_BYTES_MAX], ranges)
        fields, _ = _as_list(root, _NODES_MAX)
        detail = [
            fields[5],
            root.problem,
            b64encode(shown).decode(),
            message.size_bytes + 4,
            ranges,
        ]
        self._details.append(json.dumps(detail, ensure_ascii=False, separators=(",", ":")))
        self._rows.append(self._row(message, found))

    def _row(self, message: Message, found: About) -> list[Any]:
        peers = message.peers
        host = peers.client.rpartition(":")[0]
        client = f"{message.client_id} @ {host}" if message.client_id else peers.client
        return [
            message.number,
            time_text(message.time_ns),
            self._column(client, is_broker=False),
            self._column(peers.broker, is_broker=True),
            int(message.kind == REQUEST),
            message.api,
            message.title,
            message.correlation_id,
            message.size_bytes,
            None if message.latency_ns is None else message.latency_ns / 1e6,
            text_of(found),
            bool(found.errors or message.problem),
            peers.number,
            list(found.topics),
            message.answers,
            message.problem,
        ]

    def _column(self, name: str, *, is_broker: bool) -> int:
        return self._columns.setdefault((is_broker, name), len(self._columns))

    def html(self) -> str:
        """The page."""
        columns = [[name, is_broker] for is_broker, name in self._columns]
        data = {"title": self._title, "columns": columns, "rows": self._rows}
        template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        head, marker, tail = template.partition("/*DATA*/")
        assert marker, "page.html has no place for the data"  # noqa: S101  it is ours
        return "".join(
            (head, _inert(json.dumps(data, ensure_ascii=False)), self._details_text(tail))
        )

    def _details_text(self, tail: str) -> str:
        before, _, after = tail.partition("/*DETAILS*/")
        return "".join((before, _inert("\n".join(self._details)), after))


def _inert(text: str) -> str:
    """JSON that cannot end the script element it stands in, whatever a topic is called."""
    return text.replace("<", "\\u003c")


def _as_list(node: Node, room: int) -> tuple[list[Any], int]:
    """[name, start, stop, value, problem, fields], and how many more nodes may follow."""
    children: list[Any] = []
    room -= 1
    for child in node.children:
        if room <= 0:
            children.append(["…", -1, -1, "more is not in the page", "", []])
            break
        shown, room = _as_list(child, room)
        children.append(shown)
    return [node.name, node.start, node.stop, node_text(node), node.problem, children], room

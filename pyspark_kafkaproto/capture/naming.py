"""Names of topic ids in captures of ours: a comment beside a packet, which Wireshark shows too."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode

from pyspark_kafkaproto.wire.ids import id_text

_COMMENT = re.compile(r"topic ([\w-]{22}) is ([\w.-]{1,249})", re.ASCII)


def naming_comment(topic_id: bytes, name: str) -> str:
    """The comment that names a topic."""
    return f"topic {id_text(topic_id)} is {name}"


def named_topic(comment: str) -> tuple[bytes, str] | None:
    """The id and the name of a topic; None for a comment that is somebody else's."""
    found = _COMMENT.fullmatch(comment)
    return (urlsafe_b64decode(found[1] + "=="), found[2]) if found else None

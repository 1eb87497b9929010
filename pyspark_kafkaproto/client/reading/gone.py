"""Topics that a task of this process believed to be deleted, after a wait, by their ids.

Tasks of one lenient read come one after the other, and a broker may be behind the others: who comes
next need not wait for that as long again. Ids never come again; whoever finds the topic says so.
"""

from __future__ import annotations

import time

_BELIEVED_S = 60.0

_until: dict[bytes, float] = {}


def note_gone(topic_id: bytes | None) -> None:
    """No broker has known it for request.timeout.ms."""
    if topic_id is None:
        return
    now = time.monotonic()
    for each in [known for known, until in _until.items() if until <= now]:
        _until.pop(each, None)
    _until[topic_id] = now + _BELIEVED_S


def note_there(topic_id: bytes | None) -> None:
    """A broker knows it."""
    if topic_id is not None:
        _until.pop(topic_id, None)


def is_gone(topic_id: bytes | None) -> bool:
    """Whether the word of one broker more will do."""
    return topic_id is not None and time.monotonic() < _until.get(topic_id, 0.0)

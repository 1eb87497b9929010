"""The ids of topics that this process has heard of: for whoever writes its frames down.

Fetch and Produce name topics by id, and a reader whose driver looked everything up asks for no
metadata: nothing in its frames says which topic an id stands for (KIP-516).
"""

from __future__ import annotations

from collections.abc import Mapping

_IDS_MAX = 10_000

NAMES: dict[bytes, str] = {}
"""Topic ids to names."""


def note_topic_ids(ids: Mapping[str, bytes | None]) -> None:
    """Remember which topic has which id; None is none."""
    for name, topic_id in ids.items():
        if topic_id is not None and len(NAMES) < _IDS_MAX:
            NAMES[topic_id] = name

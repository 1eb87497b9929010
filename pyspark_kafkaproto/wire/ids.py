"""Ids of 16 bytes (topics', clusters') as Kafka's tools print them: url-safe base64."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

_ID_BYTES = 16


def id_text(value: bytes) -> str:
    """An id in 22 characters."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def id_of(text: str) -> bytes | None:
    """The id that `id_text` shows so; None where it is none."""
    try:
        found = urlsafe_b64decode(text + "==")
    except ValueError:
        return None
    return found if len(found) == _ID_BYTES and id_text(found) == text else None

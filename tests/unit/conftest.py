"""Fixtures for several rooms."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest

from pyspark_kafkaproto.cluster import capturing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def nothing_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No connection has a ring yet; the folder where errors leave their packets."""
    folder = tmp_path / "packets"
    folder.mkdir()
    monkeypatch.setattr(capturing, "_rings", deque(maxlen=32))
    monkeypatch.setattr(capturing, "_written", [])
    monkeypatch.setattr(capturing.tempfile, "tempdir", str(folder))
    return folder

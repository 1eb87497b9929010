from __future__ import annotations

import pytest

from tests.unit.cluster.admin.fake_settings import keep_settings


@pytest.fixture
def settings(brokers):
    """What is set for whom: (type, name) to settings; changes are made there."""
    return keep_settings(brokers)

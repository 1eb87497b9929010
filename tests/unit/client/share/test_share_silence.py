"""A network that swallows everything, in which a member of a share group is closed."""

from __future__ import annotations

import time

import pytest

from tests.fault.network import Network
from tests.unit.client.share.polling import poll_rows

pytestmark = pytest.mark.slow

TIMEOUT_S = 1.5
GRACE_S = 10.0  # of a machine that others use


def test_a_member_that_nobody_hears_closes_in_its_time(filled, shares, member_of, monkeypatch):
    network = Network(monkeypatch)
    consumer = member_of(default_api_timeout_ms=round(TIMEOUT_S * 1000))
    batch = consumer.poll(5)
    assert batch is not None
    began = time.monotonic()
    with network.cut():
        results = consumer.close(accept=True)
        took_s = time.monotonic() - began
    network.close()
    assert took_s < TIMEOUT_S + GRACE_S
    assert all(results.values())  # what was not heard has failed
    assert results


def test_who_is_reached_for_in_vain_rests_for_as_long(filled, shares, member_of, hole):
    filled.topics["orders"].move(1, 2)
    filled.advertised = {2: hole}
    consumer = member_of(socket_connection_setup_timeout_ms=300)
    assert {number for number, _, _ in poll_rows(consumer, 20)} == {0}
    assert consumer._exchange._resting["orders", 1].timeout_s >= 0.3

"""How long the sticky assignors take: the leader says nothing meanwhile, for a session at most."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto.client.group.classic.assignors import ASSIGNORS
from pyspark_kafkaproto.client.group.classic.subscriber import Subscriber


@pytest.mark.slow
def test_members_that_want_different_topics_are_shared_out_for_in_no_time():
    """Each move looks at those alone who can take part in one, not at each pair of members."""
    counts = {f"t{at}": at * 37 % 80 + 1 for at in range(151)}
    members = [Subscriber(f"m{at}", frozenset({f"t{at}", f"t{at + 1}"})) for at in range(150)]
    began = time.process_time()
    found = ASSIGNORS["sticky"](members, counts)
    assert time.process_time() - began < 1.5
    assert sum(map(len, found.values())) == sum(counts.values())

"""Who may have a thing that is for one at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_kafkaproto.client.alone import Alone
from pyspark_kafkaproto.errors import LocalProtocolError


def test_a_call_that_is_refused_in_the_midst_of_another_holds_nobody_up():
    alone = Alone("thing", nests=False)
    with alone(), pytest.raises(LocalProtocolError, match="in the midst"):
        alone.take()
    with ThreadPoolExecutor() as other:
        other.submit(alone.take).result()

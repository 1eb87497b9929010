"""How long others wait for a broker that may say nothing."""

import pytest

from pyspark_kafkaproto.client.group.patience import LONGEST_REST_S, SHORT_S, Patience, rest_after


def test_a_long_try_is_followed_by_short_ones_until_the_rest_is_over(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    tries = Patience(3.0, most_s=10.0)
    lasted = []
    for _ in range(12):
        lasted.append(tries.begin())
        tries.was_in_vain(rest_s=30.0)
        now[0] += 10.0
    assert lasted == [3.0, 0.3, 0.3, 6.0, 0.3, 0.3, 10.0, 0.3, 0.3, 10.0, 0.3, 0.3]


def test_a_short_try_in_vain_puts_off_no_long_one(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    tries = Patience(3.0)
    tries.begin()
    tries.was_in_vain(rest_s=30.0)
    now[0] += 29.0
    assert (tries.begin(), tries.is_long) == (SHORT_S, False)
    tries.was_in_vain(rest_s=30.0)
    now[0] += 1.0
    assert (tries.begin(), tries.is_long) == (6.0, True)


@pytest.mark.parametrize(("took_s", "rest_s"), [(0.3, 3.0), (0.0, 0.0), (100.0, LONGEST_REST_S)])
def test_others_are_read_for_most_of_the_time(took_s, rest_s):
    assert rest_after(took_s) == pytest.approx(rest_s)

import pytest

from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net import Deadline


def test_remaining_counts_down_to_zero_and_stays_there(clock):
    deadline = Deadline.after(2.0)
    assert deadline.remaining_s == 2.0
    clock.now += 1.5
    assert deadline.remaining_s == 0.5
    assert not deadline.has_passed
    clock.now += 0.5
    assert deadline.has_passed
    clock.now += 9
    assert deadline.remaining_s == 0.0


def test_sooner_is_never_later(clock):
    deadline = Deadline.after(2.0)
    assert deadline.sooner(5.0) is deadline
    assert deadline.sooner(1.0).remaining_s == 1.0
    assert deadline.sooner(1.0).timeout_s == 1.0


def test_check_names_the_work_and_the_time_given(clock):
    deadline = Deadline.after(2.0)
    deadline.check("counting")
    clock.now += 2.0
    with pytest.raises(DeadlineExceeded, match=r"^counting: not done within 2 s$"):
        deadline.check("counting")

"""The one loop: what it repeats, how long, and what it says when it gives up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.error_codes import ERROR_CODES
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    ConfigError,
    ConnectionFailed,
    CorruptRecords,
    DataLoss,
    DeadlineExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.net import Backoff, Deadline, retrying
from pyspark_kafkaproto.net.retry import is_retriable

REFUSED = ConnectionFailed("b-1:9092", "connect", "Connection refused")
LOST = ConnectionFailed("b-1:9092", "receive", "closed")
LOADING = BrokerError(14, "OffsetFetch", "group 'g'")

FOR_GOOD = [
    AuthenticationFailed("b-1", "PLAIN", "wrong password"),
    ConfigError("acks", "x", "0 or 1"),
    CorruptRecords("CRC"),
    DataLoss("X", "gone"),
    LocalProtocolError("we are wrong"),
    RemoteProtocolError("they are wrong"),
    UnsupportedVersion("none in common"),
]


class Script:
    """An attempt that fails as told, one error after the other, the last one for ever."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.tries = 0

    def __call__(self):
        self.tries += 1
        error = self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        if error is None:
            return "result"
        raise error


def run(attempt, timeout_s=60.0, **options):
    return retrying("do it", attempt, Deadline.after(timeout_s), Backoff(0.1, 1.0), **options)


def test_broker_errors_are_retried_as_the_table_says():
    for row in ERROR_CODES.values():
        error = BrokerError(row.code, "DescribeAcls", "x")  # of which no exception is made
        assert is_retriable(error) == row.is_retriable, row.name


# A broker in Kubernetes that restarts has no address for a while.
@pytest.mark.parametrize(
    "stage", ["resolve", "connect", "handshake", "send", "receive", "bootstrap"]
)
def test_lost_connections_are_retried(stage):
    assert is_retriable(ConnectionFailed("b-1", stage, "reset"))


@pytest.mark.parametrize("error", FOR_GOOD, ids=lambda error: type(error).__name__)
def test_what_no_retry_mends_is_raised_at_once(clock, error):
    attempt = Script(error)
    with pytest.raises(type(error)) as caught:
        run(attempt)
    assert caught.value is error
    assert (attempt.tries, clock.slept) == (1, [])


def test_other_exceptions_pass_untouched(clock):
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 / 0)


def test_first_success_is_the_result(clock):
    attempt = Script(REFUSED, LOADING, DeadlineExceeded("x", 1), None)
    assert run(attempt) == "result"
    assert attempt.tries == 4
    assert len(clock.slept) == 3


def test_each_retriable_error_is_shown_to_refresh_after_the_wait(clock):
    seen = []
    run(Script(REFUSED, LOADING, None), refresh=lambda error: seen.append((error, clock.now)))
    assert [error for error, _ in seen] == [REFUSED, LOADING]
    assert seen[0][1] == 1000.0 + clock.slept[0]


def test_waits_double_up_to_the_most_and_stay_near_them(clock):
    run(Script(*[REFUSED] * 7, None))
    for wait_s, nominal in zip(clock.slept, [0.1, 0.2, 0.4, 0.8, 1, 1, 1], strict=True):
        assert 0.8 * nominal <= wait_s <= 1.2 * nominal


@pytest.mark.slow
@given(first_s=st.floats(0, 10), most_s=st.floats(0, 100), tries=st.integers(1, 2**40))
def test_jitter_stays_within_a_fifth(first_s, most_s, tries):
    nominal = min(most_s, first_s * 2.0 ** min(tries - 1, 30))
    wait_s = Backoff(first_s, most_s).wait_s(tries)
    assert 0.8 * nominal <= wait_s <= 1.2 * nominal


def test_jitter_goes_both_ways():
    """Who failed together is not to come back together."""
    waits = [Backoff(1.0, 1.0).wait_s(1) for _ in range(200)]
    assert 0.8 <= min(waits) < 0.95
    assert 1.05 < max(waits) <= 1.2


def test_gives_up_before_the_deadline_passes_with_the_only_error_there_was(clock):
    attempt = Script(REFUSED)
    with pytest.raises(ConnectionFailed) as caught:
        run(attempt, timeout_s=5.0)
    assert caught.value is REFUSED
    assert clock.now <= 1005.0
    assert clock.now > 1003.0
    assert attempt.tries > 5


def test_gives_up_with_a_list_of_what_was_different(clock):
    with pytest.raises(DeadlineExceeded) as caught:
        run(Script(REFUSED, LOST, REFUSED, LOADING), timeout_s=5.0)
    assert caught.value.attempts == (str(REFUSED), str(LOST), str(LOADING))
    assert str(caught.value).startswith("do it: not done within 5 s; tried:\n  - broker b-1:9092")
    assert caught.value.__cause__ is LOADING


def test_only_error_that_is_a_deadline_itself_names_the_work(clock):
    inner = DeadlineExceeded("broker b-1:9092: receive", 1)
    with pytest.raises(DeadlineExceeded) as caught:
        run(Script(inner), timeout_s=3.0)
    assert (caught.value.what, caught.value.timeout_s) == ("do it", 3.0)
    assert caught.value.attempts == (str(inner),)


def test_no_time_at_all_is_one_try(clock):
    attempt = Script(REFUSED)
    with pytest.raises(ConnectionFailed):
        run(attempt, timeout_s=0)
    assert (attempt.tries, clock.slept) == (1, [])


def _impatient(text="no such topic", patience_s=1.0):
    error = BrokerError(3, "Metadata", "topic 'x'", text)
    error.patience_s = patience_s
    return error


def test_failure_that_outlasts_its_patience_is_raised_itself(clock):
    error = _impatient()
    attempt = Script(error)
    with pytest.raises(BrokerError) as caught:
        run(attempt)
    assert caught.value is error
    assert 2 < attempt.tries < 6
    assert 1000.5 < clock.now <= 1001.0


def test_patience_begins_with_the_failure_it_is_about(clock):
    # A broker that was away for five seconds does not know a new topic the moment it is back.
    def be_away():
        clock.now += 5
        raise REFUSED

    tries = iter([be_away, Script(_impatient()), lambda: "result"])

    def attempt():
        return next(tries)()

    assert run(attempt) == "result"


def test_end_of_patience_after_other_failures_is_not_called_a_deadline(clock):
    error = _impatient()
    with pytest.raises(BrokerError) as caught:
        run(Script(REFUSED, error))
    assert caught.value is error
    assert clock.now < 1003

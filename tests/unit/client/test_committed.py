"""What a group has not seen yet, and the commit of exactly what was read."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto import OffsetRange, TopicPartition
from pyspark_kafkaproto.client.committed import (
    cap_ranges,
    commit_ranges,
    committing,
    plan_ranges,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError


class Cluster:
    """A cluster with one topic `orders`, and one group; `truth` is what others say of ends.

    With `written`, where logs end, `latest` is where transactions are open, for read_committed.
    """

    def __init__(
        self, earliest=(0,), latest=(10,), committed=None, truth=None, written=None, group="g"
    ):
        self.group = group
        self.earliest, self.latest, self.committed = earliest, latest, committed or {}
        self.truth, self.written = truth or latest, written
        self.config = SimpleNamespace(is_read_committed=written is not None)
        self.type = None  # there is no such group yet
        self.members = ()
        self.topic_id = b"1" * 16

    def make_again(self):
        """With the topic brokers forget what was committed of it."""
        self.topic_id, self.committed = b"2" * 16, {}

    def describe(self, topics):
        return SimpleNamespace(topic_ids=dict.fromkeys(topics, self.topic_id))

    def believed(self, ask, is_believable):
        found = ask()
        if is_believable(found):
            return found
        self.latest = self.truth
        return ask()

    def get_partitions(self, topics):
        assert topics == {"orders"}
        return {TopicPartition("orders", number) for number in range(len(self.latest))}

    def get_consumer_offsets(self, group, partitions):
        assert group == self.group
        return {
            item: self.committed[item.partition]
            for item in partitions
            if item.partition in self.committed
        }

    def describe_groups(self, groups):
        if self.type is None:
            raise BrokerError(69, "DescribeGroups", "group 'g'")
        return {group: SimpleNamespace(type=self.type, members=self.members) for group in groups}

    def get_earliest_leader_offsets(self, partitions):
        return {item: self.earliest[item.partition] for item in partitions}

    def get_latest_leader_offsets(self, partitions):
        return {item: self.latest[item.partition] for item in partitions}

    def get_high_watermarks(self, partitions):
        return {item: self.written[item.partition] for item in partitions}

    def set_consumer_offsets(self, group, offsets):
        assert group == self.group
        self.committed |= {item.partition: offset for item, offset in offsets.items()}


def test_share_group_is_refused_before_anything_is_read():
    cluster = Cluster()
    cluster.type = "share"
    with pytest.raises(ConfigError, match="option 'group' is 'g': it is a share group"):
        plan(cluster)
    cluster.type = "classic"
    assert plan(cluster) == ranges((0, 10))


def ranges(*bounds):
    return [OffsetRange("orders", number, *item) for number, item in enumerate(bounds)]


def plan(cluster, **options):
    return plan_ranges(cluster, ["orders"], "g", **options)


def test_first_run_starts_at_the_earliest_offsets_or_at_the_latest_ones():
    cluster = Cluster(earliest=[3, 0], latest=[10, 0])
    assert plan(cluster) == ranges((3, 10), (0, 0))
    assert plan(cluster, fallback="latest") == ranges((10, 10), (0, 0))


def test_next_run_starts_where_the_group_has_committed():
    cluster = Cluster(earliest=[3, 0], latest=[10, 8], committed={0: 7})
    assert plan(cluster) == ranges((7, 10), (0, 8))


def test_an_end_before_what_was_committed_is_asked_of_others_first():
    cluster = Cluster(earliest=[3], latest=[5], committed={0: 7}, truth=[10])
    assert plan(cluster) == ranges((7, 10))


def test_one_end_before_what_was_committed_is_enough_to_ask_others():
    cluster = Cluster(earliest=[3, 0], latest=[5, 8], committed={0: 7, 1: 8}, truth=[10, 9])
    assert plan(cluster) == ranges((7, 10), (8, 9))


def test_where_all_that_is_there_was_committed_nobody_else_is_asked():
    cluster = Cluster(earliest=[3, 0], latest=[7, 8], committed={0: 7, 1: 6}, truth=[10, 9])
    assert plan(cluster) == ranges((7, 7), (6, 8))


def test_what_was_read_behind_an_open_transaction_is_neither_gone_nor_read_again():
    """By a run, or a member, that was read_uncommitted: no other broker knows it better."""
    logs = {"earliest": [0, 0], "latest": [5, 4], "written": [9, 6]}
    cluster = Cluster(**logs, committed={0: 8, 1: 3}, truth=[7, 4])
    assert plan(cluster) == ranges((8, 8), (3, 4))


def test_what_lies_beyond_all_transactions_is_not_there():
    cluster = Cluster(latest=[5], committed={0: 8}, written=[7])
    with pytest.raises(ConfigError, match="committed offset 8 of orders-0, which holds 0 to 5"):
        plan(cluster)


@pytest.mark.parametrize("offset", [25, 5])
def test_committed_offset_that_is_not_there_is_never_committed_over(offset):
    cluster = Cluster(earliest=[8], latest=[10], committed={0: offset})
    with pytest.raises(
        ConfigError,
        match=rf"'g'.*offset {offset} of orders-0, which holds 8 to 10"
        r".*kafkaproto groups reset g --to-earliest --topic orders:0 ",
    ):
        plan(cluster)


def test_a_group_of_two_words_is_one_to_the_shell():
    cluster = Cluster(earliest=[8], latest=[10], committed={0: 5}, group="night's run")
    told = r"kafkaproto groups reset 'night'\"'\"'s run' --to-earliest"
    with pytest.raises(ConfigError, match=told):
        plan_ranges(cluster, ["orders"], "night's run")


def test_partitions_whose_records_are_gone_are_reset_alone():
    """With those beside them, what was read there would be read again."""
    cluster = Cluster(earliest=[8, 0, 8], latest=[10, 10, 10], committed={0: 5, 1: 5, 2: 11})
    told = r"offset 5 of orders-0.*, offset 11 of orders-2.*--to-earliest --topic orders:0,2 "
    with pytest.raises(ConfigError, match=told):
        plan(cluster)


def test_records_are_capped_in_proportion():
    cluster = Cluster(earliest=[0, 5, 0], latest=[60, 25, 0])
    assert plan(cluster, max_records=8) == ranges((0, 6), (5, 7), (0, 0))
    assert plan(cluster, max_records=80) == plan(cluster)
    assert plan(cluster, max_records=1) == ranges((0, 1), (5, 5), (0, 0))


def test_a_cap_in_a_number_of_numpy_is_as_good():
    """32 bits of it are too short to multiply."""
    cluster = Cluster(earliest=[0, 0], latest=[2**31, 2**31])
    half = ranges((0, 10**9), (0, 10**9))
    assert plan(cluster, max_records=np.int32(2 * 10**9)) == half


@pytest.mark.slow
@given(st.lists(st.integers(0, 10**12), max_size=20), st.integers(1, 10**12))
def test_cap_is_reached_and_never_passed(counts, most):
    given_ranges = ranges(*((7, 7 + count) for count in counts))
    capped = cap_ranges(given_ranges, most)
    assert sum(item.count for item in capped) == min(most, sum(counts))
    assert [item.start for item in capped] == [7] * len(counts)
    assert all(one.count <= other.count for one, other in zip(capped, given_ranges, strict=True))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_records": 0}, "max_records.*0.*1 or more"),
        ({"max_records": 1e6}, "max_records.*1000000.0.*1 or more"),
        ({"max_records": "5"}, "max_records.*'5'.*1 or more"),
        ({"fallback": "now"}, "fallback.*'now'"),
    ],
)
def test_bad_argument_is_named(options, text):
    with pytest.raises(ConfigError, match=text):
        plan(Cluster(), **options)
    with pytest.raises(ConfigError, match=r"topics.*'orders'"):
        plan_ranges(Cluster(), "orders", "g")


def test_ends_are_committed_when_the_job_succeeds():
    cluster = Cluster(latest=[10, 8], earliest=[0, 0])
    planned = plan(cluster, max_records=9)
    with committing(cluster, "g", planned):
        assert cluster.committed == {}
    assert cluster.committed == {0: 5, 1: 4}
    commit_ranges(cluster, "g", ranges((5, 10), (4, 8)))
    assert cluster.committed == {0: 10, 1: 8}


def test_a_group_with_members_is_refused_before_the_job_has_done_anything():
    """Its commit would be refused behind all of the work, which would be done again then."""
    cluster = Cluster(committed={0: 3})
    cluster.type = "classic"
    cluster.members = (SimpleNamespace(client_id="c", host="/h"),)
    told = r"NON_EMPTY_GROUP.*members \(1: c at /h\)"
    with pytest.raises(BrokerError, match=told), committing(cluster, "g", plan(cluster)):
        pytest.fail("the job was begun")
    assert cluster.committed == {0: 3}


@pytest.mark.parametrize(
    ("before", "meanwhile", "text"),
    [
        ({}, {0: 15}, "committed nothing of orders-0 when this began, and offset 15 by now"),
        ({0: 3}, {0: 2}, "committed offset 3 of orders-0 when this began, and offset 2 by now"),
        (
            {0: 3, 1: 4},
            {0: 3},
            "offset 4 of orders-1 when this began, and nothing by now.*have expired",
        ),
    ],
)
def test_nothing_is_committed_where_others_have_committed_meanwhile(before, meanwhile, text):
    cluster = Cluster(latest=[20, 20], earliest=[0, 0], committed=dict(before))
    with pytest.raises(ConfigError, match=f"'g'.*{text}"), committing(cluster, "g", plan(cluster)):
        cluster.committed = dict(meanwhile)
    assert cluster.committed == meanwhile


@pytest.mark.parametrize("before", [{}, {0: 3}])
def test_nothing_is_committed_for_a_topic_that_was_made_again_meanwhile(before):
    """The next run would go on in the new one behind records that nobody has read."""
    cluster = Cluster(latest=[20], earliest=[0], committed=dict(before))
    told = "'g'.*topic 'orders' was deleted and made again since this began"
    with pytest.raises(ConfigError, match=told), committing(cluster, "g", plan(cluster)):
        cluster.make_again()
    assert cluster.committed == {}


@pytest.mark.parametrize("since", [20, 15, 4], ids=["all", "more than was there", "a part"])
def test_what_another_run_has_read_since_the_plan_is_not_read_again(since):
    """It would be there twice, and the group go back to the end of what was planned."""
    cluster = Cluster(latest=[12, 20], earliest=[0, 0], committed={0: 3})
    planned = plan(cluster)
    cluster.committed = {0: since}
    told = rf"'g'.*committed offset {since} of orders-0, and orders-0\[3, 12\) begins before"
    with pytest.raises(ConfigError, match=told), committing(cluster, "g", planned):
        pytest.fail("the job was begun")
    assert cluster.committed == {0: since}


def test_a_job_may_leave_out_what_the_group_has_not_seen():
    cluster = Cluster(latest=[20], earliest=[0], committed={0: 3})
    with committing(cluster, "g", ranges((10, 20))):
        pass
    assert cluster.committed == {0: 20}


def test_a_commit_of_partitions_that_are_not_ours_is_no_concern():
    cluster = Cluster(latest=[20, 20], earliest=[0, 0])
    with committing(cluster, "g", ranges((0, 10))):
        cluster.committed = {1: 7}
    assert cluster.committed == {0: 10, 1: 7}


def test_ranges_may_come_one_by_one():
    cluster = Cluster(latest=(10, 10))
    with committing(cluster, "g", iter(ranges((0, 7), (0, 4)))):
        pass
    assert cluster.committed == {0: 7, 1: 4}


@pytest.mark.parametrize("failure", [ValueError("the job fails"), KeyboardInterrupt()])
def test_nothing_is_committed_when_the_job_fails(failure):
    cluster = Cluster()
    with pytest.raises(type(failure)), committing(cluster, "g", ranges((0, 10))):
        raise failure
    assert cluster.committed == {}


@pytest.mark.parametrize(
    ("given_ranges", "text"),
    [
        (ranges((0, None)), "latest.*open bound"),
        ([*ranges((0, 5)), *ranges((7, 9))], "one offset per partition"),
        (("orders", 0, 0, 10), "option 'ranges' is 'orders': expected OffsetRange"),
        (ranges((0, 10))[0], "option 'ranges' is .*orders.*: expected a set of OffsetRange"),
    ],
)
def test_what_cannot_be_committed_shows_before_the_job_runs(given_ranges, text):
    with (
        pytest.raises(ConfigError, match=text),
        committing(Cluster(), "g", given_ranges),
    ):
        pytest.fail("the job ran")

"""Commits of a stream to a group: forward, again when they failed, and never in the way."""

import json
import logging
from time import time_ns
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.cluster import CommittedOffset, KafkaCluster, TopicPartition, capturing
from pyspark_kafkaproto.cluster.ring import Ring
from pyspark_kafkaproto.errors import BrokerError, ConfigError, ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.net import ClientConfig, Endpoint
from pyspark_kafkaproto.spark.stream.commits import GroupCommits
from pyspark_kafkaproto.spark.stream.listener import BehindLatest, OffsetCommitListener

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
CONFIG = ClientConfig.parse({"bootstrap.servers": "b-1:9092"})


@pytest.fixture
def kafka(monkeypatch):
    """What a cluster was told, and what it says."""
    told = SimpleNamespace(
        committed={ONE: 5}, commits=[], error=None, unknown=None, members=(), type="classic"
    )

    def fetch(self, group, partitions):
        return {item: at for item, at in told.committed.items() if item in partitions}

    def commit(self, group, offsets):
        if told.error:
            raise told.error
        told.commits.append({item: tuple(at) for item, at in offsets.items()})
        told.committed |= {item: at.offset for item, at in offsets.items()}

    def describe(self, groups):
        if told.unknown:
            raise told.unknown
        return {group: SimpleNamespace(type=told.type, members=told.members) for group in groups}

    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", fetch)
    monkeypatch.setattr(KafkaCluster, "set_consumer_offsets", commit)
    monkeypatch.setattr(KafkaCluster, "describe_groups", describe)
    return told


@pytest.fixture
def commits(kafka, clock):
    return GroupCommits(CONFIG, "g")


def test_offsets_never_move_backwards(kafka, commits):
    commits.commit({ONE: 4, TWO: 3})
    commits.commit({ONE: 6, TWO: 2})
    assert kafka.commits == [{TWO: CommittedOffset(3)}, {ONE: CommittedOffset(6)}]


def test_offsets_that_went_with_their_topic_are_committed_for_the_one_made_anew(kafka, commits):
    """Brokers forget them with the topic, and the stream goes on before where it was."""
    commits.commit({ONE: 6, TWO: 6})
    kafka.committed = {}
    commits.commit({ONE: 3, TWO: 6})
    assert kafka.committed == {ONE: 3, TWO: 6}


def test_the_first_offset_of_all_is_committed_where_nothing_is(kafka, commits):
    """Else tools would not see that the whole partition is still to be read."""
    commits.commit({ONE: 0, TWO: 0})
    assert kafka.commits == [{TWO: CommittedOffset(0)}]


def test_partition_that_comes_later_does_not_move_backwards(kafka, commits):
    kafka.committed = {TWO: 9}
    commits.commit({ONE: 3})
    commits.commit({ONE: 4, TWO: 2})
    assert kafka.committed == {ONE: 4, TWO: 9}


def test_what_others_have_committed_meanwhile_does_not_move_backwards(kafka, commits, clock):
    commits.commit({ONE: 6})
    kafka.committed[ONE] = 8
    commits.commit({ONE: 7})
    clock.now += 601
    commits.keep_alive()
    assert kafka.committed == {ONE: 8}


def test_what_others_have_committed_is_not_moved_back_to_be_kept(kafka, commits, clock):
    commits.commit({ONE: 6})
    kafka.committed[ONE] = 8
    clock.now += 601
    commits.keep_alive()
    assert kafka.commits == [{ONE: CommittedOffset(6)}]


def test_a_partition_that_stays_where_it_is_is_not_committed_with_others(kafka, commits):
    commits.commit({ONE: 6, TWO: 3})
    commits.commit({ONE: 7, TWO: 3})
    assert kafka.commits[1:] == [{ONE: CommittedOffset(7)}]


def test_before_there_is_anything_to_commit_nothing_is_asked(commits, monkeypatch):
    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", lambda *_: pytest.fail("asked"))
    commits.keep_alive()
    commits.finish({})


@pytest.mark.parametrize(("given_ms", "most_s"), [("60000", 10.0), ("4000", 4.0)])
def test_a_commit_holds_no_batch_up_for_long(given_ms, most_s):
    given = {"bootstrap.servers": "b-1:9092", "default.api.timeout.ms": given_ms}
    given["request.timeout.ms"] = "3000"
    commits = GroupCommits(ClientConfig.parse(given), "g")
    assert commits._cluster.config.default_api_timeout_s == most_s


def test_the_end_closes_connections_and_commits_nothing_again(kafka, commits, monkeypatch):
    closed = []
    monkeypatch.setattr(KafkaCluster, "close", lambda _: closed.append(True))
    commits.commit({ONE: 6})
    kafka.committed = {ONE: 5}
    commits.finish({})
    assert len(kafka.commits) == 1
    assert closed == [True]


def test_nothing_new_is_not_committed(kafka, commits):
    commits.commit({ONE: 6})
    commits.commit({ONE: 6})
    assert len(kafka.commits) == 1


@pytest.mark.parametrize(
    "error",
    [
        BrokerError(15, "OffsetCommit", "group 'g'"),
        ConnectionFailed("b-1:9092", "connect", "refused"),
        DeadlineExceeded("commit offsets of 'g'", 5.0),
    ],
    ids=["refused", "not reached", "silent"],
)
def test_commit_that_fails_is_tried_again_and_stops_nobody(kafka, commits, clock, caplog, error):
    kafka.error = error
    with caplog.at_level(logging.WARNING):
        commits.commit({ONE: 6})
    assert "group 'g': the commit failed" in caplog.text
    kafka.error = None
    commits.commit({ONE: 6})
    commits.keep_alive()
    assert kafka.commits == [], "not at every question of the engine"
    clock.now += 11
    commits.keep_alive()
    assert kafka.commits == [{ONE: CommittedOffset(6)}]


def test_commit_that_fails_says_where_its_packets_are_once(
    kafka, commits, clock, caplog, nothing_remembered
):
    ring = Ring("127.0.0.1:1", Endpoint("127.0.0.1", 2))
    ring.on_frame("sent", [memoryview(bytes(20))], time_ns())
    capturing._rings.append(ring)
    for failure in range(3):
        kafka.error = BrokerError(15, "OffsetCommit", f"group 'g', failure {failure}")
        commits.commit({ONE: 6})
        clock.now += 11
    (path,) = nothing_remembered.iterdir()
    assert caplog.text.count(f"kafkaproto dissect {path}") == 1
    assert "failure 2" in caplog.text


def test_idle_stream_commits_again_before_its_offsets_expire(kafka, commits, clock):
    commits.commit({ONE: 6})
    clock.now += 601
    commits.keep_alive()
    commits.keep_alive()
    assert kafka.commits == [{ONE: CommittedOffset(6)}] * 2


def test_partition_without_news_is_renewed_with_those_of_rare_batches(kafka, commits, clock):
    commits.commit({ONE: 6, TWO: 3})
    clock.now += 601
    commits.commit({ONE: 7, TWO: 3})
    assert kafka.commits[1:] == [{ONE: CommittedOffset(7), TWO: CommittedOffset(3)}]


def test_stream_that_says_where_it_is_at_each_look_commits_again_as_well(kafka, commits, clock):
    for _ in range(7):
        clock.now += 100
        commits.keep_alive()
        commits.commit({ONE: 6})
    assert kafka.commits == [{ONE: CommittedOffset(6)}]
    clock.now += 100
    commits.keep_alive()
    assert kafka.commits == [{ONE: CommittedOffset(6)}] * 2


def test_coordinator_that_does_not_answer_stops_no_query(kafka, commits, caplog):
    kafka.unknown = ConnectionFailed("b-1:9092", "connect", "refused")
    commits.check_free()
    assert "whether it has members is not known" in caplog.text
    kafka.unknown = BrokerError(30, "DescribeGroups", "group 'g'")
    with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
        commits.check_free()


def test_a_listener_takes_properties_as_kafka_names_them(kafka):
    OffsetCommitListener({"bootstrap.servers": "b-1:9092"}, "g")
    with pytest.raises(ConfigError, match="bootstrap"):
        OffsetCommitListener({"bootstrap": "b-1:9092"}, "g")


def test_a_group_that_there_is_not_yet_is_free(kafka, commits, caplog):
    kafka.unknown = BrokerError(69, "DescribeGroups", "group 'g'")
    commits.check_free()
    assert not caplog.records


def test_a_coordinator_that_is_about_to_be_elected_stops_no_query(kafka, commits, caplog):
    kafka.unknown = BrokerError(15, "DescribeGroups", "group 'g'")
    commits.check_free()
    assert "whether it has members is not known" in caplog.text


def test_group_with_members_is_refused(kafka, commits, monkeypatch):
    closed = []
    monkeypatch.setattr(KafkaCluster, "close", lambda _: closed.append(True))
    kafka.members = (SimpleNamespace(host="/10.0.0.7"),)
    with pytest.raises(ConfigError, match=r"commitGroupId.*'g'.*1 members \(at /10.0.0.7\)"):
        commits.check_free()
    with pytest.raises(ConfigError, match="option 'group' is 'g': the group has 1 members"):
        OffsetCommitListener(CONFIG, "g")
    assert closed == [True]


def test_share_group_is_refused_at_the_start(kafka, commits):
    kafka.type = "share"
    with pytest.raises(ConfigError, match=r"commitGroupId.*'g'.*share group.*a group of its own"):
        commits.check_free()
    with pytest.raises(ConfigError, match="option 'group' is 'g': it is a share group"):
        OffsetCommitListener(CONFIG, "g")


def progress(offsets, latest=None, *, batch=3, name="orders", query="some-id", more=()):
    source = SimpleNamespace(
        endOffset=json.dumps(offsets), latestOffset=json.dumps(latest or offsets)
    )
    other = SimpleNamespace(endOffset="17", latestOffset=None)
    sources = [source, other, *more]
    seen = SimpleNamespace(id=query, name=name, batchId=batch, sources=sources)
    return SimpleNamespace(progress=seen)


def ended(query, exception=None):
    return SimpleNamespace(id=query, exception=exception)


def test_listener_commits_the_batch_that_was_read(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8}}, {"orders": {"0": 20}}))
    (((offset, text, _),),) = (each.values() for each in kafka.commits)
    assert (offset, json.loads(text)) == (8, {"queryId": "some-id", "batchId": 3})
    assert listener.behind == BehindLatest(12, 12, 12.0)


def test_listener_tells_how_far_behind_partitions_are_the_least_the_most_and_the_mean(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    ends, latest = {"0": 8, "1": 5, "2": 30}, {"0": 20, "1": 8, "2": 30}
    listener.onQueryProgress(progress({"orders": ends}, {"orders": latest}))
    assert listener.behind == BehindLatest(0, 12, 5.0)


def test_listener_reads_offsets_as_older_clients_of_spark_connect_have_them(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    made = progress({})
    made.progress.sources = [
        SimpleNamespace(endOffset="{'orders': {'0': 8}}", latestOffset="None"),
        SimpleNamespace(endOffset="rate source: 17", latestOffset=None),
    ]
    listener.onQueryProgress(made)
    assert [each[ONE][0] for each in kafka.commits] == [8]


def test_listener_leaves_other_queries_alone(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g", query_name="orders")
    listener.onQueryProgress(progress({"orders": {"0": 8}}, name="another"))
    assert kafka.commits == []
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    assert len(kafka.commits) == 1


def test_listener_passes_over_what_was_not_told_yet(kafka, clock):
    """Spark has null before there is an offset, and for sources that do not know their latest."""
    listener = OffsetCommitListener(CONFIG, "g")
    made = progress({"orders": {"0": 8}})
    made.progress.sources = [
        SimpleNamespace(endOffset='{"orders":{"0":8}}', latestOffset=None),
        SimpleNamespace(endOffset=None, latestOffset=None),
    ]
    listener.onQueryProgress(made)
    assert [each[ONE][0] for each in kafka.commits] == [8]
    assert listener.behind is None


def test_listener_asks_nothing_for_queries_that_read_no_kafka(kafka, monkeypatch):
    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", lambda *_: pytest.fail("asked"))
    listener = OffsetCommitListener(CONFIG, "g")
    made = progress({})
    made.progress.sources = [SimpleNamespace(endOffset="17", latestOffset=None)]
    listener.onQueryProgress(made)


def test_listener_takes_who_is_beyond_an_older_latest_for_behind_by_nothing(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8}}, {"orders": {"0": 7}}))
    assert listener.behind == BehindLatest(0, 0, 0.0)


def test_listener_tells_of_the_source_and_the_query_that_are_farthest_behind(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    slower = SimpleNamespace(endOffset='{"orders":{"0":7}}', latestOffset='{"orders":{"0":9}}')
    listener.onQueryProgress(progress({"orders": {"0": 8}}, more=[slower]))
    listener.onQueryProgress(progress({"orders": {"0": 20}}, query="another-id"))
    assert [each[ONE][0] for each in kafka.commits] == [7]
    listener.onQueryTerminated(ended("some-id"))
    assert [each[ONE][0] for each in kafka.commits] == [7, 20]


def test_who_was_farthest_behind_and_ends_holds_idle_queries_back_no_more(kafka, clock):
    """They may have no next batch for days."""
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    listener.onQueryProgress(progress({"orders": {"0": 20, "1": 4}}, query="ahead"))
    assert kafka.committed == {ONE: 8, TWO: 4}
    listener.onQueryTerminated(ended("some-id"))
    assert kafka.committed == {ONE: 20, TWO: 4}
    assert json.loads(kafka.commits[-1][ONE][1])["queryId"] == "ahead"
    kafka.commits.clear()
    listener.onQueryTerminated(ended("ahead"))
    assert kafka.commits == []


def test_who_was_farthest_behind_and_fails_moves_the_group_to_nobody_else(kafka, clock):
    """For a topic that was made again the others' offsets are of the old one till they see it."""
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    listener.onQueryProgress(progress({"orders": {"0": 20}}, query="ahead"))
    kafka.committed = {}  # with the topic
    listener.onQueryTerminated(ended("some-id", "[KAFKA_DATA_LOSS.PARTITIONS_DELETED]"))
    assert kafka.committed == {}


def test_listener_forgets_partitions_that_a_query_has_lost(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8, "1": 3}}))
    listener.onQueryProgress(progress({"orders": {"1": 4}}))
    clock.now += 601
    listener.onQueryIdle(None)
    assert [set(each) for each in kafka.commits] == [{ONE, TWO}, {TWO}, {TWO}]


def test_last_batch_is_committed_by_a_second_try_at_the_end(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    kafka.error = BrokerError(15, "OffsetCommit", "group 'g'")
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    kafka.error = None
    listener.onQueryTerminated(ended("some-id"))
    assert [each[ONE][0] for each in kafka.commits] == [8]


def test_listener_does_not_overrule_who_sets_offsets_once_its_query_has_ended(kafka, clock):
    """Queries that go on are idle; the group was set back to read again what the ended one read."""
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    listener.onQueryProgress(progress({"orders": {"1": 4}}, query="another-id"))
    listener.onQueryTerminated(ended("some-id"))
    kafka.committed = {ONE: 2}
    clock.now += 601
    listener.onQueryIdle(None)
    assert kafka.committed == {ONE: 2, TWO: 4}
    listener.onQueryTerminated(ended("another-id"))
    kafka.committed = {}
    clock.now += 601
    listener.onQueryIdle(None)  # of a query that reads no Kafka
    assert kafka.committed == {}


def test_what_failed_for_want_of_the_topic_is_not_committed_for_one_made_again(kafka, clock):
    """The query fails when it sees that, and the group would be ahead of all that is read of it."""
    listener = OffsetCommitListener(CONFIG, "g")
    kafka.committed, kafka.error = {}, BrokerError(3, "OffsetCommit", "group 'g'")
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    kafka.error = None
    listener.onQueryTerminated(ended("some-id"))
    assert kafka.committed == {}


def test_what_failed_for_want_of_another_topic_is_committed_at_the_end(kafka, clock):
    """That one was deleted, and the query went on without it."""
    listener = OffsetCommitListener(CONFIG, "g")
    gone = BrokerError(3, "OffsetCommit", "group 'g'")
    gone.usable, kafka.error, kafka.committed = {ONE}, gone, {}
    listener.onQueryProgress(progress({"orders": {"0": 8}, "old": {"0": 5}}))
    kafka.error = None
    listener.onQueryProgress(progress({"orders": {"0": 9}}))
    listener.onQueryTerminated(ended("some-id"))
    assert kafka.committed == {ONE: 9}


def test_what_failed_for_want_of_the_topic_and_then_for_another_reason_is_not_committed(
    kafka, clock
):
    listener = OffsetCommitListener(CONFIG, "g")
    kafka.committed, kafka.error = {}, BrokerError(3, "OffsetCommit", "group 'g'")
    listener.onQueryProgress(progress({"orders": {"0": 8}}))
    clock.now += 11
    kafka.error = BrokerError(15, "OffsetCommit", "group 'g'")
    listener.onQueryIdle(None)
    kafka.error = None
    listener.onQueryTerminated(ended("some-id"))
    assert kafka.committed == {}


def test_a_topic_that_was_not_there_for_a_moment_is_committed_to_the_end(kafka, commits, clock):
    """A broker had not heard of it; what was committed since is of the one that is there."""
    kafka.error = BrokerError(3, "OffsetCommit", "group 'g'")
    commits.commit({ONE: 8})
    kafka.error = None
    clock.now += 11
    commits.commit({ONE: 9})
    commits.finish({ONE: 20})
    assert kafka.committed == {ONE: 20}


def test_where_others_are_ahead_the_end_commits_no_partition_that_was_never_read(kafka, commits):
    commits.commit({ONE: 9})
    commits.finish({ONE: 12, TWO: 7})
    assert kafka.committed == {ONE: 12}

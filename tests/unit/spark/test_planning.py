"""The driver's questions to a cluster, and the tasks it makes of the answers."""

import itertools
import json
import logging

import pytest

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition, routing
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DataLoss
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.net import connection, deadline, incoming, retry
from pyspark_kafkaproto.spark.options import parse_read_options
from pyspark_kafkaproto.spark.planning import plan_closed_ranges, plan_tasks
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster
from tests.fake_past import lead_in_the_past


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(monkeypatch, retry, deadline, connection, incoming, routing)


@pytest.fixture
def brokers():
    """`orders` holds the offsets 10 to 100 in partition 0 and 0 to 30 in partition 1."""
    with FakeCluster({"orders": 2, "reorders": 1, "__state": 1}, nodes=2) as fake:
        fake.topics["__state"].is_internal = True
        fake.logs["orders", 0].start = 10
        fake.logs["orders", 0].stop = 100
        fake.logs["orders", 1].stop = 30
        yield fake


@pytest.fixture
def plan(brokers):
    """Plans a read with the given options."""

    def run(**options):
        given = {"kafka.bootstrap.servers": brokers.bootstrap_servers} | options
        read = parse_read_options(given)
        with KafkaCluster(read.client) as cluster:
            return plan_tasks(cluster, read)

    return run


def _ranges(tasks):
    return [
        [(item.topic, item.partition, item.start, item.stop) for item in task.ranges]
        for task in tasks
    ]


def test_read_of_everything_costs_one_metadata_request(brokers, plan):
    tasks = plan(subscribe="orders")
    assert _ranges(tasks) == [[("orders", 0, None, None)], [("orders", 1, None, None)]]
    assert [call.api for call in brokers.calls] == ["ApiVersions", "Metadata"]
    (asked,) = brokers.asked("Metadata")
    assert [topic.name for topic in asked.topics] == ["orders"], "there may be thousands of others"


def test_task_says_where_its_partitions_lie_and_under_which_id(brokers, plan):
    brokers.topics["orders"].move(1, node_id=2)
    _, task = plan(subscribe="orders")
    (leader,) = task.leaders.values()
    assert (leader.node_id, str(leader.endpoint), leader.epoch) == (2, brokers.address(2), 1)
    assert task.topic_ids == {"orders": brokers.topics["orders"].topic_id}


def test_several_topics_and_assigned_partitions(plan):
    assert len(plan(subscribe="orders,reorders")) == 3
    assert _ranges(plan(assign='{"orders":[1],"reorders":[0]}')) == [
        [("orders", 1, None, None)],
        [("reorders", 0, None, None)],
    ]


@pytest.mark.parametrize(
    ("pattern", "topics"),
    [
        ("orders", {"orders", "reorders"}),
        ("^orders", {"orders"}),
        (".*", {"orders", "reorders"}),
        ("nothing", set()),
    ],
)
def test_pattern_is_found_anywhere_and_never_in_internal_topics(plan, pattern, topics):
    assert {item[0] for (item,) in _ranges(plan(subscribepattern=pattern))} == topics


def test_pattern_leaves_out_a_topic_that_the_cluster_tells_an_error_of(brokers, plan):
    brokers.topics["reorders"].error_code = 29  # may not be seen
    assert {item[0] for (item,) in _ranges(plan(subscribepattern="orders"))} == {"orders"}


def test_pattern_leaves_out_a_topic_that_is_deleted_while_its_bounds_are_looked_up(brokers, plan):

    def delete(call):
        del brokers.topics["reorders"], brokers.logs["reorders", 0]

    brokers.on("ListOffsets", delete, None)
    tasks = plan(subscribepattern="orders", startingoffsets="earliest+1")
    assert {item[0] for (item,) in _ranges(tasks)} == {"orders"}


def test_pattern_means_a_topic_that_brokers_list_and_do_not_know_each_time(brokers, plan, clock):
    gone = ListOffsetsResponse.Topic.Partition(partition_index=0, error_code=3)
    answer = ListOffsetsResponse(
        topics=(ListOffsetsResponse.Topic(name="reorders", partitions=(gone,)),)
    )
    brokers.on("ListOffsets", answer)
    with pytest.raises(BrokerError, match=r"reorders-0.*UNKNOWN_TOPIC_OR_PARTITION"):
        plan(subscribepattern="reorders", startingoffsets="earliest+1")


def test_pattern_without_a_topic_is_said(plan, caplog):
    with caplog.at_level(logging.WARNING):
        plan(subscribepattern="nothing")
    assert "subscribePattern 'nothing' matches no topic" in caplog.text


@pytest.mark.parametrize("given", [{"subscribe": "orders,odrers"}, {"assign": '{"odrers":[0]}'}])
def test_missing_topic_is_an_error_soon(plan, clock, given):
    with pytest.raises(BrokerError, match=r"topic 'odrers'.*no such topic"):
        plan(**given)
    assert clock.now - 1000 <= 1


@pytest.mark.parametrize(
    "given",
    [
        {"assign": '{"orders":[0,7]}'},
        {"offsetranges": '[["orders",0,20,30],["orders",7,null,null]]'},
    ],
)
def test_missing_partition_is_an_error(plan, given):
    with pytest.raises(BrokerError, match=r"partition orders-7.*\[0, 1\]"):
        plan(**given)


def test_given_offsets_are_checked_against_the_log(brokers, plan):
    tasks = plan(
        subscribe="orders",
        startingoffsets='{"orders":{"0":50,"1":-2}}',
        endingoffsets='{"orders":{"0":-1,"1":7}}',
    )
    assert _ranges(tasks) == [[("orders", 0, 50, None)], [("orders", 1, None, 7)]]
    assert len(brokers.asked("ListOffsets")) == 2


@pytest.mark.parametrize(
    ("option", "other"),
    [("startingoffsets", "endingoffsets"), ("endingoffsets", "startingoffsets")],
)
def test_offset_beyond_the_end_names_option_value_and_the_log(plan, clock, option, other):
    del other
    with pytest.raises(ConfigError, match=r"'orders-0': 101.*10 to 100.*failOnDataLoss") as caught:
        plan(assign='{"orders":[0]}', **{option: '{"orders":{"0":101}}'})
    assert caught.value.option.lower() == option


@pytest.mark.parametrize(
    ("start", "stop", "option", "offset"),
    [
        (20, 90, "endingOffsets", 90),
        (None, 100, "endingOffsets", 100),
        (85, 90, "endingOffsets", 90),
        (90, None, "startingOffsets", 90),
    ],
)
@pytest.mark.parametrize("strict", ["true", "false"])
def test_what_an_open_transaction_holds_back_is_no_loss(
    brokers, plan, clock, strict, start, stop, option, offset
):
    """It may be committed yet: a read that ends before it would pass it over for good."""
    brokers.logs["orders", 0].stable = 80
    given = {
        "assign": '{"orders":[0]}',
        "startingoffsets": json.dumps({"orders": {"0": -2 if start is None else start}}),
        "endingoffsets": json.dumps({"orders": {"0": -1 if stop is None else stop}}),
        "failondataloss": strict,
    }
    assert _ranges(plan(**given)) == [[("orders", 0, start, stop)]]
    given["kafka.isolation.level"] = "read_committed"
    if strict == "false" and stop is None:  # there is no end that would be missed
        assert plan(**given) == []
        return
    said = rf"'orders-0': {offset}.*open since offset 80.*transactions list"
    with pytest.raises(ConfigError, match=said) as caught:
        plan(**given)
    assert caught.value.option == option
    assert "KAFKA_DATA_LOSS" not in str(caught.value)
    brokers.logs["orders", 0].stable = None
    assert _ranges(plan(**given)) == [[("orders", 0, start, stop)]]


@pytest.mark.parametrize("option", ["startingoffsets", "endingoffsets"])
def test_what_a_group_has_committed_beyond_the_end_is_said_to_be_of_the_group(
    plan, clock, monkeypatch, option
):
    committed = {TopicPartition("orders", 0): 101}
    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", lambda *_: committed)
    given = {"assign": '{"orders":[0]}', "kafka.group.id": "g", option: "committed"}
    with pytest.raises(ConfigError, match=r"'orders-0': 101.*committed by 'g'; .*10 to 100"):
        plan(**given)


def test_what_is_beyond_an_open_transaction_and_the_log_is_not_there(brokers, plan, clock):
    brokers.logs["orders", 0].stable = 80
    given = {"offsetranges": '[["orders",0,20,101]]', "kafka.isolation.level": "read_committed"}
    with pytest.raises(ConfigError, match="KAFKA_DATA_LOSS"):
        plan(**given)
    assert _ranges(plan(failondataloss="false", **given)) == [[("orders", 0, 20, 80)]]


@pytest.mark.parametrize(("stop", "said"), [(None, 100), (50, 50)])
def test_start_that_is_gone_is_a_data_loss(plan, stop, said):
    with pytest.raises(DataLoss, match=rf"\[5, {said}\) for topic partition orders-0.*10 to 100"):
        plan(offsetranges=json.dumps([["orders", 0, 5, stop]]))


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize(("start", "stop"), [(10, None), (10, 100), (100, None)])
def test_where_the_log_begins_and_ends_is_inside_it(plan, caplog, strict, start, stop):
    """From its end on there is what comes until the range is read."""
    given = json.dumps([["orders", 0, start, stop]])
    tasks = plan(offsetranges=given, failondataloss=strict)
    assert _ranges(tasks) == [[("orders", 0, start, stop)]]
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("start", "end", "ranges"),
    [
        (5, 50, [[("orders", 0, 10, 50)]]),
        (5, 200, [[("orders", 0, 10, 100)]]),
        (0, 7, []),
        (150, 200, []),
    ],
)
def test_what_is_gone_is_cut_off_when_told_so(plan, clock, caplog, start, end, ranges):
    with caplog.at_level(logging.WARNING):
        tasks = plan(
            assign='{"orders":[0]}',
            startingoffsets=f'{{"orders":{{"0":{start}}}}}',
            endingoffsets=f'{{"orders":{{"0":{end}}}}}',
            failondataloss="false",
        )
    assert _ranges(tasks) == ranges
    assert "failOnDataLoss is false" in caplog.text


def test_end_that_is_gone_is_a_data_loss(plan):
    with pytest.raises(DataLoss, match=r"up to offset 7 for .* orders-0: .* 10 to 100 now"):
        plan(assign='{"orders":[0]}', endingoffsets='{"orders":{"0":7}}')


def test_end_where_the_log_begins_is_nothing_to_read(plan, caplog):
    with caplog.at_level(logging.WARNING):
        plan(assign='{"orders":[0]}', endingoffsets='{"orders":{"0":10}}')
    assert caplog.text == ""


def test_end_that_is_gone_is_said_where_that_is_no_failure(plan, caplog):
    with caplog.at_level(logging.WARNING):
        tasks = plan(
            assign='{"orders":[0]}', endingoffsets='{"orders":{"0":7}}', failondataloss="false"
        )
    assert tasks == []
    assert "orders-0[earliest, 7): only orders-0[10, 10) is there" in caplog.text


def test_end_before_the_start_names_both(plan):
    with pytest.raises(ConfigError, match=r"'orders-0': 50.*beyond the end, which is 20"):
        plan(
            assign='{"orders":[0]}',
            startingoffsets='{"orders":{"0":50}}',
            endingoffsets='{"orders":{"0":20}}',
        )


def test_fewer_tasks_have_about_the_same_number_of_records(plan):
    tasks = plan(subscribe="orders,reorders", maxpartitions="2")
    assert _ranges(tasks) == [
        [("orders", 0, None, None)],
        [("orders", 1, None, None), ("reorders", 0, None, None)],
    ]
    assert set(tasks[1].leaders) == {TopicPartition("orders", 1), TopicPartition("reorders", 0)}
    assert set(tasks[1].topic_ids) == {"orders", "reorders"}


def test_the_weight_of_a_range_is_what_it_spans_wherever_it_begins(brokers, plan):
    brokers.logs["reorders", 0].stop = 25
    given = [["orders", 0, 90, 100], ["orders", 1, 0, 30], ["reorders", 0, 0, 25]]
    tasks = plan(offsetranges=json.dumps(given), maxpartitions="2")
    assert [[tuple(item[:2]) for item in task] for task in _ranges(tasks)] == [
        [("orders", 1)],
        [("orders", 0), ("reorders", 0)],
    ]


def test_sizes_are_asked_for_only_when_tasks_are_grouped(brokers, plan):
    assert len(plan(subscribe="orders", maxpartitions="5")) == 2
    assert brokers.asked("ListOffsets") == []


def test_partition_in_an_election_is_planned_without_leader(brokers, plan):
    brokers.topics["orders"].leaders[0] = -1
    first, second = plan(subscribe="orders")
    assert first.ranges == (OffsetRange("orders", 0, None, None),)
    assert (len(first.leaders), len(second.leaders)) == (0, 1)


def test_given_ranges_are_read_as_they_are(plan):
    tasks = plan(offsetranges='[["orders",0,20,30],["orders",0,50,51],["reorders",0,7,7]]')
    assert _ranges(tasks) == [[("orders", 0, 20, 30)], [("orders", 0, 50, 51)]]


@pytest.mark.parametrize(("start", "stop"), [(70, 100), (20, 100), (None, 100), (70, None)])
@pytest.mark.parametrize("strict", ["true", "false"])
def test_an_old_leader_that_has_been_away_cuts_no_range_off(
    brokers, plan, clock, strict, start, stop
):
    """A job would commit the end of its range behind records that it has not read."""
    lead_in_the_past(brokers, "orders", end=60)
    given = json.dumps([["orders", 0, start, stop]])
    (task,) = plan(offsetranges=given, failondataloss=strict)
    assert _ranges([task]) == [[("orders", 0, start, stop)]]
    assert task.leaders[TopicPartition("orders", 0)].node_id == 2


def test_given_range_beyond_the_end_is_named_by_its_own_option(plan, clock):
    for given in ('[["orders",0,20,500]]', '[["orders",0,500,null]]'):
        with pytest.raises(ConfigError, match=r"offsetRanges.*500\}: the .* holds .* 10 to 100"):
            plan(offsetranges=given)
    with pytest.raises(BrokerError, match="orders-9"):
        plan(offsetranges='[["orders",9,20,30]]')


def test_large_partitions_are_split_and_open_bounds_stay_open(brokers, plan):
    assert _ranges(plan(subscribe="orders", minpartitions="4")) == [
        [("orders", 0, None, 40)],
        [("orders", 0, 40, 70)],
        [("orders", 0, 70, None)],
        [("orders", 1, None, None)],
    ]
    assert len(plan(subscribe="orders", maxrecordsperpartition="30")) == 4


@pytest.mark.parametrize(
    ("start", "stop", "edges"),
    [(50, 90, [50, 70, 90]), (50, None, [50, 75, None]), (None, 90, [None, 50, 90])],
)
def test_pieces_begin_and_end_with_what_was_given(plan, start, stop, edges):
    given = json.dumps([["orders", 0, start, stop]])
    pieces = [[("orders", 0, *piece)] for piece in itertools.pairwise(edges)]
    assert _ranges(plan(offsetranges=given, minpartitions="2")) == pieces


def test_a_start_beyond_the_end_reads_nothing_nor_what_is_written_later(plan, clock):
    """Whether it has an end that was given, or none."""
    for stop in (150, 200, None):
        given = json.dumps([["orders", 0, 150, stop]])
        assert plan(offsetranges=given, failondataloss="false") == []


def test_least_that_is_there_already_asks_for_no_sizes(brokers, plan):
    assert len(plan(subscribe="orders", minpartitions="2")) == 2
    assert brokers.asked("ListOffsets") == []


def test_between_a_least_and_a_most(plan):
    assert len(plan(subscribe="orders", minpartitions="4", maxpartitions="4")) == 4
    assert len(plan(subscribe="orders,reorders", minpartitions="2", maxpartitions="2")) == 2
    given = '[["orders",0,10,15],["orders",1,0,5]]'
    for most in (5, 6):  # by rounding six are nearer to five than four are
        tasks = plan(offsetranges=given, minpartitions="5", maxpartitions=str(most))
        assert len(tasks) == {5: 4, 6: 6}[most]


@pytest.mark.parametrize(
    "given",
    [
        {"startingoffsets": '{"orders":{"0":50}}', "endingoffsets": '{"orders":{"0":20}}'},
        {
            "startingoffsetsbytimestamp": '{"orders":{"0":50}}',
            "endingoffsetsbytimestamp": '{"orders":{"0":20}}',
        },
    ],
)
def test_start_beyond_the_end_shows_before_anything_is_asked(brokers, plan, given):
    with pytest.raises(ConfigError, match=r"\[UNRESOLVED_START.*50.*which is 20"):
        plan(assign='{"orders":[0]}', **given)
    assert brokers.asked("ListOffsets") == []


def test_start_beyond_the_end_that_a_time_means_is_an_error(plan):
    given = {"startingoffsets": '{"orders":{"0":50}}', "endingtimestamp": "5"}
    with pytest.raises(ConfigError, match=r"\[RESOLVED_START.*50.*which is 10"):
        plan(assign='{"orders":[0]}', **given)


def test_starts_and_ends_must_be_of_the_same_partitions(plan):
    with pytest.raises(ConfigError, match=r"\[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START"):
        plan(
            subscribe="orders",
            startingoffsets='{"orders":{"0":50,"1":0}}',
            endingoffsets='{"orders":{"0":60}}',
        )


def test_what_is_meant_at_this_moment_is_told_in_offsets(brokers, clock):
    given = {"startingoffsets": '{"orders":{"0":50,"1":-2}}', "endingoffsets": "latest"}
    servers = {"kafka.bootstrap.servers": brokers.bootstrap_servers, "subscribe": "orders"}
    read = parse_read_options(servers | given)
    with KafkaCluster(read.client) as cluster:
        closed = plan_closed_ranges(cluster, read)
    assert closed == [OffsetRange("orders", 0, 50, 100), OffsetRange("orders", 1, 0, 30)]


@pytest.mark.parametrize("given", [{"assign": "{}"}, {"offsetranges": "[]"}])
def test_no_partition_is_nothing_to_read_and_is_said(plan, caplog, given):
    with caplog.at_level(logging.WARNING):
        assert plan(**given) == []
    assert "nothing is read" in caplog.text


def test_start_beyond_sparks_forms_that_lies_behind_the_end_reads_nothing(plan):
    given = {"startingoffsets": "latest-10", "endingoffsets": '{"orders":{"0":50}}'}
    assert plan(assign='{"orders":[0]}', **given) == []


def test_end_beyond_sparks_forms_that_lies_before_the_start_reads_nothing(plan):
    start = '{"orders":{"0":50}}'
    assert plan(assign='{"orders":[0]}', startingoffsets=start, endingoffsets="latest-80") == []

"""A member dies by SIGKILL: its partitions move, and reading goes on from what it had committed."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from itertools import pairwise

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill

pytestmark = pytest.mark.fault

BATCHES, RECORDS = 20, 10
COMMITS = 5
TIMEOUT_S = 60


@contextmanager
def member_process(broker, group, topic, commits):
    command = [sys.executable, "-m", "tests.fault.member_process"]
    arguments = [broker.bootstrap_servers, group, topic, str(commits)]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(process.stdout.readline()) == {"ready": True}
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def lines_until(process, is_enough):
    """What it says until `is_enough(lines)`; pytest's time-out bounds a process that is silent."""
    lines, deadline = [], Deadline.after(TIMEOUT_S)
    while not is_enough(lines):
        deadline.check(f"lines of the member; there are {lines[-3:]}")
        lines.append(json.loads(process.stdout.readline()))
    return lines


@pytest.mark.timeout(90)
def test_partitions_of_a_killed_member_go_on_from_its_last_commit(broker, new_name):
    topic, group = new_name(), new_name("group")
    both = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as kafka:
        kafka.create_topics([NewTopic(topic, 2, 1)])
        with (
            member_process(broker, group, topic, COMMITS) as victim,
            member_process(broker, group, topic, 0) as heir,
        ):
            deadline = Deadline.after(TIMEOUT_S)
            while True:
                # It is there once the first of them has joined.
                is_there = any(item.group == group for item in kafka.list_groups())
                members = kafka.describe_groups({group})[group].members if is_there else ()
                if [len(member.assignment) for member in members] == [1, 1]:
                    break
                deadline.check("two members that share")
            for _ in range(BATCHES):
                fill(kafka, dict.fromkeys(both, RECORDS))
            said = lines_until(victim, lambda lines: lines and not lines[-1][3])
            victim.kill()
            own = said[0][0]
            assert {line[0] for line in said} == {own}
            committed = said[-2][2]
            assert said[-1][1] == committed  # what it read and did not commit
            assert kafka.get_consumer_offsets(group, both)[TopicPartition(topic, own)] == committed
            ends = {line[0]: 0 for line in said} | {1 - own: 0}

            def is_read(lines):
                ends.update({lines[-1][0]: lines[-1][2]} if lines else {})
                return set(ends.values()) == {BATCHES * RECORDS}

            heirs = lines_until(heir, is_read)
            taken = [line for line in heirs if line[0] == own]
            assert taken[0][1] == committed
            for earlier, later in pairwise(taken):
                assert later[1] == earlier[2]
        expected = dict.fromkeys(both, BATCHES * RECORDS)
        assert kafka.get_consumer_offsets(group, both) == expected

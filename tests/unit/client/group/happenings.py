"""What befalls a group: random schedules, with six partitions, or with topics that come and go."""

from __future__ import annotations

import random

from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import close
from tests.fake_log import FakeLog
from tests.unit.client.group.polling import PATIENCE_S, poll_together, rows_of


class Happenings:
    """Members come and go, answers are lost, leaders move, and somebody writes.

    Args:
        seed: of the schedule.
        brokers: with two filled partitions of `orders`, which get four more.
        new_member: opens a member.
        answers: of the coordinator, by API: what is lost is one of these.
    """

    def __init__(self, seed, brokers, new_member, answers):
        self.chance = random.Random(seed)
        self.brokers, self.new_member, self.answers = brokers, new_member, answers
        self.members, self.ends = [], [20, 20, 0, 0, 0, 0]
        for number in range(2, 6):
            brokers.logs["orders", number] = FakeLog()
            brokers.topics["orders"].leaders.append(self.chance.choice([1, 2]))
            brokers.topics["orders"].epochs.append(0)
        self.come()

    def come(self):
        if len(self.members) < 4:
            self.members.append(self.new_member())

    def go(self):
        if len(self.members) > 1:
            self.members.pop(self.chance.randrange(len(self.members))).close()

    def lose_an_answer(self):
        api, answer = self.chance.choice(sorted(self.answers.items()))

        def unheard(call):
            answer(call)
            return close()

        self.brokers.on(api, unheard, answer)

    def hang_up(self):
        self.brokers.hang_up(self.chance.choice([1, 2]))

    def move(self):
        self.brokers.topics["orders"].move(self.chance.randrange(6), self.chance.choice([1, 2]))

    def write(self):
        partition = self.chance.randrange(6)
        self.brokers.logs["orders", partition].append(b"more", b"and more")
        self.ends[partition] += 2

    def one(self):
        bad = [self.come, self.go, self.lose_an_answer, self.hang_up, self.move]
        self.chance.choice([*bad, *[self.write] * 4])()

    def check_each_row_once(self, count):
        """So many things happen, while all poll: each row is read, once, and in its order."""
        rows = []
        for _ in range(count):
            self.one()
            for member in self.members:
                rows += rows_of(member.poll(0.005))
        written = sum(self.ends)
        poll_together(self.members, rows, lambda: len(rows) >= written, f"{written} rows")
        for partition, end in enumerate(self.ends):
            assert [offset for number, offset in rows if number == partition] == list(range(end))


class TopicHappenings(Happenings):
    """The same by a pattern: topics that match are made, written to and deleted, too.

    Each name is used once. Members are opened to read `orders.*`.
    """

    def __init__(self, seed, brokers, new_member, answers):
        super().__init__(seed, brokers, new_member, answers)
        self.made, self.there = 0, {}  # how many rows each topic of one partition has
        self.gone = {}  # the same, of those that are deleted

    def make(self):
        if len(self.there) < 4:
            self.made += 1
            name = f"orders-{self.made}"
            with self.brokers.at_once():
                self.brokers.add_topic(name)
                self.brokers.topics[name].leaders[0] = self.chance.choice([1, 2])
                self.there[name] = 0
                self.write_to(name)

    def delete(self):
        if self.there:
            name = self.chance.choice(sorted(self.there))
            with self.brokers.at_once():
                del self.brokers.topics[name]
            self.gone[name] = self.there.pop(name)

    def write_to(self, name):
        self.brokers.logs[name, 0].append(b"more", b"and more")
        self.there[name] += 2

    def write(self):
        name = self.chance.choice(["orders", *sorted(self.there)])
        if name == "orders":
            super().write()
        else:
            self.write_to(name)

    def one(self):
        self.chance.choice([super().one, super().one, self.make, self.make, self.delete])()

    def check_each_row_once(self, count):
        """Of what is deleted meanwhile each row at most once; of all else each, in its order."""
        offsets = {}
        for _ in range(count):
            self.one()
            for member in self.members:
                self.take(member, offsets, 0.005)
        ends = {("orders", number): end for number, end in enumerate(self.ends) if end}
        ends |= {(name, 0): end for name, end in self.there.items()}
        deadline = Deadline.after(PATIENCE_S)
        while any(len(offsets.get(item, ())) < end for item, end in ends.items()):
            read = {item: len(own) for item, own in offsets.items()}
            deadline.check(f"reading {ends}; there is {read}")
            for member in self.members:
                self.take(member, offsets, 0.01)
        for item, end in ends.items():
            assert offsets.pop(item) == list(range(end))
        assert {name for name, _ in offsets} <= self.gone.keys()
        for (name, _), own in offsets.items():
            assert own == list(range(len(own)))
            assert len(own) <= self.gone[name]

    def take(self, member, offsets, timeout_s):
        batch = member.poll(timeout_s)
        if batch is not None:
            item = (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
            offsets.setdefault(item, []).extend(batch.column("offset").to_pylist())

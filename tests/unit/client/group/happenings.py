"""What befalls a group whose members read six partitions: random schedules."""

from __future__ import annotations

import random

from tests.fake_broker import close
from tests.fake_log import FakeLog
from tests.unit.client.group.polling import poll_together, rows_of


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

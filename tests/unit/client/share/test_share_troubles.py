"""Random troubles of share groups: whatever happens, each record is done once somebody had it."""

from __future__ import annotations

import random

import pytest

from pyspark_kafkaproto.net import Deadline
from tests.examples import first
from tests.unit.client.share.fake_shares import beat_refused
from tests.unit.client.share.polling import PATIENCE_S, rows_of

NOT_COORDINATOR = 16
_LOCK_S = 0.5
EVERY = {("orders", partition, offset) for partition in range(2) for offset in range(60)}


class Troubles:
    """What may befall a group, by its seed."""

    def __init__(self, brokers, shares, seed):
        self._brokers = brokers
        self._shares = shares
        self._random = random.Random(seed)

    def happen(self):
        """One of them, or nothing."""
        kinds = [self._lose_sessions, self._hang_up, self._move, self._expire, self._forget_members]
        kinds += [self._shares_epoch, self._refuse_beats, self._write, lambda: None]
        with self._brokers.at_once():
            self._random.choice(kinds)()

    def _lose_sessions(self):
        self._shares.end_sessions()

    def _hang_up(self):
        node = self._random.choice((1, 2))
        for place in [place for place in self._shares.sessions if place[0] == node]:
            self._shares.end_session(*place)
        self._brokers.hang_up(node)

    def _move(self):
        self._shares.tells = self._random.random() < 0.5
        self._shares.move("orders", self._random.choice((0, 1)), self._random.choice((1, 2)))

    def _expire(self):
        self._shares.expire()

    def _forget_members(self):
        self._shares.members.clear()

    def _shares_epoch(self):
        for session in self._shares.sessions.values():
            session.epoch += self._random.choice((0, 1))

    def _refuse_beats(self):
        self._brokers.on("ShareGroupHeartbeat", beat_refused(NOT_COORDINATOR), self._shares.beat)

    def _write(self):
        for number in range(2):
            log = self._brokers.logs["orders", number]
            if log.stop < 60:
                log.fill(1, min(self._random.choice((1, 2, 5)), 60 - log.stop))


@pytest.mark.parametrize("seed", first(1, range(40)))
def test_nothing_is_lost_and_nothing_is_done_that_nobody_had(filled, shares, member_of, seed):
    troubles = Troubles(filled, shares, seed)
    members = [member_of(max_poll_records=7) for _ in range(2)]
    had = set()

    def poll_all():
        for one in members:
            if (batch := one.poll(0.005)) is not None:
                assert len(rows_of(batch)) == batch.num_rows
                had.update(("orders", number, offset) for number, offset, _ in rows_of(batch))

    for _ in range(60):
        troubles.happen()
        poll_all()
        assert shares.done() <= had
    for number in range(2):
        log = filled.logs["orders", number]
        log.fill(60 - log.stop, records=1)
    deadline, lock = Deadline.after(PATIENCE_S), Deadline.after(_LOCK_S)
    while shares.done() != EVERY:
        deadline.check("all of it")
        poll_all()
        if lock.has_passed:  # what a request was refused with others of stays locked until then
            lock = Deadline.after(_LOCK_S)
            with filled.at_once():
                shares.expire()
    assert had == EVERY
    for one in members:
        one.close()
    filled.wait_until_left()  # a session that was refused just before ends with its connection
    assert not shares.sessions

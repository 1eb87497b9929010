"""Where the same partitions end, asked for again and again, as an idle stream does.

The first question goes the usual way; from the second one on the requests to each leader stay as
they are, and so does what was made of an answer that is still the same. Whatever is not as it was,
an error, a leader that moved, other partitions, goes the usual way again, with its retries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark_kafkaproto.cluster.asking import check_complete, send_all
from pyspark_kafkaproto.cluster.given import checked_partitions
from pyspark_kafkaproto.cluster.offsets import (
    LATEST_TIMESTAMP,
    Listed,
    is_committed,
    list_bounds,
    list_led_ends,
    make_request,
    read_answer,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import Deadline, Endpoint
from pyspark_kafkaproto.wire.standing import Standing


class StandingEnds:
    """The latest offsets of the partitions that were asked for last.

    Args:
        router: whom to ask.

    Attributes:
        epochs: those of the leaders that told the ends last; another object once one has changed.
    """

    def __init__(self, router: Router) -> None:
        self.epochs: dict[TopicPartition, int] = {}
        self._router = router
        self._partitions: list[TopicPartition] = []
        self._topology: Topology | None = None  # what told the leaders
        self._parts: list[_Part] | None = None  # None: asked for once
        self._ends: dict[TopicPartition, int] = {}

    def ask_led(self, partitions: Collection[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Where each of them ends that somebody leads, as `list_led_ends` has it; its errors."""
        self._partitions, self._parts = [], None
        epochs: dict[TopicPartition, int] = {}
        chosen = checked_partitions(partitions)
        found = list_led_ends(self._router, chosen, epochs=epochs)
        self.epochs = epochs
        return found

    def ask(self, partitions: Collection[tuple[str, int]]) -> dict[TopicPartition, int]:
        """Where each of them ends, as `list_bounds` has it; its errors."""
        deadline = self._router.deadline()
        is_same = isinstance(partitions, list) and partitions == self._partitions
        if is_same and self._router.known is self._topology and self._ask_again(deadline):
            return dict(self._ends)
        chosen = self._partitions if is_same else checked_partitions(partitions)
        self._partitions, self._parts = [], None
        epochs: dict[TopicPartition, int] = {}
        self._ends = list_bounds(
            self._router, chosen, LATEST_TIMESTAMP, deadline=deadline, epochs=epochs
        )
        self.epochs = epochs
        self._partitions, self._topology = chosen, self._router.known
        return dict(self._ends)

    def _ask_again(self, deadline: Deadline) -> bool:
        """Put the same requests once more; whether there is an end in the answers for all."""
        if self._parts is None:
            try:
                self._parts = self._prepared(deadline)
            except KafkaProtoError:
                return False  # the usual way tells, or waits, or finds it mended
        requests = [(part.place, part.request) for part in self._parts]
        answers = send_all(self._router, requests, deadline)
        others = [
            (part, answer)
            for part, answer in zip(self._parts, answers, strict=True)
            if answer is not part.answer
        ]
        news: dict[TopicPartition, Listed] = {}
        for part, answer in others:
            found = None if isinstance(answer, KafkaProtoError) else part.read(answer)
            if found is None:
                return False
            news |= found
        if news:
            self._ends = self._ends | {item: end.offset for item, end in news.items()}
            epochs = {item: end.leader_epoch for item, end in news.items()}
            if not epochs.items() <= self.epochs.items():
                self.epochs = self.epochs | epochs
        # Only now: what ends before, in an error or by Ctrl-C, has to find the news again.
        for part, answer in others:
            part.answer = answer
        return True

    def _prepared(self, deadline: Deadline) -> list[_Part]:
        """The request to each leader.

        Raises:
            KafkaProtoError: a partition has none at the moment, for one.
        """
        router = self._router
        by_place: dict[Endpoint, list[TopicPartition]] = {}
        for item, place in router.leader_places(self._partitions, deadline).items():
            if isinstance(place, BrokerError):
                raise place
            by_place.setdefault(place, []).append(item)
        parts = []
        for place, own in by_place.items():
            timestamps = dict.fromkeys(own, LATEST_TIMESTAMP)
            request = make_request(router, timestamps, committed=is_committed(router, None))
            parts.append(_Part(place, own, Standing(request)))
        return parts


class _Part:
    """What one leader is asked.

    Attributes:
        place: where it listens.
        request: to it.
        answer: its last one that named the end of each of its partitions.
    """

    def __init__(
        self, place: Endpoint, partitions: list[TopicPartition], request: Standing[Any]
    ) -> None:
        self.place = place
        self.request = request
        self.answer: Any = None
        self._partitions = partitions

    def read(self, answer: Any) -> dict[TopicPartition, Listed] | None:
        """The end of each partition; None where the answer has none for one of them."""
        results = read_answer(answer)
        check_complete(f"list offsets, broker {self.place}", self._partitions, results)
        ends = {item: found for item, found in results.items() if isinstance(found, Listed)}
        return ends if len(ends) == len(results) else None

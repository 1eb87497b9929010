"""Who answers what: any broker, a partition's leader, a group's coordinator.

A `Router` keeps what it learned (topology, coordinators) and learns anew when an error says so.
Whom it can reach, and who answers, is a matter of `contacts`. Requests to several brokers are all
sent before the first answer is awaited.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask, each_place, whole
from pyspark_kafkaproto.cluster.contacts import BOOTSTRAP, Contacts
from pyspark_kafkaproto.cluster.coordinators import GROUP_KEY, find_coordinators
from pyspark_kafkaproto.cluster.topic_ids import note_topic_ids
from pyspark_kafkaproto.cluster.topology import (
    Broker,
    Leader,
    TopicPartition,
    Topology,
    read_topology,
)
from pyspark_kafkaproto.error_codes import (
    LEADER_NOT_AVAILABLE,
    REBOOTSTRAP_REQUIRED,
    UNKNOWN_SERVER_ERROR,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Connections,
    Deadline,
    Endpoint,
    retrying,
)
from pyspark_kafkaproto.wire.standing import Standing, message_of

_T = TypeVar("_T")
_P = ParamSpec("_P")
_W = TypeVar("_W", bound="_Window")

OPINIONS = 3
"""How many brokers have to agree. Spark's own connector asks three times too, but any broker."""
_BETWEEN_OPINIONS_S = 0.3
# Of groups and transactional ids, which come and go: a window on a cluster may be open for years.
_MOST_COORDINATORS = 10_000

# What a broker says of the cluster as a whole where another one may know more.
_KNOWS_NOTHING = {
    REBOOTSTRAP_REQUIRED: "it asks clients to begin again at a bootstrap server "
    "(REBOOTSTRAP_REQUIRED)",
    UNKNOWN_SERVER_ERROR: "it cannot tell of the cluster, its log says why (UNKNOWN_SERVER_ERROR)",
}


class Router(Contacts):
    """Finds the broker to ask and asks it.

    Args:
        config: the client's configuration.
        connections: shared ones; None makes its own.
        leaders: partitions' leaders that somebody has looked up already.
        brokers: that somebody has met already: who does not answer is away, and no wrong address.
    """

    _tries_once = False
    _waits_for_leaders = True

    def __init__(
        self,
        config: ClientConfig,
        connections: Connections | None = None,
        leaders: Mapping[TopicPartition, Leader] | None = None,
        brokers: Iterable[Endpoint] = (),
    ) -> None:
        self._leaders = dict(leaders or {})
        endpoints = (item.endpoint for item in self._leaders.values())
        super().__init__(config, connections, (*endpoints, *brokers))
        self._topology: Topology | None = None
        self._asked: MetadataRequest | Standing[MetadataRequest] | None = None  # the last time
        self._read: tuple[MetadataResponse, Topology] | None = None  # of a standing request
        self._coordinators: dict[tuple[int, str], Endpoint] = {}

    def _of_cluster(self) -> list[Endpoint] | None:
        if self._topology is None:
            return None
        return [broker.endpoint for broker in self._topology.brokers.values()]

    # Answers that are out of date

    def opinions(self) -> Iterator[bool]:
        """Rounds in which to ask until what is said is believed; True: the last one.

        Before each but the first another broker is made to answer `ask_any`, where there is one. A
        broker that has just started, or was away for a while, may for a moment still take itself
        for the leader, a log to be as short as it was then, and a topic to be one since deleted.
        """
        for _ in range(OPINIONS - 1):
            yield False
            time.sleep(_BETWEEN_OPINIONS_S)
            self.distrust_last()
            self.forget_leaders()
        yield True

    def believed(self, ask: Callable[[], _T], is_believable: Callable[[_T], bool]) -> _T:
        """What `ask` gives once it is believable, or else the last of its `opinions`."""
        for _ in self.opinions():
            found = ask()
            if is_believable(found):
                break
        return found

    def doubting(self, code: int, ask: Callable[[], _T]) -> _T:
        """What `ask` gives; an error of this code is believed of the last of its `opinions` alone.

        Raises:
            BrokerError: that one, or any other.
        """
        for is_last in self.opinions():
            try:
                return ask()
            except BrokerError as error:
                if is_last or error.code != code:
                    raise
        raise AssertionError("the last opinion counts")

    def retrying(self, what: str, attempt: Callable[[], _T], deadline: Deadline) -> _T:
        """`attempt` until it succeeds, or once; what an error shows is out of date is forgotten."""
        if not self._tries_once:
            return retrying(what, attempt, deadline, self.config.backoff, self.forget_for)
        try:
            return attempt()
        except KafkaProtoError as error:
            self.forget_for(error)
            raise

    @contextmanager
    def trying_once(self) -> Iterator[None]:
        """Inside, the first failure is raised."""
        self._tries_once = True
        try:
            yield
        finally:
            self._tries_once = False

    # Topology

    @property
    def known(self) -> Topology | None:
        """What the cluster looked like the last time, without what was forgotten since."""
        return self._topology

    @property
    def cluster_id(self) -> str | None:
        """What the cluster calls itself; None before any topology was asked for."""
        return None if self._topology is None else self._topology.cluster_id

    def topology(self, topics: Collection[str] | None, deadline: Deadline) -> Topology:
        """Fresh metadata of `topics` (None: of all), one try. Never creates a topic.

        Asked for the same again, whoever answers in the same words gives the very same topology.
        """
        request = MetadataRequest(
            topics=None
            if topics is None
            else tuple(MetadataRequest.Topic(name=name) for name in sorted(topics)),
            allow_auto_topic_creation=False,
        )
        asked = self._asked = self._as_before(request)
        answer = self.at_any(lambda place: self._metadata(place, asked, deadline), deadline)
        if self._read is not None and self._read[0] is answer:
            self._topology = self._read[1]
            return self._topology
        self._topology = read_topology(answer)
        self._read = (answer, self._topology) if isinstance(asked, Standing) else None
        if topics:
            known = self._topology.topics.values()
            note_topic_ids({topic.name: topic.topic_id for topic in known})
        return self._topology

    def _as_before(self, request: MetadataRequest) -> MetadataRequest | Standing[MetadataRequest]:
        """A request that was the last one, too, as a standing one; others as they are."""
        if self._asked is None or message_of(self._asked) != request:
            return request
        return self._asked if isinstance(self._asked, Standing) else Standing(request)

    def described(self, topics: Collection[str] | None, *, must_exist: bool = False) -> Topology:
        """Fresh metadata of `topics` (None: of all), asked for until somebody answers.

        Raises:
            BrokerError: with `must_exist`, one of `topics` does not exist or may not be seen.
        """
        deadline = self.deadline()

        def attempt() -> Topology:
            topology = self.topology(topics, deadline)
            for name in topics or () if must_exist else ():
                topology.topic(name)
            return topology

        return self.retrying("fetch metadata", attempt, deadline)

    def topic_names(self, topic_ids: Collection[bytes], deadline: Deadline) -> dict[bytes, str]:
        """What topics are called, of those that the broker asked knows; one try."""
        topics = tuple(MetadataRequest.Topic(topic_id=item, name=None) for item in topic_ids)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = self.at_any(lambda place: self._metadata(place, request, deadline), deadline)
        return {
            topic.topic_id: topic.name
            for topic in answer.topics
            if topic.name is not None and not topic.error_code
        }

    def _metadata(
        self,
        place: Endpoint,
        request: MetadataRequest | Standing[MetadataRequest],
        deadline: Deadline,
    ) -> MetadataResponse:
        """A broker's answer; another one is asked where it knows that it knows nothing."""
        answer: MetadataResponse = self._ask(place, request, deadline)
        if (why := _KNOWS_NOTHING.get(answer.error_code)) is not None:
            raise ConnectionFailed(str(place), BOOTSTRAP, why)
        if answer.error_code:
            raise BrokerError(answer.error_code, "Metadata", "the cluster").at(str(place))
        if not answer.brokers:
            why = "it knows of no broker, itself included: it has not heard of the cluster yet"
            raise ConnectionFailed(str(place), BOOTSTRAP, why)
        return answer

    def broker(self, node_id: int, deadline: Deadline) -> Broker:
        """The broker of that number, one try where it has to be asked for.

        Raises:
            BrokerError: there is none at the moment.
        """
        topology = self._topology
        if topology is None or node_id not in topology.brokers:
            topology = self.topology((), deadline)
        return topology.broker(node_id)

    def leaders(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, Leader]:
        """The leader of each, one try, from what is known if that covers all of them.

        Raises:
            BrokerError: for the first topic or partition that has none.
        """
        topology = self._topology_for(partitions, deadline)
        if topology is None:
            return {partition: self._leaders[partition] for partition in partitions}
        return {partition: topology.leader(partition) for partition in partitions}

    def _topology_for(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> Topology | None:
        """What tells where `partitions` are; None where `_leaders` knows all of them."""
        if self._leaders.keys() >= set(partitions):
            return None
        topology = self._topology
        topics = {partition.topic for partition in partitions}
        # An error is asked about anew: a right may have been given since.
        known = () if topology is None else topology.topics.values()
        if topology is None or not topics <= {item.name for item in known if not item.error_code}:
            topology = self.topology(topics, deadline)
        return topology

    def forget_for(self, error: KafkaProtoError) -> bool:
        """Forget what `error` shows to be out of date; whether leaders are among that."""
        self._coordinators.clear()
        if isinstance(error, BrokerError) and not error.error.refreshes_metadata:
            return False
        self.forget_leaders()
        return True

    def forget_leaders(self) -> None:
        """Ask for leaders anew. Brokers stay known, so that there is somebody to ask."""
        self._leaders = {}
        if self._topology is not None:
            self._topology = replace(self._topology, topics={})

    # Leaders

    def ask_leaders(
        self,
        what: str,
        partitions: Iterable[TopicPartition],
        make_request: Callable[[list[TopicPartition]], Any],
        read: Callable[[Any], Mapping[TopicPartition, _T | BrokerError]],
        least: int = 0,
        deadline: Deadline | None = None,
        parts: Callable[[list[TopicPartition]], Iterable[list[TopicPartition]]] = whole,
    ) -> dict[TopicPartition, _T]:
        """Ask each partition's leader, all leaders at once; again for those that moved meanwhile.

        Args:
            what: names the work in errors.
            partitions: what to ask about.
            make_request: from the partitions of one leader.
            read: an answer's result or error per partition.
            least: the lowest version of the request to use.
            deadline: as for `ask`.
            parts: cuts the partitions of one leader into requests.

        Raises:
            KafkaProtoError: as `ask`.
        """
        question: Question[TopicPartition, _T] = Question(
            what, make_request, lambda answer, _: read(answer), parts, least=least
        )
        return ask(self, question, partitions, self.leader_places, deadline)

    def leader_places(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, Endpoint | BrokerError]:
        """Where each partition's leader listens, or why it has none; one try, as `leaders`."""
        topology = self._topology_for(partitions, deadline)
        if topology is None:
            return {partition: self._leaders[partition].endpoint for partition in partitions}
        places = each_place(partitions, lambda partition: topology.leader(partition).endpoint)
        for error in () if self._waits_for_leaders else places.values():
            if isinstance(error, BrokerError) and error.code == LEADER_NOT_AVAILABLE:
                error.patience_s = 0
        return places

    def not_waiting_for_leaders(self) -> Self:
        """The same with what it knows, which waits for no election: who has no leader is refused.

        Another one, as other threads that ask through this one do wait.
        """
        hasty = self.waiting(self.config.request_timeout_s)
        hasty._waits_for_leaders = False  # noqa: SLF001 - one of this class
        return hasty

    def learn_from(self, other: Self) -> None:
        """Know of leaders what `other` does, which was the same as this one a moment ago."""
        self._leaders, self._topology = other._leaders, other._topology

    # Coordinators

    def ask_coordinator(
        self,
        what: str,
        key: str,
        request: Any,
        read: Callable[[Any], _T],
        most: int | Callable[[Connection], int | None] | None = None,
        kind: int = GROUP_KEY,
    ) -> _T:
        """Ask the coordinator of `key`; looked up again and asked again when it moved.

        Args:
            what: names the work in errors.
            key: whose coordinator: a group, or a transactional id.
            request: what to ask.
            read: turns the answer into a result or raises its BrokerError.
            most: the highest version of the request to use, or how it follows from the broker.
            kind: GROUP_KEY or TRANSACTION_KEY.
        """
        deadline = self.deadline()

        def attempt() -> _T:
            soon = deadline.sooner(self.config.request_timeout_s)
            place = self.coordinator(key, soon, kind)
            connection = self.connect(place, soon)
            highest = most(connection) if callable(most) else most
            answer = self.request(connection, request, soon, highest)
            try:
                return read(answer)
            except BrokerError as error:
                raise error.at(str(connection.endpoint)) from None

        return self.retrying(what, attempt, deadline)

    def coordinator(self, key: str, deadline: Deadline, kind: int = GROUP_KEY) -> Endpoint:
        """Where one is coordinated, as `coordinators`.

        Raises:
            BrokerError: it has no coordinator at the moment, or may not be seen.
        """
        place = self.coordinators([key], deadline, kind)[key]
        if isinstance(place, BrokerError):
            raise place
        return place

    def coordinators(
        self, keys: Collection[str], deadline: Deadline, kind: int = GROUP_KEY
    ) -> dict[str, Endpoint | BrokerError]:
        """Where each group or transactional id is coordinated, one try for those not known yet.

        Args:
            keys: the groups or transactional ids.
            deadline: of the try.
            kind: which of them they are.

        Returns:
            Per key the broker, or why none is told: there is none at the moment, or the key may
            not be seen.
        """
        missing = {key for key in keys if (kind, key) not in self._coordinators}
        found = find_coordinators(self, missing, deadline, kind) if missing else {}
        self._coordinators |= {
            (kind, key): place for key, place in found.items() if isinstance(place, Endpoint)
        }
        told = {key: found[key] if key in found else self._coordinators[kind, key] for key in keys}
        most = max(_MOST_COORDINATORS, len(keys))
        if len(self._coordinators) > most:
            self._coordinators = dict(list(self._coordinators.items())[-most:])
        return told


class _Window(Protocol):
    """A part of KafkaCluster."""

    _router: Router


def one_call(method: Callable[Concatenate[_W, _P], _T]) -> Callable[Concatenate[_W, _P], _T]:
    """A method that asks several questions, which have the time of one call of the API together."""

    @wraps(method)
    def asked(window: _W, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with window._router.one_call():  # noqa: SLF001 - of the class whose method this is
            return method(window, *args, **kwargs)

    return asked


def only(items: Sequence[_T], api: str) -> _T:
    """The one item of an answer to a question about one thing; else RemoteProtocolError."""
    if len(items) != 1:
        raise RemoteProtocolError(f"asked about one, answered {len(items)}", where=api)
    return items[0]

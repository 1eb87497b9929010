"""Who answers what: any broker, a partition's leader, a group's coordinator.

A `Router` keeps what it learned (topology, coordinators, connections) and learns anew when an error
says so. Requests to several brokers are all sent before the first answer is awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pyspark_kafkaproto.cluster.topology import (
    Broker,
    Leader,
    TopicPartition,
    Topology,
    read_topology,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Connections,
    Deadline,
    Endpoint,
    retrying,
)
from pyspark_kafkaproto.net.retry import is_retriable

_T = TypeVar("_T")

GROUP_KEY = 0

_REPLICA_NOT_AVAILABLE = 9


class Router:
    """Finds the broker to ask and asks it.

    Args:
        config: the client's configuration.
        connections: shared ones; None makes its own.
        leaders: partitions' leaders that somebody has looked up already.
    """

    def __init__(
        self,
        config: ClientConfig,
        connections: Connections | None = None,
        leaders: Mapping[TopicPartition, Leader] | None = None,
    ) -> None:
        self.config = config
        self.connections = connections or Connections(config)
        self._leaders = dict(leaders or {})
        self._told = tuple(dict.fromkeys(item.endpoint for item in self._leaders.values()))
        self._silent: set[Endpoint] = set()  # asked in vain the last time: asked last
        self._topology: Topology | None = None
        self._coordinators: dict[str, Endpoint] = {}

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    def deadline(self) -> Deadline:
        """The end of one call of the API (default.api.timeout.ms)."""
        return Deadline.after(self.config.default_api_timeout_s)

    # Any broker

    def ask_any(self, request: Any, deadline: Deadline) -> Any:
        """One round over the brokers: the first answer, known ones first, then the bootstrap ones.

        Raises:
            ConnectionFailed: names every broker that was tried and why it failed. Where nobody has
                ever met the cluster it is worth a retry only for
                socket.connection.setup.timeout.ms, and not at all where no name resolves: a wrong
                address should not take a minute.
        """
        failures: dict[Endpoint, KafkaProtoError] = {}
        for endpoint in self._candidates():
            try:
                answer = self._ask(endpoint, request, deadline)
            except (ConnectionFailed, DeadlineExceeded) as error:
                failures[endpoint] = error
                self._silent.add(endpoint)
                if deadline.has_passed:
                    break
            else:
                self._silent.discard(endpoint)
                return answer
        failed = _all_failed(failures)
        if self._topology is None and not self._told:
            is_misspelt = getattr(failed, "stage", "") == "resolve"
            failed.patience_s = 0.0 if is_misspelt else self.config.connection_setup_timeout_s
        raise failed

    def _candidates(self) -> list[Endpoint]:
        known = [] if self._topology is None else self._topology.brokers.values()
        endpoints = (broker.endpoint for broker in known)
        every = dict.fromkeys((*endpoints, *self._told, *self.config.bootstrap_servers))
        return sorted(every, key=self._silent.__contains__)

    def _ask(self, endpoint: Endpoint, request: Any, deadline: Deadline) -> Any:
        soon = deadline.sooner(self.config.request_timeout_s)
        return self.connections.get(endpoint, soon).request(request, soon)

    def retrying(self, what: str, attempt: Callable[[], _T], deadline: Deadline) -> _T:
        """`attempt` until it succeeds; what an error shows to be out of date is learned anew."""
        return retrying(what, attempt, deadline, self.config.backoff, self.forget_for)

    # Topology

    def topology(self, topics: Collection[str] | None, deadline: Deadline) -> Topology:
        """Fresh metadata of `topics` (None: of all), one try. Never creates a topic."""
        request = MetadataRequest(
            topics=None
            if topics is None
            else tuple(MetadataRequest.Topic(name=name) for name in sorted(topics)),
            allow_auto_topic_creation=False,
        )
        answer = self.ask_any(request, deadline)
        if answer.error_code:
            raise BrokerError(answer.error_code, "Metadata", "the cluster")
        self._topology = read_topology(answer)
        return self._topology

    def broker(self, node_id: int, deadline: Deadline) -> Broker:
        """The broker of that number, one try where it has to be asked for.

        Raises:
            BrokerError: there is none at the moment.
        """
        topology = self._topology
        if topology is None or node_id not in topology.brokers:
            topology = self.topology((), deadline)
        if node_id not in topology.brokers:
            raise BrokerError(_REPLICA_NOT_AVAILABLE, "Metadata", f"broker {node_id}")
        return topology.brokers[node_id]

    def leaders(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, Leader]:
        """The leader of each, one try, from what is known if that covers all of them.

        Raises:
            BrokerError: for the first topic or partition that has none.
        """
        if self._leaders.keys() >= set(partitions):
            return {partition: self._leaders[partition] for partition in partitions}
        topology = self._topology
        topics = {partition.topic for partition in partitions}
        if topology is None or not topics <= topology.topics.keys():
            topology = self.topology(topics, deadline)
        return {partition: topology.leader(partition) for partition in partitions}

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
    ) -> dict[TopicPartition, _T]:
        """Ask each partition's leader, all leaders at once; again for those that moved meanwhile.

        Args:
            what: names the work in errors.
            partitions: what to ask about.
            make_request: from the partitions of one leader.
            read: an answer's result or error per partition.

        Raises:
            BrokerError: the first error that cannot be retried; `usable` has the results so far.
            RemoteProtocolError: an answer is not about what was asked.
        """
        deadline = self.deadline()
        wanted = set(partitions)
        done: dict[TopicPartition, _T] = {}

        def attempt() -> None:
            missing = wanted - done.keys()
            by_leader: dict[Endpoint, list[TopicPartition]] = {}
            for partition, leader in self.leaders(missing, deadline).items():
                by_leader.setdefault(leader.endpoint, []).append(partition)
            requests = {place: make_request(sorted(own)) for place, own in by_leader.items()}
            failures: list[KafkaProtoError] = []
            for place, answer in self.ask_each(requests, deadline).items():
                if isinstance(answer, KafkaProtoError):
                    failures.append(answer)
                    continue
                results = read(answer)
                _check_complete(what, place, by_leader[place], results)
                for partition, result in results.items():
                    if isinstance(result, BrokerError):
                        failures.append(result.at(str(place)))
                    else:
                        done[partition] = result
            _raise_worst(failures, done)

        self.retrying(what, attempt, deadline)
        return done

    def ask_each(
        self, requests: Mapping[Endpoint, Any], deadline: Deadline
    ) -> dict[Endpoint, Any | KafkaProtoError]:
        """One request to each broker, all sent before the first answer is awaited."""
        soon = deadline.sooner(self.config.request_timeout_s)
        answers: dict[Endpoint, Any | KafkaProtoError] = {}
        asked: dict[Endpoint, Connection] = {}
        try:
            for endpoint, request in requests.items():
                try:
                    connection = self.connections.get(endpoint, soon)
                    connection.send(request, soon)
                    asked[endpoint] = connection
                except KafkaProtoError as error:
                    answers[endpoint] = error
            for endpoint, connection in asked.items():
                try:
                    answers[endpoint] = connection.receive(soon).message
                except KafkaProtoError as error:
                    answers[endpoint] = error
        finally:
            for connection in asked.values():
                if connection.in_flight:  # only when interrupted, by Ctrl-C for one
                    connection.close()
        return answers

    # Coordinators

    def ask_coordinator(
        self,
        what: str,
        group: str,
        request: Any,
        read: Callable[[Any], _T],
        most: int | None = None,
    ) -> _T:
        """Ask the coordinator of `group`; looked up again and asked again when it moved.

        Args:
            what: names the work in errors.
            group: whose coordinator.
            request: what to ask.
            read: turns the answer into a result or raises its BrokerError.
            most: the highest version of the request to use.
        """
        deadline = self.deadline()

        def attempt() -> _T:
            soon = deadline.sooner(self.config.request_timeout_s)
            connection = self.connections.get(self._coordinator(group, soon), soon)
            answer = connection.request(request, soon, most)
            try:
                return read(answer)
            except BrokerError as error:
                raise error.at(str(connection.endpoint)) from None

        return self.retrying(what, attempt, deadline)

    def _coordinator(self, group: str, deadline: Deadline) -> Endpoint:
        if group not in self._coordinators:
            request = FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=(group,))
            found = only(self.ask_any(request, deadline).coordinators, "FindCoordinator")
            if found.error_code:
                subject = f"group {group!r}"
                text = found.error_message or ""
                raise BrokerError(found.error_code, "FindCoordinator", subject, text)
            self._coordinators[group] = Endpoint(found.host, found.port)
        return self._coordinators[group]


def _raise_worst(failures: list[KafkaProtoError], done: dict[Any, Any]) -> None:
    """Raise the first failure that no retry mends, else the first; nothing if there is none."""
    if not failures:
        return
    worst = next((error for error in failures if not is_retriable(error)), failures[0])
    if isinstance(worst, BrokerError):
        worst.usable = dict(done)
    raise worst


def only(items: Sequence[_T], api: str) -> _T:
    """The one item of an answer to a question about one thing; else RemoteProtocolError."""
    if len(items) != 1:
        raise RemoteProtocolError(f"asked about one, answered {len(items)}", where=api)
    return items[0]


def _check_complete(
    what: str,
    place: Endpoint,
    asked: Collection[TopicPartition],
    answered: Collection[TopicPartition],
) -> None:
    """An answer that leaves something out would be waited for, or taken for nothing there."""
    wrong = set(asked) ^ set(answered)
    if wrong:
        names = ", ".join(sorted(map(str, wrong)))
        raise RemoteProtocolError(
            f"{names}: not asked about, or not answered", where=f"{what}, broker {place}"
        )


def _all_failed(failures: Mapping[Endpoint, KafkaProtoError]) -> KafkaProtoError:
    """One error for a round in which no broker answered."""
    if len(failures) == 1:
        return next(iter(failures.values()))
    stages = {getattr(error, "stage", "receive") for error in failures.values()}
    stage = stages.pop() if len(stages) == 1 else "bootstrap"
    reasons = (f"{place}: {getattr(error, 'reason', error)}" for place, error in failures.items())
    return ConnectionFailed(", ".join(map(str, failures)), stage, "; ".join(reasons))

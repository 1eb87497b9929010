"""Kafka brokers that misbehave on request: real TCP, real frames, answers scripted per API.

For what a real broker cannot be made to do. A `FakeCluster` listens with one socket per node and
answers ApiVersions, Metadata, FindCoordinator, InitProducerId, Produce, Fetch, ListOffsets and
OffsetForLeaderEpoch by itself (the last four from `logs`); everything else is said by the test:

    with FakeCluster({"orders": 2}) as cluster:
        cluster.on("ListOffsets", close(), ListOffsetsResponse(...))   # one answer after the other

An answer is a response, a `Fault`, a function of the `Call`, or DEFAULT; the last one given stays.
Handlers run one at a time, so that what they note needs no lock.
"""

from __future__ import annotations

import hashlib
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from pyspark_kafkaproto.messages import find_api, request_class
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorResponse
from pyspark_kafkaproto.messages.list_groups import ListGroupsResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.wire.frame import (
    RequestHeader,
    decode_request,
    encode_response,
    peek_request,
)
from tests import fake_log, fake_produce
from tests.fake_log import FakeLog
from tests.fake_sessions import FakeSessions, Session, is_farewell

# What the fake nodes offer unless a test says otherwise: a broker of the 4.x line.
VERSIONS = {
    "Produce": (0, 12),
    "InitProducerId": (0, 5),
    "Fetch": (4, 17),
    "ListOffsets": (1, 10),
    "OffsetForLeaderEpoch": (2, 4),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "FindCoordinator": (0, 6),
    "ApiVersions": (0, 4),
    "ListGroups": (0, 5),
    "DescribeGroups": (0, 6),
    "ConsumerGroupDescribe": (0, 1),
    "ShareGroupDescribe": (1, 1),
    "StreamsGroupDescribe": (0, 1),
    "DescribeShareGroupOffsets": (0, 1),
    "AlterShareGroupOffsets": (0, 0),
    "DeleteShareGroupOffsets": (0, 0),
    "DeleteGroups": (0, 2),
    "OffsetDelete": (0, 0),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "CreatePartitions": (0, 3),
    "DeleteRecords": (0, 2),
    "DescribeConfigs": (1, 4),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "DescribeUserScramCredentials": (0, 0),
    "AlterUserScramCredentials": (0, 0),
    "CreateDelegationToken": (1, 3),
    "RenewDelegationToken": (1, 2),
    "ExpireDelegationToken": (1, 2),
    "DescribeDelegationToken": (1, 3),
    "DescribeClientQuotas": (0, 1),
    "AlterClientQuotas": (0, 1),
    "AlterPartitionReassignments": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "ElectLeaders": (0, 2),
    "DescribeLogDirs": (1, 5),
    "AlterReplicaLogDirs": (1, 2),
    "DescribeQuorum": (0, 2),
    "UpdateFeatures": (0, 2),
    "UnregisterBroker": (0, 0),
    "DescribeProducers": (0, 0),
    "ListTransactions": (0, 2),
    "DescribeTransactions": (0, 0),
    "WriteTxnMarkers": (1, 2),
    "ListConfigResources": (0, 1),
}

_UNKNOWN_TOPIC = 3
_UNKNOWN_TOPIC_ID = 100
_REST_S = 10.0  # a test that has failed sets nothing
_UNSUPPORTED_VERSION = 35


class Call(NamedTuple):
    """A request as it arrived: at which node, on its how-manieth connection."""

    node_id: int
    connection: int
    header: RequestHeader
    request: Any

    @property
    def api(self) -> str:
        return self.request.API_NAME


@dataclass(frozen=True, slots=True)
class Fault:
    """Not an answer, or not a right one: the bytes of `response`, damaged; then perhaps the end.

    With `rest_after` the second half of them comes when that is set.
    """

    response: Any = None
    # In no test's name: processes that share the tests have to agree on those.
    damage: Callable[[bytes], bytes] = field(default=lambda frame: frame, repr=False)
    closes: bool = False
    version: int | None = None
    rest_after: threading.Event | None = field(default=None, repr=False)


DEFAULT = None
STALL = Fault()


def close() -> Fault:
    """End the connection instead of answering."""
    return Fault(closes=True)


def cut(response: Any, keep_bytes: int) -> Fault:
    """The first bytes of the answer's frame, then the end."""
    return Fault(response, lambda frame: frame[:keep_bytes], closes=True)


def raw(data: bytes) -> Fault:
    """These bytes, whatever they are."""
    return Fault(damage=lambda _: data)


def wrong_correlation(response: Any) -> Fault:
    """The answer with the next request's correlation id."""
    return Fault(response, lambda frame: frame[:7] + bytes([frame[7] + 1]) + frame[8:])


def in_version(response: Any, version: int) -> Fault:
    """The answer in the shape of another version than the request's."""
    return Fault(response, version=version)


Answer = Any  # a Response, a Fault, DEFAULT, or a function from Call to one of them


def late(cluster: FakeCluster, answer: Answer, by_s: float = 0.25) -> Callable[[Call], Answer]:
    """This answer, so much later."""

    def say(call: Call) -> Answer:
        cluster.hold(lambda: False, by_s)
        return answer(call) if callable(answer) else answer

    return say


@dataclass(slots=True)
class FakeTopic:
    """A topic in the fake cluster's metadata; everything may be changed while it runs."""

    topic_id: bytes
    leaders: list[int]
    epochs: list[int]
    error_code: int = 0
    is_internal: bool = False
    partition_errors: dict[int, int] = field(default_factory=dict)
    replicas: tuple[int, ...] = (1, 2)

    def move(self, partition: int, node_id: int) -> None:
        """Elect another leader, in a new epoch."""
        self.leaders[partition] = node_id
        self.epochs[partition] += 1


_names: dict[bytes, str] = {}


def topic_id_of(name: str) -> bytes:
    """The id that a topic has in every fake cluster."""
    topic_id = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    _names[topic_id] = name
    return topic_id


def name_of(topic: Any) -> str:
    """What a topic of a request is called, which may name it by the id of above."""
    return topic.name or _names[topic.topic_id]


class FakeCluster:
    """Nodes 1 … `nodes` with `topics` (name to number of partitions), all led by node 1.

    Attributes:
        topics: what metadata says; change it at will.
        calls: every request that arrived, in order.
        logs: what each partition holds, by topic and number.
        coordinators: group to node id; who is not named has node 1.
        controller: the node that metadata names as controller.
        advertised: the address of each node in metadata, where it is not the real one.
        versions: API name to (least, most) that the nodes offer; APIs may be left out.
        sessions: what they remember of Fetches. `calls` has each with all that it asks for.
        on_end: called with a node and the number of one of its connections once that has ended,
            while nobody is answered.
    """

    def __init__(self, topics: Mapping[str, int] | None = None, nodes: int = 1) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.logs: dict[tuple[str, int], FakeLog] = {}
        for name, count in (topics or {}).items():
            self.add_topic(name, count)
        self.calls: list[Call] = []
        self.producer_ids = 1000
        self.coordinators: dict[str, int] = defaultdict(lambda: 1)
        self.controller = 1
        self.advertised: dict[int, tuple[str, int]] = {}
        self.versions = dict(VERSIONS)
        self.sessions = FakeSessions()
        self.on_end: Callable[[int, int], None] = lambda _node_id, _connection: None
        self._scripts: dict[tuple[str, int | None], list[Answer]] = {}
        self._changed = threading.Condition()
        self._errors: list[Exception] = []
        self.nodes = {node_id: _Node(node_id, self) for node_id in range(1, nodes + 1)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.close()
        if self._errors:
            raise self._errors[0]

    @property
    def bootstrap_servers(self) -> str:
        """All nodes' addresses."""
        return ",".join(self.address(node_id) for node_id in self.nodes)

    def add_topic(self, name: str, count: int = 1) -> None:
        """Make a topic with nothing in it; node 1 leads it."""
        self.topics[name] = FakeTopic(topic_id_of(name), [1] * count, [0] * count)
        self.logs |= {(name, number): FakeLog() for number in range(count)}

    def make_again(self, name: str, count: int = 1) -> None:
        """Delete a topic, and make another one of its name, with nothing in it."""
        self.add_topic(name, count)
        self.topics[name].topic_id = topic_id_of(f"{name} again")

    def address(self, node_id: int = 1) -> str:
        """One node's address."""
        return f"127.0.0.1:{self.nodes[node_id].port}"

    def places(self) -> dict[int, tuple[str, int]]:
        """Host and port of each node as metadata has them."""
        real = {node_id: ("127.0.0.1", node.port) for node_id, node in self.nodes.items()}
        return real | self.advertised

    def on(self, api: str, *answers: Answer, node: int | None = None) -> None:
        """From now on answer `api` so, at all nodes or at one; the last answer is repeated."""
        with self._changed:
            self._scripts[api, node] = list(answers)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Nobody is answered meanwhile: what is changed here is changed together."""
        with self._changed:
            yield

    def hold(self, is_over: Callable[[], bool], most_s: float) -> bool:
        """Inside of an answer: keep it until `is_over()`, while others are given; False: too long.

        It is looked at with each request that comes.
        """
        return self._changed.wait_for(is_over, most_s)

    def stop(self, node_id: int) -> None:
        """Stop a node: its connections end, and nothing listens there any more."""
        self.nodes[node_id].stop()

    def hang_up(self, node_id: int = 1) -> None:
        """End a node's connections; it goes on listening."""
        self.nodes[node_id].hang_up()

    def wait_until_left(self, timeout_s: float = 30.0) -> None:
        """Return once every connection has ended, and what had been asked over it was answered."""
        for node in self.nodes.values():
            node.wait_until_left(timeout_s)

    def asked(self, api: str, node: int | None = None) -> list[Any]:
        """The requests of `api` that arrived."""
        with self._changed:
            return [
                call.request
                for call in self.calls
                if call.api == api and node in (None, call.node_id)
            ]

    def wait_for_call(self, api: str, count: int = 1, timeout_s: float = 30.0) -> None:
        """Return once `count` requests of `api` have arrived."""
        with self._changed:
            arrived = self._changed.wait_for(
                lambda: sum(call.api == api for call in self.calls) >= count, timeout_s
            )
        assert arrived, f"{api} was not asked {count} times within {timeout_s} s"

    def answer(self, call: Call) -> Any:
        """What the script, or else the default, says to a request."""
        with self._changed:
            session = None
            if call.api == "Fetch":
                version = call.header.api_version
                session = self.sessions.of(call.node_id, version, call.request)
                if is_farewell(call.request):
                    return FetchResponse()  # nothing is asked: no script is meant
            if isinstance(session, Session):
                call = call._replace(request=session.widened(call.request))
            self.calls.append(call)
            self._changed.notify_all()
            if isinstance(session, int):
                return FetchResponse(error_code=session)
            try:
                said = self._say(call)
                return said if session is None else self._in_session(session, said)
            except Exception as error:  # noqa: BLE001 - the test raises it, at the cluster's end
                self._errors.append(error)
                return close()

    def _say(self, call: Call) -> Any:
        script = self._scripts.get((call.api, call.node_id)) or self._scripts.get(
            (call.api, None), [DEFAULT]
        )
        said = script.pop(0) if len(script) > 1 else script[0]
        said = said(call) if callable(said) else said
        return _DEFAULTS[call.api](self, call) if said is DEFAULT else said

    def _in_session(self, session: Session, said: Any) -> Any:
        if isinstance(said, FetchResponse):
            return self.sessions.answered(session, said)
        if isinstance(said, Fault) and isinstance(said.response, FetchResponse):
            return replace(said, response=self.sessions.answered(session, said.response))
        return said


class _Node:
    """One listening socket, and a thread for it and for each connection."""

    def __init__(self, node_id: int, cluster: FakeCluster) -> None:
        self.node_id = node_id
        self._cluster = cluster
        self._listener = socket.create_server(("127.0.0.1", 0))
        # Its connections have it, too, as Kafka's do: else the second of two answers waits until
        # the first one is acknowledged, which takes systems their time.
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        self._place: socket.socket | None = None  # holds the port of a node that is stopped
        self._lock = threading.Lock()
        self._is_stopped = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def hang_up(self) -> None:
        with self._lock:
            _shut_down(self._open[1:])

    def wait_until_left(self, timeout_s: float) -> None:
        with self._lock:
            serving = self._threads[1:]
        for thread in serving:
            thread.join(timeout_s)
            assert not thread.is_alive(), "a connection has not ended"

    def stop(self) -> None:
        """As `close`, but nobody else is given the port: it would hear from clients of this one."""
        self.close()
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", self.port))

    def close(self) -> None:
        with self._lock:
            self._is_stopped = True
            _shut_down(self._open)
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()
        for sock in self._open:
            sock.close()
        if self._place is not None:
            self._place.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:  # stopped
                return
            with self._lock:
                self._open.append(sock)
                if self._is_stopped:
                    return
                number = len(self._open) - 1
                thread = threading.Thread(target=self._serve, args=(sock, number), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        with suppress(OSError):  # the client went away, or the test has ended
            while (payload := _receive_frame(sock)) is not None:
                if not self._reply(sock, number, payload):
                    sock.shutdown(socket.SHUT_RDWR)
                    break
        with self._cluster.at_once():
            self._cluster.on_end(self.node_id, number)

    def _reply(self, sock: socket.socket, number: int, payload: bytes) -> bool:
        """Answer one request; whether the connection goes on."""
        key, version, correlation_id = peek_request(payload)
        least, most = self._cluster.versions.get(find_api(key).name, (1, 0))
        if not least <= version <= most:
            # Only ApiVersions has an answer to that; for the rest Kafka ends the connection.
            if find_api(key).name != "ApiVersions":
                return False
            refusal = ApiVersionsResponse(
                error_code=_UNSUPPORTED_VERSION, api_keys=_offered({"ApiVersions": (least, most)})
            )
            sock.sendall(encode_response(refusal, 0, correlation_id))
            return True
        header, request = decode_request(request_class(key), payload)
        said = self._cluster.answer(Call(self.node_id, number, header, request))
        fault = said if isinstance(said, Fault) else Fault(said)
        frame = b""
        if fault.response is not None:
            shape = version if fault.version is None else fault.version
            frame = encode_response(fault.response, shape, correlation_id)
        sent = fault.damage(frame)
        if fault.rest_after is not None:
            sock.sendall(sent[: len(sent) // 2])
            sent = sent[len(sent) // 2 :]
            fault.rest_after.wait(_REST_S)
        sock.sendall(sent)
        return not fault.closes


def _shut_down(sockets: Iterable[socket.socket]) -> None:
    for sock in sockets:
        with suppress(OSError):  # the peer may have ended it first
            sock.shutdown(socket.SHUT_RDWR)


def _receive_frame(sock: socket.socket) -> bytes | None:
    """One request without its size; None when the client has closed."""
    prefix = sock.recv(4, socket.MSG_WAITALL)
    if len(prefix) < 4:
        return None
    payload = sock.recv(int.from_bytes(prefix), socket.MSG_WAITALL)
    return payload if len(payload) == int.from_bytes(prefix) else None


def _offered(versions: Mapping[str, tuple[int, int]]) -> tuple[Any, ...]:
    return tuple(
        ApiVersionsResponse.ApiVersion(
            api_key=find_api(name).key, min_version=least, max_version=most
        )
        for name, (least, most) in versions.items()
    )


def api_versions(cluster: FakeCluster, call: Call) -> ApiVersionsResponse:
    """The default answer to ApiVersions."""
    del call
    return ApiVersionsResponse(api_keys=_offered(cluster.versions))


def metadata(cluster: FakeCluster, call: Call) -> MetadataResponse:
    """The default answer to Metadata: what `cluster.topics` says at this moment."""
    asked = call.request.topics
    found: list[tuple[str | None, FakeTopic | None]] = list(cluster.topics.items())
    if asked is not None:
        by_id = {topic.topic_id: (name, topic) for name, topic in found}
        found = [
            (item.name, cluster.topics.get(item.name))
            if item.name is not None
            else by_id.get(item.topic_id, (None, None))
            for item in asked
        ]
    return MetadataResponse(
        cluster_id="fake",
        controller_id=cluster.controller,
        brokers=tuple(
            MetadataResponse.Broker(node_id=node_id, host=host, port=port)
            for node_id, (host, port) in cluster.places().items()
        ),
        topics=tuple(_described(name, topic) for name, topic in found),
    )


def _described(name: str | None, topic: FakeTopic | None) -> MetadataResponse.Topic:
    if topic is None:
        code = _UNKNOWN_TOPIC_ID if name is None else _UNKNOWN_TOPIC
        return MetadataResponse.Topic(name=name, error_code=code)
    return MetadataResponse.Topic(
        name=name,
        error_code=topic.error_code,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            MetadataResponse.Topic.Partition(
                error_code=topic.partition_errors.get(number, 0),
                partition_index=number,
                leader_id=leader,
                leader_epoch=topic.epochs[number],
                replica_nodes=topic.replicas,
                isr_nodes=(1,),
            )
            for number, leader in enumerate(topic.leaders)
        ),
    )


def no_groups(cluster: FakeCluster, call: Call) -> ListGroupsResponse:
    """What a broker lists that coordinates nothing."""
    del cluster, call
    return ListGroupsResponse()


def find_coordinator(cluster: FakeCluster, call: Call) -> FindCoordinatorResponse:
    """The default answer to FindCoordinator: what `cluster.coordinators` says."""
    groups = call.request.coordinator_keys
    if call.header.api_version < 4:
        port = cluster.nodes[cluster.coordinators[call.request.key]].port
        node_id = cluster.coordinators[call.request.key]
        return FindCoordinatorResponse(node_id=node_id, host="127.0.0.1", port=port)
    nodes = [(group, cluster.coordinators[group]) for group in groups]
    return FindCoordinatorResponse(
        coordinators=tuple(
            FindCoordinatorResponse.Coordinator(
                key=group, node_id=node_id, host="127.0.0.1", port=cluster.nodes[node_id].port
            )
            for group, node_id in nodes
        )
    )


_DEFAULTS = {
    "Produce": fake_produce.produce,
    "InitProducerId": fake_produce.init_producer_id,
    "Fetch": fake_log.fetch,
    "ListOffsets": fake_log.list_offsets,
    "OffsetForLeaderEpoch": fake_log.epoch_ends,
    "ApiVersions": api_versions,
    "Metadata": metadata,
    "FindCoordinator": find_coordinator,
    "ListGroups": no_groups,
}

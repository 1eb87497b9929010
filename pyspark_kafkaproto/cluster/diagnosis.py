"""The doctor: the way of a client, hop by hop, until one is broken; and what to do about it.

Each hop is tried for itself, on a connection of its own, once: what a retry would hide is what is
looked for here. Coordinators alone are asked again: a cluster that never had a group has none yet.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import NamedTuple

from pyspark_kafkaproto.cluster.advertised import advertised_advice
from pyspark_kafkaproto.cluster.coordinators import GROUP_KEY, LAST_BY_ONE_KEY, Found, the_one
from pyspark_kafkaproto.cluster.health import find_problems
from pyspark_kafkaproto.cluster.routing import only
from pyspark_kafkaproto.cluster.topology import Topology, read_topology
from pyspark_kafkaproto.error_codes import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    error_code,
)
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    KafkaProtoError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsRequest
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from pyspark_kafkaproto.net.transport import TLS_STAGE, open_socket

OK = "ok"
BROKEN = "broken"
NOT_REACHED = "not reached"
NOT_USED = "not used"

HOPS = ("resolve", "connect", "TLS", "SASL", "versions")

_ADVICE = {
    "resolve": "check the name, or make it known to this machine (DNS, /etc/hosts)",
    "connect": "is the broker running, and may this machine reach that port (firewall, network)?",
    "TLS": "check security.protocol, ssl.truststore.location and the name in the certificate",
    "SASL": "check security.protocol, sasl.mechanism and sasl.jaas.config",
    "versions": "is this a Kafka listener, and does security.protocol fit it?",
    "login": "does this listener want a login? Then set security.protocol, sasl.mechanism and "
    "sasl.jaas.config",
    "coordinator": "is the topic __consumer_offsets there, with leaders? Brokers make it if there "
    "are as many of them as offsets.topic.replication.factor says",
    "metadata": "a broker that answers but knows no cluster is starting, or cut off from it",
}
_HOP_OF_STAGE = {
    "resolve": "resolve",
    "connect": "connect",
    TLS_STAGE: "TLS",
    "token": "SASL",
}

_NOT_TOLD = -(2**31)
_RIGHTS = {3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE"}
_READ = "READ"
# A cluster makes the topic of offsets when a coordinator is first asked for, and loads it then.
_NOT_YET = frozenset({COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR})
_FIRST_GROUP_S = 5.0
_AGAIN_S = 0.1
_EVERY_GROUP_VERSION = 5  # from 6 on a group that there is not is an error without rights


class Finding(NamedTuple):
    """One hop: what was tried on what, how it went, what was seen, what to do where it is broken.

    `result` is ok, broken, not reached (a hop before it is broken), or not used.
    """

    hop: str
    subject: str
    result: str
    detail: str
    advice: str = ""


def diagnose(
    config: ClientConfig, topics: Collection[str] = (), groups: Collection[str] = ()
) -> list[Finding]:
    """Every hop from this process to the cluster, and the rights on `topics` and `groups`."""
    with ExitStack() as held:
        findings: list[Finding] = []
        reached: dict[Endpoint, Connection] = {}
        for place in config.bootstrap_servers:
            connection, found = _try_broker(place, config)
            findings += found
            if connection is not None:
                held.callback(connection.close)
                reached[place] = connection
        for connection in list(reached.values())[:1]:
            findings += _try_cluster(connection, config, set(reached), topics)
            patience = Deadline.after(_FIRST_GROUP_S)
            for group in groups:
                findings += _try_group(connection, config, group, patience)
        return findings


def _try_broker(place: Endpoint, config: ClientConfig) -> tuple[Connection | None, list[Finding]]:
    """The five hops to one bootstrap server."""
    began = time.monotonic()
    try:
        connection = Connection.open(
            place, config, Deadline.after(config.connection_setup_timeout_s)
        )
    except KafkaProtoError as error:
        seen = _before_tls(error, place, config)
        return None, list(_until(_broken_hop(seen), place, config, str(seen)))
    took_ms = (time.monotonic() - began) * 1000
    return connection, list(
        _until(None, place, config, f"agreed on; the whole way took {took_ms:.0f} ms")
    )


def _before_tls(error: KafkaProtoError, place: Endpoint, config: ClientConfig) -> KafkaProtoError:
    """What is broken before TLS, whose files are read before anybody is asked; else `error`."""
    if isinstance(error, ConfigError) and _broken_hop(error) == "TLS":
        try:
            open_socket(place, Deadline.after(config.connection_setup_timeout_s)).close()
        except KafkaProtoError as earlier:
            return earlier
    return error


def _until(
    broken: str | None, place: Endpoint, config: ClientConfig, detail: str
) -> Iterator[Finding]:
    """The hops to a broker: fine before the broken one, not reached behind it."""
    result = OK
    for hop in HOPS:
        if hop == broken:
            yield Finding(hop, str(place), BROKEN, detail, _ADVICE[hop])
            result = NOT_REACHED
        elif not _is_used(hop, config):
            yield Finding(
                hop, str(place), NOT_USED, f"security.protocol={config.security_protocol}"
            )
        else:
            is_end = hop == HOPS[-1] and result == OK
            yield Finding(hop, str(place), result, detail if is_end else "")


def _is_used(hop: str, config: ClientConfig) -> bool:
    protocol = str(config.security_protocol)
    return {"TLS": protocol.endswith("SSL"), "SASL": protocol.startswith("SASL")}.get(hop, True)


def _broken_hop(error: KafkaProtoError) -> str:
    """The hop at which a connection failed."""
    if isinstance(error, AuthenticationFailed):
        return "TLS" if error.mechanism in ("TLS", "SSL") else "SASL"
    if isinstance(error, ConnectionFailed):
        return _HOP_OF_STAGE.get(error.stage, "versions")
    if isinstance(error, ConfigError):  # a file, or a token's function, that this machine has not
        parts = error.option.split(".")
        return "TLS" if "ssl" in parts else "SASL" if "sasl" in parts else "versions"
    return "versions"


# The cluster behind


def _try_cluster(
    connection: Connection, config: ClientConfig, reached: set[Endpoint], topics: Collection[str]
) -> Iterator[Finding]:
    request = MetadataRequest(
        topics=tuple(MetadataRequest.Topic(name=name) for name in sorted(topics)),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    subject = str(connection.endpoint)
    try:
        answer: MetadataResponse = connection.request(
            request, Deadline.after(config.request_timeout_s)
        )
    except KafkaProtoError as error:
        # Versions are told to everybody: who does not log in is hung up on here.
        is_refused = isinstance(error, ConnectionFailed) and not _is_used("SASL", config)
        advice = _ADVICE["login" if is_refused else "metadata"]
        yield Finding("metadata", subject, BROKEN, str(error), advice)
        return
    topology = read_topology(answer)
    detail = f"cluster {topology.cluster_id}, brokers {sorted(topology.brokers)}"
    if topology.brokers:
        yield Finding("metadata", subject, OK, detail)
    else:
        yield Finding("metadata", subject, BROKEN, detail, _ADVICE["metadata"])
    yield from _try_advertised(topology, config, reached, connection.endpoint)
    for topic in answer.topics:
        yield _topic_rights(topic)
    for problem in find_problems(topology):
        if not problem.subject.startswith("topic "):  # its error stands in the line of its rights
            yield Finding("replicas", problem.subject, BROKEN, problem.what, problem.meaning)


def _try_advertised(
    topology: Topology, config: ClientConfig, reached: set[Endpoint], asked: Endpoint
) -> Iterator[Finding]:
    for node_id, broker in sorted(topology.brokers.items()):
        subject = f"broker {node_id} at {broker.endpoint}"
        if broker.endpoint in reached:
            yield Finding("advertised address", subject, OK, "as it was asked for")
            continue
        deadline = Deadline.after(config.connection_setup_timeout_s)
        try:
            Connection.open(broker.endpoint, config, deadline).close()
        except KafkaProtoError as error:
            advice = (
                _ADVICE[_broken_hop(error)]
                if broker.endpoint in config.bootstrap_servers
                else advertised_advice(broker.endpoint, [asked], str(config.security_protocol))
            )
            yield Finding("advertised address", subject, BROKEN, str(error), advice)
        else:
            yield Finding("advertised address", subject, OK, "reached")


def _topic_rights(topic: MetadataResponse.Topic) -> Finding:
    subject = f"topic {topic.name!r}"
    if topic.error_code:
        row = error_code(topic.error_code)
        advice = "check its name; or this user lacks the right DESCRIBE on it"
        return Finding("rights", subject, BROKEN, f"{row.name} ({row.code})", advice)
    return _rights("topic", topic.name or "", topic.topic_authorized_operations)


def _rights(kind: str, name: str, bits: int) -> Finding:
    subject = f"{kind} {name!r}"
    if bits == _NOT_TOLD:
        return Finding("rights", subject, OK, "seen; this broker does not tell the rights")
    rights = [own for bit, own in _RIGHTS.items() if bits >> bit & 1]
    if _READ in rights:
        return Finding("rights", subject, OK, ", ".join(rights))
    detail = f"READ is missing; there is {', '.join(rights) or 'none'}"
    return Finding("rights", subject, BROKEN, detail, _how_to_allow(kind, name))


def _how_to_allow(kind: str, name: str) -> str:
    resource = f"--{kind} {shlex.quote(name)}"
    return f"kafkaproto acls add --principal User:… --operation read {resource}"


def _try_group(
    connection: Connection, config: ClientConfig, group: str, patience: Deadline
) -> list[Finding]:
    """Where the group is coordinated, and what this user may do with it."""
    if not connection.is_open:
        return [Finding("coordinator", f"group {group!r}", NOT_REACHED, "")]
    while True:
        findings: list[Finding] = []
        try:
            code = _ask_about_group(connection, config, group, findings)
        except KafkaProtoError as error:
            subject = f"group {group!r}"
            broken = Finding("coordinator", subject, BROKEN, str(error), _ADVICE["connect"])
            return [*findings, broken]
        if code not in _NOT_YET or patience.has_passed:
            return findings
        time.sleep(_AGAIN_S)


def _ask_about_group(
    connection: Connection, config: ClientConfig, group: str, findings: list[Finding]
) -> int:
    """Add what is found to `findings`; the error code of what was refused, 0 if nothing was."""
    subject = f"group {group!r}"
    found = _coordinator(connection, group, Deadline.after(config.request_timeout_s))
    if found.error_code:
        findings.append(_refused_group("coordinator", group, found.error_code))
        return found.error_code
    place = Endpoint(found.host, found.port)
    findings.append(Finding("coordinator", subject, OK, f"broker {found.node_id} at {place}"))
    deadline = Deadline.after(config.request_timeout_s)
    coordinator = Connection.open(place, config, deadline)
    with ExitStack() as held:
        held.callback(coordinator.close)
        request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=True)
        (described,) = coordinator.request(request, deadline, _EVERY_GROUP_VERSION).groups
    code: int = described.error_code
    if code:
        findings.append(_refused_group("rights", group, code))
    else:
        findings.append(_rights("group", group, described.authorized_operations))
    return code


def _coordinator(connection: Connection, group: str, deadline: Deadline) -> Found:
    try:
        request = FindCoordinatorRequest(key_type=GROUP_KEY, coordinator_keys=(group,))
        found: tuple[Found, ...] = connection.request(request, deadline).coordinators
    except UnsupportedVersion:
        request = FindCoordinatorRequest(key_type=GROUP_KEY, key=group)
        return the_one(connection.request(request, deadline, LAST_BY_ONE_KEY), group)
    return only(found, "FindCoordinator")


def _refused_group(hop: str, group: str, code: int) -> Finding:
    row = error_code(code)
    if code in _NOT_YET:
        advice = _ADVICE["coordinator"]
    elif row.is_retriable:
        advice = "try again in a moment"
    else:
        advice = _how_to_allow("group", group)
    return Finding(hop, f"group {group!r}", BROKEN, f"{row.name} ({row.code})", advice)

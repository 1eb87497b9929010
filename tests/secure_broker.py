"""One real broker with a listener of each kind, users for each mechanism, and ACLs switched on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import Acl, ScramCredential
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import AuthenticationFailed
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline
from tests.brokers import config_command
from tests.certificates import Authority

PASSWORD = 'tr0ub4dor,=&3 ☃ " \\ pässwörd ﬁ'  # with SASLprep the last would be two letters
_PACKAGE = "org.apache.kafka.common.security."
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SESSION_MS = 6000  # of logins with SCRAM-SHA-256 on the listener SASL

LISTENERS = {
    "INSIDE": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "STRANGER": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "OUTSIDE": "PLAINTEXT",
}
TOPIC = "orders"  # holds three records
NOWHERE = "broker.invalid"  # RFC 6761: never resolves


def quoted(text: str) -> str:
    """A value as it stands in a login module's options."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def token_login(token_id: str, hmac: str) -> str:
    """`sasl.jaas.config` of a client with a delegation token, as Kafka's documentation has it."""
    given = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    return f"{_PACKAGE}scram.ScramLoginModule required {given};"


def login(mechanism: str, username: str, password: str = PASSWORD) -> str:
    """`sasl.jaas.config` of a client."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f"{_PACKAGE}{module} required username={quoted(username)} password={quoted(password)};"


def unsecured(username: str) -> str:
    """`sasl.jaas.config` of a client with a token that nobody signed."""
    module = f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule"
    return f"{module} required unsecuredLoginStringClaim_sub={quoted(username)};"


@dataclass(frozen=True)
class SecureBroker:
    """The running broker, and what its clients need."""

    broker: DevBroker
    authority: Authority
    folder: Path

    @property
    def ca(self) -> str:
        return self.authority.pem_file(self.folder / "ca.pem")

    def properties(self, listener: str, **more: str) -> dict[str, str]:
        """Client properties for a listener; a dot is written `_` in `more`."""
        protocol = LISTENERS[listener]
        found = {
            "bootstrap.servers": self.broker.addresses(listener),
            "security.protocol": protocol,
            "default.api.timeout.ms": "20000",
            "socket.connection.setup.timeout.ms": "5000",
        }
        if protocol.endswith("SSL"):
            found["ssl.truststore.location"] = self.ca
        return found | {name.replace("_", "."): value for name, value in more.items()}

    def as_user(self, username: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Client properties of a user at the listener SASL."""
        jaas = unsecured(username) if mechanism == "OAUTHBEARER" else login(mechanism, username)
        return self.properties("SASL", sasl_mechanism=mechanism, sasl_jaas_config=jaas)

    def add_scram_user(self, username: str) -> None:
        """Make a user with PASSWORD: for SCRAM-SHA-256 as Kafka's own tool does it, which salts
        the password itself, for SCRAM-SHA-512 as the protocol does it, which is much faster.
        """
        file = self.folder / "scram.properties"
        escaped = json.dumps(f"password={PASSWORD}")[1:-1]  # JSON's escapes are among Java's
        file.write_text(f"SCRAM-SHA-256={escaped}\n")
        self.broker.run_tool(
            config_command(self.broker),
            *("--bootstrap-server", self.broker.bootstrap_servers, "--alter"),
            *("--entity-type", "users", "--entity-name", username),
            *("--add-config-file", str(file)),
        )
        self.add_sha512_user(username)

    def add_sha512_user(self, username: str) -> None:
        """Make a user with PASSWORD for SCRAM-SHA-512."""
        with self.window() as cluster:
            cluster.set_users({ScramCredential(username, PASSWORD)})
        self._wait_for_login(username)

    def _wait_for_login(self, username: str) -> None:
        """The controller has the new credentials at once, the broker a moment later."""
        config = ClientConfig.parse(self.as_user(username))
        deadline = Deadline.after(20)
        while True:
            try:
                endpoint = config.bootstrap_servers[0]
                Connection.open(endpoint, config, deadline).close()
            except AuthenticationFailed:
                deadline.check(f"log in as {username!r}, who was just made")
            else:
                return

    def allow(self, username: str, *rights: tuple[str, str, str]) -> None:
        """Give a user rights: (operation, kind of resource, its name), each by Kafka's words.

        A name that ends with `*` is the beginning of names.
        """
        acls = {
            Acl(
                _word(kind),
                name.removesuffix("*"),
                pattern_type="prefixed" if name.endswith("*") else "literal",
                principal=f"User:{username}",
                operation=_word(operation),
            )
            for operation, kind, name in rights
        }
        with self.window() as cluster:
            cluster.create_acls(acls)

    def window(self) -> KafkaCluster:
        """The cluster from the listener INSIDE, where everybody may do everything."""
        return KafkaCluster(self.properties("INSIDE"))


def _word(text: str) -> str:
    """DESCRIBE_CONFIGS or TransactionalId as the words of an ACL."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", text).replace("_", "-").lower()


@contextmanager
def open_secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """Start it, and fill it; five seconds more than a plain one takes."""
    authority = Authority()
    properties = _stores(authority, folder) | _sasl() | _acls()
    with DevBroker(
        folder / "broker",
        listeners=LISTENERS,
        advertised={"OUTSIDE": NOWHERE},
        properties=properties,
    ) as broker:
        opened = SecureBroker(broker, authority, folder)
        broker.produce(TOPIC, ["one", "two", "three"])
        opened.add_scram_user("operator")
        opened.add_sha512_user("reports")
        # One has a password in the broker's file, the other one in the cluster, or a token.
        for user in ("alice", "reports"):
            opened.allow(user, ("READ", "Topic", TOPIC))
        yield opened


def _stores(authority: Authority, folder: Path) -> Mapping[str, str]:
    good = authority.issue("broker", "localhost", "127.0.0.1")
    expired = authority.issue("broker", "127.0.0.1", is_expired=True)
    stranger = authority.issue("broker", "somewhere.else", "10.1.2.3")
    found = {}
    for listener, issued in {
        "tls": good,
        "mutual": good,
        "both": good,
        "expired": expired,
        "stranger": stranger,
    }.items():
        prefix = f"listener.name.{listener}.ssl"
        found |= {
            f"{prefix}.keystore.type": "PEM",
            f"{prefix}.keystore.location": issued.pem_file(folder / f"{listener}.pem"),
        }
    ca = authority.pem_file(folder / "ca.pem")
    return found | {
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": ca,
    }


def _sasl() -> Mapping[str, str]:
    users = " ".join(f"user_{name}={quoted(PASSWORD)}" for name in ("alice", "bob"))
    modules = {
        "plain": f"{_PACKAGE}plain.PlainLoginModule required {users};",
        "scram-sha-256": f"{_PACKAGE}scram.ScramLoginModule required;",
        "scram-sha-512": f"{_PACKAGE}scram.ScramLoginModule required;",
        "oauthbearer": unsecured("broker"),
    }
    found = {}
    for listener in ("sasl", "both"):
        prefix = f"listener.name.{listener}"
        found[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(_MECHANISMS)
        for mechanism, module in modules.items():
            found[f"{prefix}.{mechanism}.sasl.jaas.config"] = module
    found["listener.name.sasl.scram-sha-256.connections.max.reauth.ms"] = str(SESSION_MS)
    return found


def _acls() -> Mapping[str, str]:
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "delegation.token.secret.key": "the secret of all tokens",
        "super.users": "User:ANONYMOUS;User:CN=operator;User:operator",
    }

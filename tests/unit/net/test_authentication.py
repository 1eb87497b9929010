"""Log-ins over a connection, against a broker that says what a test wants."""

import logging
import subprocess
import sys
import threading
import time
import types
from contextlib import closing

import pytest

from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    Throttled,
)
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateResponse
from pyspark_kafkaproto.messages.sasl_handshake import SaslHandshakeResponse
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Connections,
    Deadline,
    Endpoint,
    authentication,
    sasl,
)
from pyspark_kafkaproto.net import connection as connection_module
from tests.fake_broker import FakeCluster, close
from tests.fake_login import LOGIN, ScramServer, logged_in, want_login

ALL_TOPICS = MetadataRequest(topics=None)
WITH_TOKENS = {
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_login_callback_handler_class": "my_tokens:give",
    "sasl_jaas_config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
    "required;",
}


@pytest.fixture
def cluster():
    with FakeCluster() as cluster:
        want_login(cluster)
        yield cluster


def config(cluster, **properties):
    login = {"bootstrap.servers": cluster.address()} | LOGIN
    return ClientConfig.parse(
        login | {name.replace("_", "."): value for name, value in properties.items()}
    )


def opened(cluster, on_frame=None):
    endpoint = Endpoint.parse(cluster.address())
    return closing(Connection.open(endpoint, config(cluster), soon(), on_frame))


def soon():
    return Deadline.after(5)


def test_versions_then_mechanism_then_password(cluster, caplog):
    frames = []
    with (
        caplog.at_level(logging.DEBUG),
        opened(cluster, lambda _, pieces, __: frames.extend(pieces)),
    ):
        pass
    assert [call.api for call in cluster.calls] == [
        *("ApiVersions", "SaslHandshake", "SaslAuthenticate")
    ]
    assert cluster.calls[1].request.mechanism == "PLAIN"
    assert cluster.calls[2].request.auth_bytes == b"\0me\0hunter2"
    assert "hunter2" not in caplog.text
    assert b"hunter2" not in b"".join(frames)  # nor what a recording would see
    assert len(frames) == 4


@pytest.mark.parametrize(
    ("api", "answer", "said"),
    [
        (
            "SaslHandshake",
            SaslHandshakeResponse(error_code=33, mechanisms=("GSSAPI", "SCRAM-SHA-512")),
            "this listener offers GSSAPI, SCRAM-SHA-512: see sasl.mechanism",
        ),
        ("SaslHandshake", SaslHandshakeResponse(error_code=34), "knows no SASL"),
        (
            "SaslAuthenticate",
            SaslAuthenticateResponse(error_code=58, error_message="no such user", auth_bytes=b""),
            "no such user: check what sasl.jaas.config says",
        ),
        (
            "SaslAuthenticate",
            SaslAuthenticateResponse(error_code=34, auth_bytes=b""),
            "ILLEGAL_SASL_STATE",
        ),
    ],
)
def test_a_refusal_is_final_and_names_the_mechanism(cluster, api, answer, said):
    cluster.on(api, answer)
    with pytest.raises(AuthenticationFailed, match=said) as caught:
        Connection.open(Endpoint.parse(cluster.address()), config(cluster), soon())
    assert caught.value.mechanism == "PLAIN"
    assert caught.value.broker == cluster.address()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("api", "answer"),
    [
        ("SaslHandshake", SaslHandshakeResponse(error_code=-1, mechanisms=("PLAIN",))),
        ("SaslAuthenticate", SaslAuthenticateResponse(error_code=-1, auth_bytes=b"")),
    ],
)
def test_other_errors_stay_themselves(cluster, api, answer):
    cluster.on(api, answer)
    with pytest.raises(BrokerError, match="UNKNOWN_SERVER_ERROR"), opened(cluster):
        pass


def test_a_refused_login_is_not_repeated(cluster):
    cluster.on("SaslAuthenticate", SaslAuthenticateResponse(error_code=58, auth_bytes=b""))
    pool = Connections(config(cluster))
    with pytest.raises(AuthenticationFailed):
        pool.get(Endpoint.parse(cluster.address()), soon())
    assert len(cluster.asked("SaslAuthenticate")) == 1
    assert not pool.kept


def test_a_login_without_an_end_is_never_renewed(cluster):
    with opened(cluster) as connection:
        for _ in range(3):
            connection.request(ALL_TOPICS, soon())
    assert len(cluster.asked("SaslAuthenticate")) == 1


def test_a_login_that_ends_is_renewed_once_nothing_is_under_way(cluster, monkeypatch):
    cluster.on("SaslAuthenticate", logged_in(100), logged_in(0))
    with opened(cluster) as connection:
        connection.send(ALL_TOPICS, soon())
        assert not connection.must_drain
        monkeypatch.setattr(connection_module, "time", _Later(96))
        assert connection.must_drain
        connection.send(MetadataRequest(topics=()), soon())
        assert connection.in_flight == 2
        found = [connection.receive(soon()).message.cluster_id for _ in range(2)]
        assert not connection.must_drain
        connection.send(ALL_TOPICS, soon())
        assert not connection.must_drain
        assert connection.in_flight == 1
        found.append(connection.receive(soon()).message.cluster_id)
        assert found == ["fake"] * 3
        assert connection.is_idle
    order = [call.api for call in cluster.calls]
    assert order[3:] == [*("Metadata", "Metadata", "SaslHandshake", "SaslAuthenticate", "Metadata")]


def test_a_login_is_not_renewed_early(cluster, monkeypatch):
    cluster.on("SaslAuthenticate", logged_in(100))
    with opened(cluster) as connection:
        monkeypatch.setattr(connection_module, "time", _Later(84))
        connection.request(ALL_TOPICS, soon())
    assert len(cluster.asked("SaslAuthenticate")) == 1


def test_a_login_is_not_renewed_sooner_than_brokers_take_it(cluster):
    """A second from when SaslHandshake has come there, which may have been long on its way."""
    slow_s, asked_at = 0.3, []

    def late(_):
        time.sleep(slow_s)
        return SaslHandshakeResponse(mechanisms=("PLAIN",))

    def log_in(_):
        asked_at.append(time.monotonic())
        return logged_in(1)

    cluster.on("SaslHandshake", late)
    cluster.on("SaslAuthenticate", log_in)
    with opened(cluster) as connection:
        assert connection._renew_login_at >= asked_at[0] + 1


def test_a_renewal_that_is_refused_closes(cluster, monkeypatch):
    refused = SaslAuthenticateResponse(error_code=58, auth_bytes=b"")
    cluster.on("SaslAuthenticate", logged_in(100), refused)
    with opened(cluster) as connection:
        connection.request(ALL_TOPICS, soon())
        monkeypatch.setattr(connection_module, "time", _Later(96))
        with pytest.raises(AuthenticationFailed):
            connection.send(ALL_TOPICS, soon())
        assert not connection.is_open
        assert connection.in_flight == 0


def test_a_renewal_that_would_have_to_wait_too_long_keeps_the_connection(cluster, monkeypatch):
    """As all else that a broker that wants silence is not told (KIP-219)."""
    cluster.on("SaslAuthenticate", logged_in(100))
    cluster.on("Metadata", MetadataResponse(throttle_time_ms=300_000))
    with opened(cluster) as connection:
        connection.request(ALL_TOPICS, soon())
        monkeypatch.setattr(connection_module, "time", _Later(96))
        for _ in range(2):
            with pytest.raises(Throttled):
                connection.request(ALL_TOPICS, soon())
            assert connection.is_idle
        monkeypatch.setattr(connection_module, "time", _Later(400))
        connection.request(ALL_TOPICS, soon())
    order = [call.api for call in cluster.calls]
    assert order[3:] == ["Metadata", "SaslHandshake", "SaslAuthenticate", "Metadata"]


@pytest.fixture
def tokens(cluster, monkeypatch):
    """What `my_tokens:give` gives one after the other; errors among it are raised."""
    module, given = types.ModuleType("my_tokens"), []

    def give(_):
        found = given.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    module.give = give
    monkeypatch.setitem(sys.modules, "my_tokens", module)
    cluster.on("SaslHandshake", SaslHandshakeResponse(mechanisms=("OAUTHBEARER",)))
    return given


def with_tokens(cluster):
    """A connection whose login ends after 100 s, unless the broker says otherwise."""
    found = config(cluster, **WITH_TOKENS)
    return closing(Connection.open(Endpoint.parse(cluster.address()), found, soon()))


@pytest.mark.parametrize(("after_s", "left_s"), [(None, 5), (60, 2.5), (98, 1), (101, 5)])
def test_a_token_has_all_the_time_there_is_or_half_where_a_login_holds(
    cluster, tokens, monkeypatch, after_s, left_s
):
    """What follows the token on the login of before has to get to the broker before that ends."""
    given = []

    def begin(config, deadline):
        given.append(deadline.remaining_s)
        return sasl.oauthbearer("opaque", {})

    monkeypatch.setattr(authentication, "begin_login", begin)
    cluster.on("SaslAuthenticate", logged_in(100), logged_in(0))
    with with_tokens(cluster) as connection:
        if after_s is not None:
            connection._renew_login_at = 0.0
            later(monkeypatch, after_s)
            connection.request(ALL_TOPICS, soon())
    assert left_s - 0.9 < given[-1] <= left_s


def later(monkeypatch, seconds, began=None):
    """So many seconds from now on, or where time stands still: from `began` on."""
    for module in (connection_module, authentication):
        monkeypatch.setattr(module, "time", _Later(seconds, began))


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ValueError()], ids=["away", "refused"])
def test_a_login_is_used_to_its_end_where_no_token_is_to_be_had(
    cluster, tokens, monkeypatch, caplog, error
):
    cluster.on("SaslAuthenticate", logged_in(100), logged_in(0))
    tokens += ["opaque", error, "opaque-2"]
    with with_tokens(cluster) as connection:
        began = time.monotonic()
        for after_s in (96, 96.1, 97.5, 99):
            later(monkeypatch, after_s, began)
            assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"
            assert len(tokens) == (after_s < 99), "its source is not asked at every send"
    assert "the login of before is used" in caplog.text
    assert len(cluster.asked("SaslAuthenticate")) == 2
    assert {call.connection for call in cluster.calls} == {cluster.calls[0].connection}


@pytest.mark.slow
def test_a_login_that_is_over_fails_with_the_error_of_the_source_of_tokens(
    cluster, tokens, monkeypatch
):
    cluster.on("SaslAuthenticate", logged_in(100))
    tokens += ["opaque", ValueError(), ValueError()]
    with with_tokens(cluster) as connection:
        later(monkeypatch, 96)
        connection.request(ALL_TOPICS, soon())
        later(monkeypatch, 101)
        with pytest.raises(AuthenticationFailed, match=r"my_tokens:give.*raised ValueError"):
            connection.send(ALL_TOPICS, soon())
        assert not connection.is_open


@pytest.mark.slow
def test_a_source_of_tokens_that_hangs_leaves_time_for_the_request(cluster, tokens, monkeypatch):
    cluster.on("SaslAuthenticate", logged_in(100))
    tokens.append("opaque")
    with with_tokens(cluster) as connection:
        later(monkeypatch, 96)
        is_over = threading.Event()
        monkeypatch.setattr(sys.modules["my_tokens"], "give", lambda _: is_over.wait(30))
        assert connection.request(ALL_TOPICS, Deadline.after(4)).cluster_id == "fake"
        is_over.set()


class _Later:
    """The module `time`, some seconds from now, or for ever so many from `began`."""

    def __init__(self, seconds, began=None):
        self._seconds = seconds
        self._began = began

    def monotonic(self):
        return (time.monotonic() if self._began is None else self._began) + self._seconds


@pytest.mark.slow
def test_a_listener_that_wants_a_login_is_told_from_one_that_is_gone(cluster):
    plain = ClientConfig.parse({"bootstrap.servers": cluster.address()})
    cluster.on("Metadata", close())
    first = Connection.open(Endpoint.parse(cluster.address()), plain, soon())
    with closing(first), pytest.raises(ConnectionFailed, match=r"a listener with SASL.*SASL_SSL"):
        first.request(ALL_TOPICS, soon())
    cluster.on("Metadata", None, close())
    with closing(Connection.open(Endpoint.parse(cluster.address()), plain, soon())) as connection:
        connection.request(ALL_TOPICS, soon())
        with pytest.raises(ConnectionFailed) as caught:
            connection.request(ALL_TOPICS, soon())
    assert "SASL" not in str(caught.value)


@pytest.mark.slow
def test_who_needs_no_security_does_not_import_it():
    program = (
        "import sys, pyspark_kafkaproto.net; print(*{'ssl', 'urllib.request'} & {*sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert shown.stdout == b"\n"


# Delegation tokens

TOKEN_ID, HMAC = "zzyZN7wWTcSKhFYGMFPRdg", "c2VjcmV0IG9mIHRoZSB0b2tlbg=="


@pytest.fixture
def scram(cluster):
    """A broker with a user and a token, which lasts 100 s."""
    server = ScramServer({"me": "hunter2"}, {TOKEN_ID: HMAC}, lambda: 100)
    cluster.on("SaslHandshake", SaslHandshakeResponse(mechanisms=("SCRAM-SHA-512",)))
    cluster.on("SaslAuthenticate", server)
    return server


def of_scram(cluster, name, password, more=""):
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    jaas = f'{module} username="{name}" password="{password}"{more};'
    return config(cluster, sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=jaas)


def of_token(cluster, name=TOKEN_ID, hmac=HMAC):
    return of_scram(cluster, name, hmac, ' tokenauth="true"')


def open_with(cluster, given):
    return closing(Connection.open(Endpoint.parse(cluster.address()), given, soon()))


def test_a_token_logs_in_by_its_extension_alone(cluster, scram):
    with (
        open_with(cluster, of_token(cluster)),
        open_with(cluster, of_scram(cluster, "me", "hunter2")),
    ):
        assert scram.logged_in == [TOKEN_ID, "me"]
    for given in (of_scram(cluster, TOKEN_ID, HMAC), of_token(cluster, "me", "hunter2")):
        with pytest.raises(AuthenticationFailed, match="invalid credentials"):
            open_with(cluster, given)


@pytest.mark.parametrize("named", [("another", HMAC), (TOKEN_ID, "YW5vdGhlcg==")])
def test_a_token_that_is_not_there_is_told_as_one(cluster, scram, named, caplog):
    said = "no such delegation token.*kafkaproto tokens list.*check what sasl.jaas.config says"
    with caplog.at_level(logging.DEBUG), pytest.raises(AuthenticationFailed, match=said) as caught:
        open_with(cluster, of_token(cluster, *named))
    assert named[1] not in str(caught.value) + caplog.text
    with pytest.raises(
        AuthenticationFailed, match="invalid credentials: check what sasl"
    ) as caught:
        open_with(cluster, of_scram(cluster, "me", "wrong"))
    assert "token" not in str(caught.value)


def test_a_token_that_has_expired_and_is_not_swept_away_yet(cluster, scram):
    """Brokers let it in, for no time at all, and close the connection at the next request."""
    scram.lifetime_s = lambda: 0
    with pytest.raises(AuthenticationFailed, match=r"has expired.*kafkaproto tokens create"):
        open_with(cluster, of_token(cluster))
    with open_with(cluster, of_scram(cluster, "me", "hunter2")) as connection:  # for ever
        connection.request(ALL_TOPICS, soon())


def test_a_renewed_token_goes_on_and_one_that_was_not_is_over(cluster, scram, monkeypatch):
    lifetimes = [100, 100, 0]
    scram.lifetime_s = lambda: lifetimes.pop(0)
    with open_with(cluster, of_token(cluster)) as connection:
        later(monkeypatch, 96)
        connection.request(ALL_TOPICS, soon())
        assert scram.logged_in == [TOKEN_ID] * 2
        connection.request(ALL_TOPICS, soon())
        assert lifetimes == [0]
        later(monkeypatch, 192)
        with pytest.raises(AuthenticationFailed, match="the delegation token has expired"):
            connection.request(ALL_TOPICS, soon())
        assert not connection.is_open

"""TLS against a real peer in Python: bytes, deadlines, and each way in which trust can fail."""

import socket
import ssl
import threading
import time
from contextlib import ExitStack, closing, contextmanager

import pytest

from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
)
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Deadline,
    Endpoint,
    wait_for_answers,
)
from pyspark_kafkaproto.net.tls import connect_tls, make_context
from pyspark_kafkaproto.wire.frame import encode_response
from tests.certificates import Authority

SSL = {"bootstrap.servers": "b:1", "security.protocol": "SSL"}


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def issued(authority):
    """Certificates of brokers, by what is the matter with them."""
    return {
        "good": authority.issue("broker", "localhost", "127.0.0.1"),
        "expired": authority.issue("broker", "127.0.0.1", is_expired=True),
        "early": authority.issue("broker", "127.0.0.1", is_early=True),
        "stranger": authority.issue("broker", "elsewhere.example", "10.0.0.1"),
    }


@contextmanager
def serving(handle):
    """A peer that hands each accepted socket to `handle`, in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    # Wakes up to see that it should end: a blocked accept would not.
    listener.settimeout(5)

    def run():
        try:
            sock, _ = listener.accept()
            sock.settimeout(5)
            with sock:
                handle(sock)
        except OSError:
            pass  # the client went away: what it saw is what the test looks at

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Endpoint(*listener.getsockname())
    finally:
        listener.close()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def broker(issued, tmp_path):
    def serve(kind="good", handle=lambda sock: sock.recv(1), **options):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued[kind].pem_file(tmp_path / "broker.pem"))
        for name, value in options.items():
            setattr(context, name, value)
        if "verify_mode" in options:
            context.load_verify_locations(tmp_path / "clients.pem")

        def shake_hands(sock):
            with context.wrap_socket(sock, server_side=True) as wrapped:
                handle(wrapped)

        return serving(shake_hands)

    return serve


def config(authority=None, **properties):
    named = {name.replace("_", "."): value for name, value in properties.items()}
    trust = {} if authority is None else {"ssl.truststore.certificates": authority.pem}
    return ClientConfig.parse(SSL | trust | named)


def soon(timeout_s=5.0):
    return Deadline.after(timeout_s)


def receive(transport, count, timeout_s=5.0):
    view = memoryview(bytearray(count))
    transport.receive_into(view, soon(timeout_s))
    return bytes(view)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_bytes_go_both_ways_in_more_than_one_record(broker, authority, host):
    block = bytes(range(256)) * 400

    def echo(sock):
        got = b""
        while len(got) < len(block):
            got += sock.recv(1 << 16)
        sock.sendall(got)

    with broker(handle=echo) as endpoint:
        place = Endpoint(host, endpoint.port)
        with closing(connect_tls(place, config(authority), soon())) as transport:
            assert not transport.is_readable()
            transport.send(block, soon())
            assert receive(transport, len(block)) == block


@pytest.mark.slow
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_what_goes_at_once_is_sent_and_the_rest_later(broker, authority, version):
    data = bytes(range(256)) * (64 << 10)
    reads, got = threading.Event(), bytearray()

    def handle(sock):
        assert reads.wait(5)
        while len(got) < len(data):
            got.extend(sock.recv(1 << 16))
        sock.sendall(b"all")

    enabled = {"ssl.enabled.protocols": version}
    with (
        broker(handle=handle) as endpoint,
        closing(connect_tls(endpoint, config(authority, **enabled), soon())) as transport,
    ):
        left = memoryview(data)
        while count := transport.send_some([left]):
            left = left[count:]
        assert left  # the peer has read nothing
        reads.set()
        until = soon()
        while left:
            left = left[transport.send_some([left]) :]
            until.check("all of it to go")
        assert receive(transport, 3) == b"all"
    assert got == data


@pytest.mark.slow
def test_what_comes_before_the_deadline_is_received_and_counted(broker, authority):
    def talk(sock):
        sock.sendall(b"pong")
        sock.recv(1)
        sock.sendall(b"ping")
        sock.recv(1)

    with (
        broker(handle=talk) as endpoint,
        closing(connect_tls(endpoint, config(authority), soon())) as transport,
    ):
        view = memoryview(bytearray(6))
        assert transport.receive_some(view, soon(0)) == 0
        deadline = soon()
        while not transport.is_readable():
            deadline.check("waiting for what the peer sent")
        assert transport.receive_some(view, soon(0)) == 1  # which was looked at
        assert transport.receive_some(view[1:], soon(0)) == 3
        assert transport.receive_some(view[4:], soon(0)) == 0
        transport.send(b"?", soon())
        assert transport.receive_some(view[4:], soon(60)) == 2
        assert bytes(view) == b"pongpi"


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_answers_are_taken_in_however_records_hold_them(broker, authority, count):
    """What OpenSSL holds of a record the system says nothing of."""
    sizes = [10, 10, 30_000, 30_000, 10]
    answers = [
        encode_response(MetadataResponse(cluster_id="x" * size), 9, number)
        for number, size in enumerate(sizes)
    ]

    def talk(sock):
        sock.recv(1)
        sock.sendall(b"".join(answers))
        while sock.recv(1000):
            pass

    found = {}
    with ExitStack() as held:
        for _ in range(count):
            endpoint = held.enter_context(broker(handle=talk))
            transport = connect_tls(endpoint, config(authority), soon())
            connection = held.enter_context(closing(Connection(transport, config(authority))))
            for _ in sizes:
                connection.send(MetadataRequest(topics=()), soon(), 9)
            found[connection] = []
        while left := [one for one in found if len(found[one]) < len(sizes)]:
            ready = wait_for_answers(left, 5)
            assert ready
            for one in ready:
                found[one].append(len(one.receive(soon(0)).message.cluster_id))
    assert list(found.values()) == [sizes] * count


@pytest.mark.slow
def test_silence_ends_at_the_deadline(broker, authority):
    with (
        broker() as endpoint,
        closing(connect_tls(endpoint, config(authority), soon())) as transport,
    ):
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"receive: not done within 0\.05 s"):
            receive(transport, 1, 0.05)
        with pytest.raises(DeadlineExceeded):
            receive(transport, 1, 0)
        assert time.monotonic() - began < 4


@pytest.mark.slow
def test_peer_that_closes_is_seen(broker, authority):
    with (
        broker(handle=lambda sock: sock.unwrap()) as endpoint,
        closing(connect_tls(endpoint, config(authority), soon())) as transport,
    ):
        with pytest.raises(ConnectionFailed, match="the broker closed the connection"):
            receive(transport, 1)
        assert transport.is_readable()


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True])
def test_peer_that_is_gone_takes_nothing_more(broker, authority, at_once):
    with (
        broker(handle=lambda sock: sock.recv(1)) as endpoint,
        closing(connect_tls(endpoint, config(authority), soon())) as transport,
        pytest.raises(ConnectionFailed) as caught,
    ):
        send_on_and_on(transport, at_once=at_once)
    assert caught.value.stage == "send"
    # No words of OpenSSL's, nor the system's numbers.
    assert caught.value.reason in {"the broker closed the connection", "Broken pipe"}


def send_on_and_on(transport, *, at_once):
    deadline = soon()
    while not deadline.has_passed:
        if at_once:
            transport.send_some([memoryview(b"more")])
        else:
            transport.send(b"more", deadline)


@pytest.mark.slow
def test_peer_that_talks_unasked_is_seen_and_still_heard(broker, authority):
    def talk(sock):
        sock.sendall(b"unasked")
        sock.recv(1)

    with (
        broker(handle=talk) as endpoint,
        closing(connect_tls(endpoint, config(authority), soon())) as transport,
    ):
        deadline = soon()
        while not transport.is_readable():
            deadline.check("waiting for what the peer sent")
        assert transport.is_readable()
        assert receive(transport, 7) == b"unasked"  # looking takes nothing away


@pytest.mark.slow
def test_bytes_that_came_are_seen_and_stay(broker, authority):
    def talk(sock):
        sock.recv(1)
        sock.sendall(b"an answer")
        sock.recv(1)

    with (
        broker(handle=talk) as endpoint,
        closing(connect_tls(endpoint, config(authority), soon())) as transport,
    ):
        transport.send(b"?", soon())
        deadline = soon()
        while not transport.is_readable():
            deadline.check("waiting for what the peer sent")
        assert receive(transport, 2) == b"an"
        assert transport.is_readable()
        assert receive(transport, 7) == b" answer"
        assert not transport.is_readable()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("expired", "the broker's certificate has expired"),
        ("early", "is not valid yet"),
        ("stranger", "is for another host than '127.0.0.1'"),
    ],
)
def test_a_certificate_that_is_wrong_says_how(broker, authority, kind, said):
    with (
        broker(kind) as endpoint,
        pytest.raises(AuthenticationFailed, match=f"{endpoint}: TLS.*{said}"),
    ):
        connect_tls(endpoint, config(authority), soon())


@pytest.mark.parametrize("is_of_the_broker", [True, False], ids=["the broker's own", "between"])
def test_what_is_given_as_trusted_needs_no_authority_above_it(broker, issued, is_of_the_broker):
    """As in Java: a store may hold the broker's certificate alone, or one between it and a root."""
    between = Authority("between", signed_by=Authority("root"))
    issued["between"] = between.issue("broker", "127.0.0.1")
    own = issued["good"].chain_pem
    kind, trusted = ("good", own) if is_of_the_broker else ("between", between.pem)
    found = config(**{"ssl.truststore.certificates": trusted})
    with broker(kind) as endpoint:
        connect_tls(endpoint, found, soon()).close()


def test_an_authority_that_is_not_trusted_says_what_to_set(broker):
    with (
        broker() as endpoint,
        pytest.raises(AuthenticationFailed, match=r"not signed by .*set ssl\.truststore"),
    ):
        connect_tls(endpoint, config(Authority("other")), soon())


def test_the_check_of_the_host_can_be_switched_off(broker, authority):
    unchecked = config(authority, ssl_endpoint_identification_algorithm="")
    with broker("stranger") as endpoint:
        connect_tls(endpoint, unchecked, soon()).close()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("who", ["nobody", "stranger", "friend"])
def test_a_broker_that_wants_a_certificate(broker, authority, tmp_path, version, who):
    (tmp_path / "clients.pem").write_text(authority.pem)
    signer = {"stranger": Authority("other"), "friend": authority}.get(who)
    own = {"ssl_keystore_location": _key(signer, tmp_path)} if signer else {}
    client = config(authority, ssl_enabled_protocols=version, **own)

    def talk():
        with closing(connect_tls(endpoint, client, soon())) as transport:
            return receive(transport, 2)

    def greet(sock):
        sock.sendall(b"hi")
        sock.recv(1)

    with broker(handle=greet, verify_mode=ssl.CERT_REQUIRED) as endpoint:
        if who == "friend":
            assert talk() == b"hi"
        else:
            said = "wants a certificate" if who == "nobody" else "does not accept our certificate"
            with pytest.raises(AuthenticationFailed, match=said):
                talk()


def _key(authority, folder):
    return authority.issue("me").pem_file(folder / "me.pem")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\4abcd"])
def test_a_peer_without_tls_says_which_port_or_protocol_to_give(authority, answer):
    def be_plain(sock):
        sock.recv(1 << 16)
        sock.sendall(answer)

    with (
        serving(be_plain) as endpoint,
        pytest.raises(ConnectionFailed, match=r"security\.protocol to PLAINTEXT") as caught,
    ):
        connect_tls(endpoint, config(authority), soon())
    assert caught.value.stage == "TLS handshake"


@pytest.mark.slow
def test_a_peer_that_says_nothing_fails_at_the_deadline(authority):
    with (
        serving(lambda sock: sock.recv(1 << 16) and sock.recv(1)) as endpoint,
        pytest.raises(ConnectionFailed, match=r"no answer within 0\.1 s"),
    ):
        connect_tls(endpoint, config(authority), soon(0.1))


def test_a_plaintext_client_at_a_tls_listener_says_what_to_set(broker):
    plain = ClientConfig.parse({"bootstrap.servers": "b:1"})
    with broker() as endpoint, pytest.raises(Exception, match=r"security\.protocol") as caught:
        Connection.open(endpoint, plain, soon())
    assert str(endpoint) in str(caught.value)


def test_no_version_in_common_says_so(broker, authority):
    with (
        broker(maximum_version=ssl.TLSVersion.TLSv1_2) as endpoint,
        pytest.raises(AuthenticationFailed, match=r"version in common.*ssl\.enabled\.protocols"),
    ):
        connect_tls(endpoint, config(authority, ssl_enabled_protocols="TLSv1.3"), soon())


@pytest.mark.slow
def test_versions_below_1_2_are_never_spoken():
    context = make_context(config())
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    older = make_context(config(ssl_protocol="TLSv1.2"))
    assert older.maximum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        (
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
        ),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
    ],
)
def test_cipher_suites_have_javas_names(java, openssl):
    context = make_context(config(ssl_cipher_suites=java))
    older = {item["name"] for item in context.get_ciphers() if item["protocol"] != "TLSv1.3"}
    assert older == {openssl}
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2


_ALL_OF_1_3 = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"


def test_suites_of_1_3_alone_leave_1_2_out():
    """As in Java: with OpenSSL's own suites it would take some that nobody named."""
    context = make_context(config(ssl_cipher_suites=_ALL_OF_1_3))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"ssl_cipher_suites": "TLS_NO_SUCH_SUITE"}, "OpenSSL has not all"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "cannot choose among"),
        ({"ssl_protocol": "TLSv1.2", "ssl_enabled_protocols": "TLSv1.3"}, "excludes TLSv1.3"),
        ({"ssl_protocol": "TLSv1.2", "ssl_cipher_suites": _ALL_OF_1_3}, "suites of TLSv1.3 alone"),
        (
            {"ssl_enabled_protocols": "TLSv1.2", "ssl_cipher_suites": _ALL_OF_1_3},
            r"suites of TLSv1\.3 alone, which ssl\.protocol or ssl\.enabled\.protocols excludes",
        ),
    ],
)
def test_what_python_cannot_do_is_refused(properties, said):
    with pytest.raises(ConfigError, match=said):
        make_context(config(**properties))

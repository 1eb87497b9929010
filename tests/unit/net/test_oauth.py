"""Tokens: from an endpoint, from a function, made up; kept while they live, never shown."""

import base64
import contextlib
import http.client
import json
import socket
import sys
import threading
import time
import types

import pytest

from pyspark_kafkaproto.errors import AuthenticationFailed, ConfigError, ConnectionFailed
from pyspark_kafkaproto.net import ClientConfig, Deadline, oauth
from pyspark_kafkaproto.net.login import begin_login
from tests.certificates import Authority
from tests.token_endpoint import TokenEndpoint, token_for

SECRET = "hunter2 =&:"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(oauth, "_kept", {})


@pytest.fixture
def endpoint():
    with TokenEndpoint(SECRET) as endpoint:
        yield endpoint


@pytest.fixture
def function(monkeypatch):
    """Makes `my_tokens:give` do as it is told."""

    def make(give):
        module = types.ModuleType("my_tokens")
        module.give = give
        monkeypatch.setitem(sys.modules, "my_tokens", module)
        return config(**{"sasl.login.callback.handler.class": "my_tokens:give"})

    return make


def config(options="", **properties):
    found = {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} {options};",
    }
    return ClientConfig.parse(found | properties)


def with_endpoint(endpoint, secret=SECRET, more="", **properties):
    options = f'clientId="me" clientSecret="{secret}" {more}'
    return config(options, **{"sasl.oauthbearer.token.endpoint.url": endpoint.url} | properties)


def token(found, timeout_s=5.0):
    return oauth.bearer_token(found, found.login_module().options, Deadline.after(timeout_s))


def subject(text):
    body = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["sub"]


@pytest.mark.slow
def test_the_endpoint_is_asked_by_client_credentials(endpoint):
    assert subject(token(with_endpoint(endpoint, more='scope="kafka read"'))) == "me"
    assert endpoint.asked == [{"grant_type": "client_credentials", "scope": "kafka read"}]


@pytest.mark.slow
def test_the_endpoint_needs_no_more_of_a_certificate_than_a_broker_does(tmp_path, monkeypatch):
    """Python 3.13 came to demand extensions that many a company's authority never wrote."""
    authority = Authority()
    monkeypatch.setenv("SSL_CERT_FILE", authority.pem_file(tmp_path / "ca.pem"))
    pem = authority.issue("login", "127.0.0.1").pem_file(tmp_path / "login.pem")
    with TokenEndpoint(SECRET, pem) as endpoint:
        assert subject(token(with_endpoint(endpoint))) == "me"


@pytest.mark.parametrize("is_trusted", [False, True], ids=["stranger", "of another host"])
def test_the_endpoint_is_not_told_the_secret_before_it_is_trusted(
    tmp_path, monkeypatch, is_trusted
):
    authority = Authority()
    trusted = authority if is_trusted else Authority("another")
    monkeypatch.setenv("SSL_CERT_FILE", trusted.pem_file(tmp_path / "ca.pem"))
    host = "elsewhere.example" if is_trusted else "127.0.0.1"
    pem = authority.issue("login", host).pem_file(tmp_path / "login.pem")
    with TokenEndpoint(SECRET, pem) as endpoint:
        said = r"the token endpoint's certificate is not accepted \(.+\): .*SSL_CERT_FILE"
        with pytest.raises(AuthenticationFailed, match=said):  # as a broker's, no retry mends it
            token(with_endpoint(endpoint))
        assert not endpoint.asked


@pytest.mark.slow
def test_id_secret_and_scope_may_be_properties_of_their_own(endpoint):
    prefix = "sasl.oauthbearer."
    found = config(
        **{
            prefix + "token.endpoint.url": endpoint.url,
            prefix + "client.credentials.client.id": "me",
            prefix + "client.credentials.client.secret": SECRET,
            prefix + "scope": "s",
        }
    )
    assert subject(token(found)) == "me"
    assert endpoint.asked[0]["scope"] == "s"


def test_properties_of_their_own_go_before_options_of_the_login_module(endpoint, caplog):
    """As in the Java client: whoever moves on to them need not take the old ones out."""
    prefix = "sasl.oauthbearer."
    found = config(
        'clientId="old" clientSecret="wrong" scope="old"',
        **{
            prefix + "token.endpoint.url": endpoint.url,
            prefix + "client.credentials.client.id": "me",
            prefix + "client.credentials.client.secret": SECRET,
        },
    )
    assert subject(token(found)) == "me"
    assert endpoint.asked[0]["scope"] == "old"
    assert sorted(caplog.messages) == [
        f"{name} in sasl.jaas.config has no effect: the property sasl.oauthbearer.… says it"
        for name in ("clientId", "clientSecret")
    ]


@pytest.mark.slow
def test_a_header_can_be_urlencoded(endpoint):
    endpoint.secret = "hunter2+%3D%26%3A"
    more = {"sasl.oauthbearer.header.urlencode": "true"}
    assert subject(token(with_endpoint(endpoint, **more))) == "me"


@pytest.mark.slow
def test_a_token_is_kept_for_four_fifths_of_its_life(endpoint, monkeypatch):
    found = with_endpoint(endpoint)
    assert token(found) == token(found)
    assert len(endpoint.asked) == 1
    now = time.time()
    clock = types.SimpleNamespace(time=lambda: now + 0.81 * 3600, monotonic=time.monotonic)
    monkeypatch.setattr(oauth, "time", clock)
    token(found)
    assert len(endpoint.asked) == 2
    token(with_endpoint(endpoint, more='scope="other"'))
    assert len(endpoint.asked) == 3


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_token_is_used_to_its_end_where_no_other_is_to_be_had(
    function, monkeypatch, caplog, is_refused
):
    calls = []

    def give(_):
        calls.append(now[0])
        if len(calls) > 1:
            raise ValueError if is_refused else ConnectionRefusedError
        return token_for("me", 1000)

    now = [time.time()]
    clock = types.SimpleNamespace(time=lambda: now[0], monotonic=lambda: now[0])
    monkeypatch.setattr(oauth, "time", clock)
    found = function(give)
    first = token(found)
    now[0] += 850
    assert token(found) == token(found) == first
    assert len(calls) == 2, "its source is not asked at every login"
    assert "the token of before is used" in caplog.text
    now[0] += 61
    assert token(found) == first
    assert len(calls) == 3
    now[0] += 100
    with pytest.raises(AuthenticationFailed if is_refused else ConnectionFailed):
        token(found)


def test_a_token_does_not_live_longer_where_the_clock_is_set_back(function, monkeypatch):
    """Brokers would refuse it until the clock is where it was."""
    began, set_back_s, passed_s = time.time(), [0], [0]
    clock = types.SimpleNamespace(
        time=lambda: began + passed_s[0] - set_back_s[0], monotonic=lambda: passed_s[0]
    )
    monkeypatch.setattr(oauth, "time", clock)
    given = iter([token_for("first", 1000), token_for("second", 5000)])
    found = function(lambda options: next(given))
    assert subject(token(found)) == "first"
    set_back_s[0], passed_s[0] = 3 * 3600, 700
    assert subject(token(found)) == "first"
    passed_s[0] = 1001
    assert subject(token(found)) == "second"


def test_kept_tokens_are_bounded_and_hidden(function):
    for number in range(40):
        options = f'scope="{number}" unsecuredLoginStringClaim_sub="me"'
        token(config(options))
    assert len(oauth._kept) <= 16
    assert token(config(options)) not in repr(oauth._kept)


def test_a_token_that_does_not_say_how_long_it_lives_is_asked_for_each_time(function):
    given = iter(["opaque-1", "opaque-2"])
    found = function(lambda options: next(given))
    assert [token(found), token(found)] == ["opaque-1", "opaque-2"]


@pytest.mark.parametrize("claims", [b'{"exp": 1%s}' % (b"0" * 400), b"[" * 99_999, b'{"exp": "x"}'])
def test_claims_may_be_anything(function, claims):
    given = f"a.{base64.urlsafe_b64encode(claims).decode().rstrip(chr(61))}.c"
    assert token(function(lambda options: given)) == given


@pytest.mark.slow
def test_a_wrong_secret_is_final_and_not_shown(endpoint):
    with pytest.raises(AuthenticationFailed, match=r"HTTP 401 'invalid_client': check") as caught:
        token(with_endpoint(endpoint, "hunter3"))
    assert "hunter" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((503, {}, b""), ConnectionFailed, "HTTP 503"),
        ((522, {}, b""), ConnectionFailed, "HTTP 522"),  # of a proxy that does not reach it
        ((501, {}, b""), AuthenticationFailed, "HTTP 501"),
        ((429, {}, b""), ConnectionFailed, "HTTP 429"),
        ((400, {}, b"<html>"), AuthenticationFailed, "HTTP 400 'Bad Request'"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), AuthenticationFailed, "HTTP 302"),
        ((200, {}, b"<html>"), AuthenticationFailed, "has no access_token"),
        ((400, {}, b"[" * 99_999), AuthenticationFailed, "HTTP 400 'Bad Request'"),
        ((200, {}, b"[" * 99_999), AuthenticationFailed, "has no access_token"),
        ((200, {}, b"[]"), AuthenticationFailed, "has no access_token"),
        ((200, {}, b'{"access_token": "a\\u0001b"}'), AuthenticationFailed, "no bearer token"),
        ((200, {}, b'{"access_token": null}'), AuthenticationFailed, "has no access_token"),
    ],
)
def test_an_answer_that_is_no_token(endpoint, answer, kind, said):
    endpoint.answers.append(answer)
    with pytest.raises(kind, match=said) as caught:
        token(with_endpoint(endpoint))
    assert endpoint.url in str(caught.value)


@pytest.mark.slow
def test_an_endpoint_that_is_not_there_is_worth_a_retry(endpoint, unused_ports):
    endpoint.url = f"http://127.0.0.1:{unused_ports(1)[0]}/token"
    with pytest.raises(ConnectionFailed, match=r"token endpoint.*refused"):
        token(with_endpoint(endpoint))


@pytest.mark.parametrize("host", ["a" * 64, "host..example"])
def test_an_endpoint_whose_name_is_none_is_named(endpoint, host):
    endpoint.url = f"http://{host}/token"
    with pytest.raises(ConnectionFailed, match=r"the token endpoint: .*label") as caught:
        token(with_endpoint(endpoint))
    assert caught.value.broker == endpoint.url


@pytest.mark.slow
@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY"])
def test_a_proxy_that_is_not_there_is_not_taken_for_the_endpoint(
    endpoint, unused_ports, monkeypatch, name
):
    monkeypatch.setenv(name, f"http://me:hunter2@127.0.0.1:{unused_ports(1)[0]}")
    endpoint.url = "http://login.example/token"
    said = rf"token endpoint \(asked through the proxy that {name} names\): .*refused"
    with pytest.raises(ConnectionFailed, match=said) as caught:
        token(with_endpoint(endpoint))
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv("no_proxy", "login.example")
    with pytest.raises(ConnectionFailed, match="the token endpoint: "):
        token(with_endpoint(endpoint))


def test_what_a_proxy_refuses_is_not_taken_for_the_endpoints_word(endpoint, monkeypatch):
    monkeypatch.setenv("http_proxy", endpoint.url)
    endpoint.url = "http://login.example/token"
    endpoint.answers.append((407, {}, b""))
    said = r"proxy that http_proxy names\) answers HTTP 407 .*that the proxy's URL has"
    with pytest.raises(AuthenticationFailed, match=said):
        token(with_endpoint(endpoint))


def take_request(connection):
    """All of it, in pieces as it comes: what is not read makes a connection's end a reset."""
    with connection.makefile("rb") as request:
        request.readline()
        head = http.client.parse_headers(request)
        request.read(int(head["Content-Length"]))


@pytest.mark.slow
def test_an_endpoint_that_does_not_speak_http_is_named():
    """The URL may be that of a broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/token"

        def answer_once():
            connection, _ = listening.accept()
            with connection:
                take_request(connection)
                connection.sendall(b"\0\0\0\x04 no HTTP at all\r\n\r\n")

        thread = threading.Thread(target=answer_once)
        thread.start()
        found = config(
            'clientId="me" clientSecret="s"', **{"sasl.oauthbearer.token.endpoint.url": url}
        )
        with pytest.raises(ConnectionFailed, match=r"does not answer in HTTP .*endpoint\.url"):
            token(found)
        thread.join(10)


@pytest.mark.parametrize(
    ("head", "pieces", "within_s", "error", "said"),
    [
        ("Content-Length: 99999", [b"{"] * 40, 0.4, ConnectionFailed, "no answer within 0.4 s"),
        ("Transfer-Encoding: chunked", [b"5\r\n{"], 20, ConnectionFailed, "HTTP .IncompleteRead"),
        ("Content-Length: 99999", [b"{"], 20, AuthenticationFailed, "HTTP 401 'No'"),
    ],
)
def test_a_refusal_that_does_not_come_to_its_end(head, pieces, within_s, error, said):
    """What it says has no more time than the token has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        is_over = threading.Event()

        def answer_once():
            connection, _ = listening.accept()
            with connection:
                take_request(connection)
                connection.sendall(f"HTTP/1.1 401 No\r\n{head}\r\n\r\n".encode())
                for piece in pieces:
                    with contextlib.suppress(OSError):
                        connection.sendall(piece)
                    if len(pieces) > 1 and is_over.wait(0.1):
                        return

        thread = threading.Thread(target=answer_once)
        thread.start()
        endpoint = types.SimpleNamespace(url=f"http://127.0.0.1:{port}/token")
        began = time.monotonic()
        try:
            with pytest.raises(error, match=said) as caught:
                token(with_endpoint(endpoint), within_s)
            assert time.monotonic() - began < 3.5  # all pieces take 4
        finally:
            is_over.set()
            thread.join(10)
        assert endpoint.url in str(caught.value)


def test_a_function_gets_the_options_and_gives_the_token(function):
    asked = []
    found = function(lambda options: asked.append(options) or token_for("him"))
    assert subject(token(found)) == "him"
    assert asked == [{}]


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda options: None, "gave NoneType, expected str"),
        (lambda options: ("token", 1), "gave tuple"),
        (lambda options: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_function_that_gives_no_token(function, give, said):
    with pytest.raises(AuthenticationFailed, match=f"my_tokens:give.*{said}"):
        token(function(give))


def test_a_function_that_reaches_nobody_is_worth_a_retry(function):
    def give(_):
        raise ConnectionRefusedError("hunter2")

    with pytest.raises(ConnectionFailed, match=r"my_tokens:give.*ConnectionRefusedError$"):
        token(function(give))


def test_a_function_that_hangs_ends_at_the_deadline(function):
    found = function(lambda options: time.sleep(0.5))
    with pytest.raises(ConnectionFailed, match=r"my_tokens:give.*no answer within 0\.05 s"):
        token(found, 0.05)


@pytest.mark.parametrize("name", ["no_such_module:give", "json:no_such_function"])
def test_a_function_that_cannot_be_imported_is_named(name):
    with pytest.raises(ConfigError, match=f"{name}.*on executors"):
        token(config(**{"sasl.login.callback.handler.class": name}))


def test_a_token_can_be_made_up_and_extensions_go_along():
    found = config('unsecuredLoginStringClaim_sub="me" scope="s" extension_tenant="t"')
    message = next(begin_login(found, Deadline.after(5))).decode()
    bearer, tenant = message.split("\x01")[1:3]
    assert subject(bearer.removeprefix("auth=Bearer ")) == "me"
    assert tenant == "tenant=t"


def test_a_made_up_token_needs_a_subject():
    with pytest.raises(ConfigError, match="unsecuredLoginStringClaim_sub"):
        token(config('unsecuredLoginStringClaim_x="me"'))

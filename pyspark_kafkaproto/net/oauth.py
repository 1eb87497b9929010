"""Bearer tokens for OAUTHBEARER: from a token endpoint, a Python function, or made up (unsecured).

A token is kept in this process until four fifths of its life have passed, and to its end where none
is to be had then. Endpoint: RFC 6749, the client-credentials grant, as KIP-768 has it. Unsecured
tokens (RFC 7519, `alg` none) are for development: a broker takes them only when it was told to.
"""

from __future__ import annotations

import base64
import functools
import http.client
import json
import logging
import os
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pyspark_kafkaproto.errors import AuthenticationFailed, ConfigError, ConnectionFailed
from pyspark_kafkaproto.net.bounded import call_within
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.properties import warn_once
from pyspark_kafkaproto.net.secret import HIDDEN, Secret
from pyspark_kafkaproto.net.security import OAUTHBEARER, SecurityConfig

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750; above all: no control characters
_LIFE_USED = 0.8
_ASKED_AGAIN_S = 60.0  # sasl.login.refresh.min.period.seconds
_LARGEST_ANSWER_BYTES = 1 << 20
_KEPT_TOKENS = 16
_SHOWN_CHARACTERS = 200
_CLAIM = "unsecuredLoginStringClaim_"
# Of JSON that holds something else: text, lists, numbers without end, brackets in brackets.
_NOT_THAT_JSON = (KeyError, OverflowError, RecursionError, TypeError, ValueError)
# Of servers all but two: proxies and clouds have their own.
_TRY_AGAIN = {408, 425, 429, *range(500, 600)} - {501, 505}


class _Kept(NamedTuple):
    token: Secret
    fresh_until: float
    ends_at: float
    clock_s: float  # by how much the clock was ahead of the monotonic one when it was given

    def now(self) -> float:
        """The time; a clock that was set back meanwhile makes no token younger."""
        return max(time.time(), self.clock_s + time.monotonic())


_log = logging.getLogger(__name__)
_kept: dict[SecurityConfig, _Kept] = {}
_lock = threading.Lock()


def bearer_token(config: SecurityConfig, options: Mapping[str, str], deadline: Deadline) -> str:
    """A token that is good for a while: a kept one, or a new one.

    Args:
        config: where tokens come from.
        options: of the login module.
        deadline: when to give up.

    Raises:
        AuthenticationFailed: the endpoint or the function refuses for good.
        ConnectionFailed: the endpoint or the function cannot be reached, or not now.
    """
    with _lock:
        kept = _kept.get(config)
    if kept is None or kept.now() >= kept.ends_at:
        return _renew(config, options, deadline)
    if kept.now() >= kept.fresh_until:
        try:
            return _renew(config, options, deadline.sooner(deadline.remaining_s / 2))
        except (AuthenticationFailed, ConnectionFailed) as error:
            left_s = kept.ends_at - kept.now()
            _log.warning("the token of before is used, for %.0f s yet: %s", left_s, error)
            _keep(config, kept._replace(fresh_until=kept.now() + _ASKED_AGAIN_S))
    return kept.token.reveal()


def _renew(config: SecurityConfig, options: Mapping[str, str], deadline: Deadline) -> str:
    token = _obtain(config, options, deadline)
    if not _TOKEN.fullmatch(token):
        raise AuthenticationFailed(_source(config), OAUTHBEARER, "what it gave is no bearer token")
    now, ends_at = time.time(), _expiry(token)
    fresh_until = now + (ends_at - now) * _LIFE_USED
    _keep(config, _Kept(Secret(token), fresh_until, ends_at, now - time.monotonic()))
    return token


def _obtain(config: SecurityConfig, options: Mapping[str, str], deadline: Deadline) -> str:
    if config.token_function:
        return _from_function(config, config.token_function, options, deadline)
    if config.sasl_token_endpoint_url:
        return _from_endpoint(config, options, deadline)
    return _unsecured(config, options)


def _keep(config: SecurityConfig, kept: _Kept) -> None:
    with _lock:
        _kept.pop(config, None)
        while len(_kept) >= _KEPT_TOKENS:
            del _kept[next(iter(_kept))]
        _kept[config] = kept


def _expiry(token: str) -> float:
    """When a token ends, by its own claim `exp`; 0 (ask again each time) where it does not say."""
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return float(claims["exp"])
    except (*_NOT_THAT_JSON, IndexError):
        return 0.0


def _source(config: SecurityConfig) -> str:
    return config.token_function or config.sasl_token_endpoint_url or "unsecured token"


# A function


def _from_function(
    config: SecurityConfig, name: str, options: Mapping[str, str], deadline: Deadline
) -> str:
    function = _find(config, name)
    try:
        token = call_within(lambda: function(dict(options)), deadline)
    except TimeoutError as error:
        raise ConnectionFailed(name, "token", str(error)) from None
    except OSError as error:  # it could not reach whom it asks; the text may hold secrets, as below
        reason = f"the function raised {type(error).__name__}"
        raise ConnectionFailed(name, "token", reason) from None
    except Exception as error:  # noqa: BLE001 - somebody else's function: anything may come
        # Its text may hold what the function was given: the type alone is safe to pass on.
        kind = type(error).__name__
        raise AuthenticationFailed(name, OAUTHBEARER, f"the function raised {kind}") from None
    if not isinstance(token, str):
        kind = type(token).__name__
        raise AuthenticationFailed(name, OAUTHBEARER, f"the function gave {kind}, expected str")
    return token


def _find(config: SecurityConfig, name: str) -> Any:
    option = config.named("sasl.login.callback.handler.class")
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        why = f"it cannot be imported here, and must be on the driver and on executors ({error})"
        raise ConfigError(option, name, why) from error


# A token endpoint


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The credentials were meant for one address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Refused(Exception):
    """The endpoint answers with another status than 200: that, its name, and the body."""

    def __init__(self, code: int, reason: str, body: bytes) -> None:
        super().__init__(code)
        self.code, self.reason, self.body = code, reason, body


def _from_endpoint(config: SecurityConfig, options: Mapping[str, str], deadline: Deadline) -> str:
    url = config.sasl_token_endpoint_url or ""
    ask = functools.partial(_post, _token_request(config, options), deadline)
    try:
        answer = call_within(ask, deadline)
    except _Refused as error:
        raise _refused(config, url, error) from None
    except (OSError, UnicodeError) as error:  # the latter of a name with parts that none has
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, ssl.SSLCertVerificationError):
            why = f"the token endpoint's certificate is not accepted ({reason.verify_message}): it "
            why += "has to be signed by an authority of this system (SSL_CERT_FILE may name a file "
            why += "of others), be valid today, and be for the host of the URL"
            raise AuthenticationFailed(url, OAUTHBEARER, why) from None
        raise ConnectionFailed(url, "token", f"{_asked(url)}: {reason}") from None
    except http.client.HTTPException as error:
        why = f"{_asked(url)} does not answer in HTTP ({type(error).__name__}): check "
        why += config.named("sasl.oauthbearer.token.endpoint.url")
        raise ConnectionFailed(url, "token", why) from None
    try:
        token = json.loads(answer)["access_token"]
    except _NOT_THAT_JSON:
        token = None
    if not isinstance(token, str):
        raise AuthenticationFailed(url, OAUTHBEARER, "its answer has no access_token")
    return token


def _token_request(config: SecurityConfig, options: Mapping[str, str]) -> urllib.request.Request:
    secret = config.sasl_oauth_client_secret
    own = {
        "clientId": config.sasl_oauth_client_id,
        "clientSecret": secret.reveal() if secret else None,
        "scope": config.sasl_oauth_scope,
    }
    # As in the Java client properties of their own go before the login module's options.
    given = dict(options) | {name: value for name, value in own.items() if value}
    for name in own.keys() & options.keys():
        if own[name]:
            jaas = config.named("sasl.jaas.config")
            said = f"{name} in {jaas} has no effect: the property sasl.oauthbearer.… says it"
            warn_once(_log, said)
    pair = [given.get("clientId", ""), given.get("clientSecret", "")]
    if config.sasl_oauth_urlencodes:
        pair = [urllib.parse.quote_plus(part) for part in pair]
    scope = given.get("scope")
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    headers = {
        "Accept": "application/json",
        "Authorization": "Basic " + base64.b64encode(":".join(pair).encode()).decode(),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    return urllib.request.Request(  # noqa: S310 - http or https, checked with the options
        config.sasl_token_endpoint_url or "",
        urllib.parse.urlencode(form).encode(),
        headers,
    )


def _post(request: urllib.request.Request, deadline: Deadline) -> bytes:
    https = urllib.request.HTTPSHandler(context=_tls_context())
    opener = urllib.request.build_opener(_NoRedirects, https)
    try:
        with opener.open(request, timeout=max(0.001, deadline.remaining_s)) as answer:
            return bytes(answer.read(_LARGEST_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        with error:  # what it says may come as slowly as any answer: it is read within the time
            raise _Refused(error.code, error.reason, error.read(_LARGEST_ANSWER_BYTES)) from None


def _tls_context() -> ssl.SSLContext:
    """Python's own, less strict from 3.13 on: as before it, as towards brokers, and as Java.

    It came to demand extensions that the certificates of many a company's authority lack.
    """
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])  # as without a context of ours
    return context


def _refused(
    config: SecurityConfig, url: str, error: _Refused
) -> AuthenticationFailed | ConnectionFailed:
    if error.code in _TRY_AGAIN:
        return ConnectionFailed(url, "token", f"{_asked(url)} answers HTTP {error.code}")
    try:
        said = json.loads(error.body)["error"]
    except _NOT_THAT_JSON:
        said = error.reason
    detail = f"{_asked(url)} answers HTTP {error.code} {str(said)[:_SHOWN_CHARACTERS]!r}"
    advice = f"check clientId, clientSecret and scope in {config.named('sasl.jaas.config')}"
    if error.code == http.HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        advice = "check the name and the password that the proxy's URL has"
    return AuthenticationFailed(url, OAUTHBEARER, f"{detail}: {advice}")


def _asked(url: str) -> str:
    """Who failed: where there is a proxy, it may be that as well."""
    parts = urllib.parse.urlsplit(url)
    name = f"{parts.scheme}_proxy"
    given = [one for one in (name, name.upper()) if os.environ.get(one)]
    if not given or urllib.request.proxy_bypass(parts.netloc):
        return "the token endpoint"
    return f"the token endpoint (asked through the proxy that {given[0]} names)"


# Unsecured


def _unsecured(config: SecurityConfig, options: Mapping[str, str]) -> str:
    now = int(time.time())
    claims: dict[str, object] = {
        name.removeprefix(_CLAIM): value
        for name, value in options.items()
        if name.startswith(_CLAIM)
    }
    if "sub" not in claims:
        name = config.named("sasl.jaas.config")
        raise ConfigError(name, HIDDEN, f'expected {_CLAIM}sub="<user>"')
    life_s = int(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    claims |= {"iat": now, "exp": now + life_s}
    if scope := options.get("scope"):
        claims["scope"] = scope
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")

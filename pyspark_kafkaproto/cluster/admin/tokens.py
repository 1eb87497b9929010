"""Delegation tokens: created, renewed, expired, and those that there are (KIP-48, KIP-373).

A token stands for its owner for a time: whoever has its id and its HMAC logs in with SCRAM as that
user, who may hand it to a job in a password's place. The HMAC is hidden like one. Brokers make
tokens for those alone whom they know by a login of their own, and not by another token.
"""

from __future__ import annotations

import base64
import binascii
import logging
import math
import re
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any, Final

from pyspark_kafkaproto.cluster.asking import Question, ask, send_all
from pyspark_kafkaproto.cluster.changing import Tries
from pyspark_kafkaproto.cluster.controller import (
    ask_controller,
    ask_controller_once,
    controller_places,
)
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.error_codes import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    DELEGATION_TOKEN_EXPIRED,
    DELEGATION_TOKEN_NOT_FOUND,
    DELEGATION_TOKEN_OWNER_MISMATCH,
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    INVALID_PRINCIPAL_TYPE,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError
from pyspark_kafkaproto.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pyspark_kafkaproto.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from pyspark_kafkaproto.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from pyspark_kafkaproto.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.net.secret import HIDDEN, Secret
from pyspark_kafkaproto.net.security import token_login

_log = logging.getLogger(__name__)

_SINCE_OWNERS = 3  # the version that takes another owner (KIP-373)
_AS_BROKERS_SAY = -1  # for a period: what they are configured with; for an end: now
_MOST_MS = 2**62  # added to the time of a broker it still is a time
_NEWS_TRAVELS_S = 10.0
_BETWEEN_LOOKS_S = 0.1
_COMMON = ("owner", "requester", "renewers")  # what tokens of one call have in common
_PRINCIPAL = re.compile("[^:]+:.+", re.DOTALL)

# What each error is about, and what to do; brokers send no text of their own.
_ADVICE: Final = {
    DELEGATION_TOKEN_AUTH_DISABLED: (
        "there are no tokens until all brokers and controllers have delegation.token.secret.key, "
        "the same one"
    ),
    DELEGATION_TOKEN_NOT_FOUND: (
        "there is no token with this HMAC: it has expired, or is of another cluster (kafkaproto "
        "tokens list shows those that there are); it is so too where a controller has no "
        "delegation.token.secret.key"
    ),
    DELEGATION_TOKEN_OWNER_MISMATCH: "its owner and its renewers alone may do that",
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "tokens are for those who log in with SASL, or with a certificate of their own, and not "
        "with a token: ask at such a listener, with user and password"
    ),
    DELEGATION_TOKEN_EXPIRED: (
        "it has expired, for good: make another one (kafkaproto tokens create)"
    ),
    INVALID_PRINCIPAL_TYPE: "renewers are users: User:<name>",
}


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token; times are milliseconds since 1970.

    Args:
        token_id: what stands for the user's name at a login.
        hmac: what stands for the password, base64; hidden, `hmac.reveal()` gives it.
        owner: whom it stands for, `User:reports`.
        requester: who had it made; brokers before Kafka 3.3 do not tell, there it is the owner.
        renewers: who may renew and expire it, beside its owner.
        issue_timestamp_ms: when it was made.
        expiry_timestamp_ms: when it expires unless it is renewed before.
        max_timestamp_ms: when it ends, however often it is renewed.
    """

    token_id: str
    hmac: Secret = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int

    def login(self, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """The client properties that log in with it: `sasl.mechanism` and `sasl.jaas.config`.

        The latter holds the HMAC as text.

        Args:
            mechanism: one of SCRAM's that the listener offers.

        Raises:
            ConfigError: it is no mechanism that takes tokens.
        """
        return token_login(self.token_id, self.hmac, mechanism)


Hmac = DelegationToken | Secret | str
"""A token, or its HMAC in base64, as Kafka's own tool prints it."""


def create_delegation_token(
    router: Router,
    owner: str | None = None,
    renewers: Collection[str] = (),
    max_lifetime_s: float | None = None,
) -> DelegationToken:
    """Make a token, and wait until the brokers know it.

    Raises:
        BrokerError: tokens are switched off, this login may not ask for any, or the right to make
            some for `owner` is missing.
        ConfigError: a principal or the lifetime is none.
    """
    # To brokers an empty name is who asks; older ones know no owners.
    whose = ("", "") if owner is None else _principal("owner", owner)
    check_set("renewers", renewers)
    renewer = CreateDelegationTokenRequest.Renewer
    request = CreateDelegationTokenRequest(
        owner_principal_type=whose[0],
        owner_principal_name=whose[1],
        renewers=tuple(
            renewer(principal_type=kind, principal_name=name)
            for kind, name in (_principal("renewers", item) for item in sorted(set(renewers)))
        ),
        max_lifetime_ms=_ms("max_lifetime_s", max_lifetime_s),
    )
    subject = "a token of this user" if owner is None else f"a token of {owner!r}"

    what, tries = "create a delegation token", Tries[str]()

    def make_request(part: list[str]) -> CreateDelegationTokenRequest:
        tries.send(part)
        return request

    def read(answer: CreateDelegationTokenResponse, part: list[str]) -> dict[str, DelegationToken]:
        tries.note_answer(what, answer.error_code)
        _check(answer, "CreateDelegationToken", subject)
        return dict.fromkeys(part, _made(answer, tuple(sorted(set(renewers)))))

    least = 0 if owner is None else _SINCE_OWNERS
    question = Question(what, make_request, read, least=least, note_unsent=tries.note_unsent)
    begun = time.monotonic()
    try:
        made = ask(router, question, [what], partial(controller_places, router))[what]
    except KafkaProtoError as error:
        if tries.is_unanswered(what) and is_retriable(error):
            error.add_line(
                "a token may have been made, whose answer was lost: kafkaproto tokens list shows it"
            )
        raise
    _await_everywhere(router, made)
    if tries.is_unanswered(what):
        _tell_of_others(router, made, time.monotonic() - begun)
    return made


def renew_delegation_token(router: Router, token: Hmac, period_s: float | None = None) -> int:
    """Have it expire later: `period_s` from now; when that is.

    Raises:
        BrokerError: there is no such token, it has expired, or this user may not renew it.
        ConfigError: it is no HMAC, or no period.
    """
    request = RenewDelegationTokenRequest(
        hmac=_hmac_bytes(token), renew_period_ms=_ms("period_s", period_s)
    )
    subject = _subject(token)

    def read(answer: RenewDelegationTokenResponse) -> int:
        _check(answer, "RenewDelegationToken", subject)
        return answer.expiry_timestamp_ms

    return ask_controller_once(router, f"renew {subject}", request, read)


def expire_delegation_token(
    router: Router, token: Hmac, after_s: float | None = None
) -> int | None:
    """Have it expire now (None), or in `after_s`; when that is, None: it is gone.

    Raises:
        BrokerError: there is no such token, it has expired, or this user may not expire it.
        ConfigError: it is no HMAC, or no time.
    """
    request = ExpireDelegationTokenRequest(
        hmac=_hmac_bytes(token), expiry_time_period_ms=_ms("after_s", after_s)
    )
    subject = _subject(token)
    expiry_ms = _AS_BROKERS_SAY

    def read(
        answer: ExpireDelegationTokenResponse, part: list[str]
    ) -> dict[str, BrokerError | None]:
        nonlocal expiry_ms
        expiry_ms = answer.expiry_timestamp_ms
        return dict.fromkeys(part, _error(answer, "ExpireDelegationToken", subject))

    question: Question[str, None] = Question(f"expire {subject}", lambda _: request, read)
    done = DELEGATION_TOKEN_NOT_FOUND if after_s is None else None
    ask_controller(router, question, [subject], done)
    return None if after_s is None else expiry_ms


def describe_delegation_tokens(
    router: Router, owners: Collection[str] | None = None
) -> list[DelegationToken]:
    """The tokens that this user may see, by owner and age; with `owners` those about one of them.

    Raises:
        BrokerError: tokens are switched off, or this login may not ask for any.
        ConfigError: one of `owners` is no principal.
    """
    if owners is not None:
        check_set("owners", owners)
        if not owners:
            return []
    deadline = router.deadline()
    request = _to_describe(owners)

    def attempt() -> list[DelegationToken]:
        return _read_described(router.ask_any(request, deadline))

    return router.retrying("describe delegation tokens", attempt, deadline)


# What is asked


def _to_describe(owners: Collection[str] | None) -> DescribeDelegationTokenRequest:
    if owners is None:
        return DescribeDelegationTokenRequest(owners=None)
    owner = DescribeDelegationTokenRequest.Owner
    named = (_principal("owners", item) for item in sorted(set(owners)))
    return DescribeDelegationTokenRequest(
        owners=tuple(owner(principal_type=kind, principal_name=name) for kind, name in named)
    )


def _principal(what: str, principal: object) -> tuple[str, str]:
    if not isinstance(principal, str) or not _PRINCIPAL.fullmatch(principal):
        raise ConfigError(what, principal, "expected a principal: User:reports")
    kind, _, name = principal.partition(":")
    return kind, name


def _ms(what: str, seconds: float | None) -> int:
    if seconds is None:
        return _AS_BROKERS_SAY
    given: object = seconds
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not math.isfinite(seconds) or not 0 < seconds * 1000 < _MOST_MS:
        raise ConfigError(what, given, "expected seconds, more than 0")
    return math.ceil(seconds * 1000)


def _hmac_bytes(token: Hmac) -> bytes:
    """What is wrong with it is told without a word of it."""
    hmac: object = token.hmac if isinstance(token, DelegationToken) else token
    text = hmac.reveal() if isinstance(hmac, Secret) else hmac
    try:
        if isinstance(text, str) and text:
            return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # the latter where it is not ASCII
        pass
    raise ConfigError("token", HIDDEN, "expected DelegationToken(…), or an HMAC in base64")


def _subject(token: Hmac) -> str:
    return f"token {token.token_id!r}" if isinstance(token, DelegationToken) else "token"


# What is answered


def _await_everywhere(router: Router, token: DelegationToken) -> None:
    """Wait until each broker that answers knows it: at the others a login with it would fail.

    The token is made, and must reach who asked for it: what fails here is a warning.
    """
    try:
        silent = _silent_about(router, token)
    except KafkaProtoError as error:
        silent = error
    if silent is not None:
        told = "token %r is made, and some brokers may not know it yet: %s"
        _log.warning(told, token.token_id, silent)


def _tell_of_others(router: Router, made: DelegationToken, within_s: float) -> None:
    """Warn of tokens that earlier tries may have made: each logs in, and nobody has been given it.

    They are left: one like it that somebody else has made meanwhile looks the same.
    """
    try:
        found = describe_delegation_tokens(router, {made.owner})
    except KafkaProtoError as error:
        _log.warning("an earlier try may have made a token beside %r: %s", made.token_id, error)
        return
    since_ms = made.issue_timestamp_ms - within_s * 1000
    for token in found:
        is_like = all(getattr(token, name) == getattr(made, name) for name in _COMMON)
        if is_like and token.token_id != made.token_id and token.issue_timestamp_ms >= since_ms:
            _log.warning(
                "token %r may be of an earlier try, whose answer was lost, beside %r: if nobody "
                "else has made it, have it expire (kafkaproto tokens expire)",
                *(token.token_id, made.token_id),
            )


def _silent_about(router: Router, token: DelegationToken) -> KafkaProtoError | None:
    """Why a broker has not told whether it knows the token; None: all know it."""
    deadline = router.deadline().sooner(_NEWS_TRAVELS_S)
    request = _to_describe({token.owner})
    places = [broker.endpoint for broker in router.topology((), deadline).brokers.values()]
    silent: KafkaProtoError | None = None
    while places:
        answers = send_all(router, [(place, request) for place in places], deadline)
        asked, places = places, []
        for place, answer in zip(asked, answers, strict=True):
            if isinstance(answer, KafkaProtoError):
                silent = answer
            elif not _knows(answer, token):
                places.append(place)
        if places:
            deadline.check("waiting for brokers to hear of a token")
            time.sleep(_BETWEEN_LOOKS_S)
    return silent


def _knows(answer: DescribeDelegationTokenResponse, token: DelegationToken) -> bool:
    """An answer that refuses tells nothing to wait for."""
    ids = {item.token_id for item in answer.tokens}
    return bool(answer.error_code) or token.token_id in ids


def _check(answer: Any, api: str, subject: str) -> None:
    """Raise the error of an answer."""
    error = _error(answer, api, subject)
    if error is not None:
        raise error


def _error(answer: Any, api: str, subject: str) -> BrokerError | None:
    code = answer.error_code
    return BrokerError(code, api, subject, _ADVICE.get(code, "")) if code else None


def _made(answer: CreateDelegationTokenResponse, renewers: tuple[str, ...]) -> DelegationToken:
    times_ms = answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms
    return _token(answer, renewers, times_ms)


def _read_described(answer: DescribeDelegationTokenResponse) -> list[DelegationToken]:
    _check(answer, "DescribeDelegationToken", "the cluster's tokens")
    found = map(_described, answer.tokens)
    return sorted(found, key=lambda item: (item.owner, item.issue_timestamp_ms, item.token_id))


def _described(item: DescribeDelegationTokenResponse.Token) -> DelegationToken:
    renewers = (f"{each.principal_type}:{each.principal_name}" for each in item.renewers)
    times_ms = item.issue_timestamp, item.expiry_timestamp, item.max_timestamp
    return _token(item, tuple(sorted(renewers)), times_ms)


def _token(
    answer: CreateDelegationTokenResponse | DescribeDelegationTokenResponse.Token,
    renewers: tuple[str, ...],
    times_ms: tuple[int, int, int],
) -> DelegationToken:
    owner = f"{answer.principal_type}:{answer.principal_name}"
    requester = answer.token_requester_principal_name
    return DelegationToken(
        answer.token_id,
        Secret(base64.b64encode(answer.hmac).decode()),
        owner,
        f"{answer.token_requester_principal_type}:{requester}" if requester else owner,
        renewers,
        *times_ms,
    )

"""Delegation tokens made, renewed, expired and listed: on the wire, and no HMAC elsewhere."""

from __future__ import annotations

import logging
import pickle
from math import inf, nan

import pytest

from pyspark_kafkaproto.cluster.admin import DelegationToken, tokens
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    KafkaProtoError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.create_delegation_token import CreateDelegationTokenResponse
from pyspark_kafkaproto.messages.describe_delegation_token import DescribeDelegationTokenResponse
from pyspark_kafkaproto.messages.expire_delegation_token import ExpireDelegationTokenResponse
from pyspark_kafkaproto.messages.renew_delegation_token import RenewDelegationTokenResponse
from pyspark_kafkaproto.net.secret import Secret
from tests.clock import stop_clock
from tests.fake_broker import close
from tests.unit.cluster.token_keeper import (
    HOUR_MS,
    LIFETIME_MS,
    NOW_MS,
    PERIOD_MS,
    TokenKeeper,
    hmac_of,
    hmac_text,
)


@pytest.fixture
def keeper(brokers):
    return TokenKeeper().keep(brokers)


@pytest.fixture
def clock(monkeypatch):
    """Time between looks at brokers."""
    return stop_clock(monkeypatch, tokens)


def test_a_token_of_ones_own(brokers, kafka, keeper):
    brokers.controller = 2
    made = kafka.create_delegation_token()
    assert made == DelegationToken(
        token_id="id-1",
        hmac=Secret(hmac_text("id-1")),
        owner="User:reports",
        requester="User:reports",
        renewers=(),
        issue_timestamp_ms=NOW_MS,
        expiry_timestamp_ms=NOW_MS + PERIOD_MS,
        max_timestamp_ms=NOW_MS + LIFETIME_MS,
    )
    (request,) = brokers.asked("CreateDelegationToken", node=2)
    assert (request.owner_principal_type, request.owner_principal_name) == ("", "")
    assert (request.renewers, request.max_lifetime_ms) == ((), -1)


def test_a_token_of_another_user(brokers, kafka, keeper):
    made = kafka.create_delegation_token("User:a:b", {"User:y", "User:x"}, 0.0015)
    assert (made.owner, made.requester) == ("User:a:b", "User:reports")
    assert made.renewers == ("User:x", "User:y")
    assert made.max_timestamp_ms == made.expiry_timestamp_ms == NOW_MS + 2
    (request,) = brokers.asked("CreateDelegationToken")
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "a:b")
    assert [item.principal_name for item in request.renewers] == ["x", "y"]
    assert request.max_lifetime_ms == 2


def test_a_broker_that_knows_no_owners_makes_no_token_of_ones_own_instead(brokers, kafka, keeper):
    brokers.versions |= {"CreateDelegationToken": (1, 2)}
    with pytest.raises(UnsupportedVersion, match="CreateDelegationToken"):
        kafka.create_delegation_token("User:a")
    assert keeper.tokens == {}
    assert kafka.create_delegation_token().requester == "User:reports"


@pytest.mark.usefixtures("clock")
def test_each_broker_is_waited_for_until_it_knows_the_token(brokers, kafka, keeper):
    """A login at one that does not would fail, and failed logins are not tried again."""
    keeper.late = {2: 3}
    kafka.create_delegation_token("User:a")
    assert len(brokers.asked("DescribeDelegationToken", node=1)) == 1
    asked = brokers.asked("DescribeDelegationToken", node=2)
    assert len(asked) == 4
    assert [item.principal_name for item in asked[0].owners] == ["a"]


@pytest.mark.parametrize(
    "answer", [DescribeDelegationTokenResponse(error_code=64), close()], ids=["refuses", "is away"]
)
def test_a_broker_that_cannot_tell_is_not_waited_for(brokers, kafka, keeper, answer):
    brokers.on("DescribeDelegationToken", answer, node=2)
    assert kafka.create_delegation_token().token_id == "id-1"


def test_a_token_that_brokers_do_not_hear_of_is_given_all_the_same(
    brokers, kafka, keeper, monkeypatch, caplog
):
    monkeypatch.setattr(tokens, "_NEWS_TRAVELS_S", 0.02)
    monkeypatch.setattr(tokens, "_BETWEEN_LOOKS_S", 0.001)
    keeper.late = {1: 10**9}
    assert kafka.create_delegation_token().token_id == "id-1"
    assert "token 'id-1' is made, and some brokers may not know it yet" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_token_whose_answer_is_lost_is_told_of(brokers, kafka, keeper, caplog, is_lost):
    keeper.now_ms = NOW_MS - 3_600_000
    kafka.create_delegation_token()  # an earlier one
    keeper.now_ms = NOW_MS

    def lose(call):
        keeper.create(call)
        return close()

    def make_two(call):
        keeper.create(call)  # of somebody else
        return keeper.create(call)

    brokers.on("CreateDelegationToken", *([lose, keeper.create] if is_lost else [make_two]))
    assert kafka.create_delegation_token().token_id == "id-3"
    told = "token 'id-2' may be of an earlier try, whose answer was lost, beside 'id-3'"
    assert (told in caplog.text) == is_lost
    assert "'id-1'" not in caplog.text


@pytest.mark.slow
def test_a_token_that_may_have_been_made_is_told_of(brokers, kafka_at, keeper):
    brokers.on("CreateDelegationToken", close())
    kafka = kafka_at(brokers.bootstrap_servers, **{"default.api.timeout.ms": "500"})
    with pytest.raises(KafkaProtoError, match=r"may have been made.*tokens list shows it"):
        kafka.create_delegation_token()


@pytest.mark.slow
def test_who_could_not_ask_for_a_token_is_not_told_of_one(brokers, kafka_at, keeper):
    brokers.stop(1)  # the controller
    kafka = kafka_at(brokers.address(2), **{"default.api.timeout.ms": "500"})
    with pytest.raises(ConnectionFailed) as caught:
        kafka.create_delegation_token()
    assert "may have been made" not in str(caught.value)


def test_renewed_by_the_token_or_by_its_hmac(brokers, kafka, keeper):
    token = kafka.create_delegation_token()
    keeper.now_ms += HOUR_MS
    assert kafka.renew_delegation_token(token) == NOW_MS + HOUR_MS + PERIOD_MS
    assert kafka.renew_delegation_token(token.hmac, 60) == NOW_MS + HOUR_MS + 60_000
    assert kafka.renew_delegation_token(token.hmac.reveal(), 1) == NOW_MS + HOUR_MS + 1000
    asked = brokers.asked("RenewDelegationToken")
    assert [item.renew_period_ms for item in asked] == [-1, 60_000, 1000]
    assert {item.hmac for item in asked} == {hmac_of("id-1")}


def test_expired_later_and_at_once(brokers, kafka, keeper):
    token = kafka.create_delegation_token()
    assert kafka.expire_delegation_token(token, 60) == NOW_MS + 60_000
    assert kafka.describe_delegation_tokens()[0].expiry_timestamp_ms == NOW_MS + 60_000
    assert kafka.expire_delegation_token(token) is None
    assert kafka.describe_delegation_tokens() == []
    asked = brokers.asked("ExpireDelegationToken")
    assert [item.expiry_time_period_ms for item in asked] == [60_000, -1]
    with pytest.raises(BrokerError, match=r"token 'id-1' at.*_NOT_FOUND.*no token with this HMAC"):
        kafka.expire_delegation_token(token)


@pytest.mark.slow
def test_one_that_an_earlier_try_may_have_expired(brokers, kafka, keeper):
    token = kafka.create_delegation_token()
    brokers.on("ExpireDelegationToken", close(), ExpireDelegationTokenResponse(error_code=62))
    with pytest.raises(BrokerError, match="an earlier try may have done it"):
        kafka.expire_delegation_token(token)


@pytest.mark.slow
def test_the_controller_that_moved_is_found(brokers, kafka, keeper):
    def move(_):
        brokers.controller = 2
        return CreateDelegationTokenResponse(error_code=41)

    brokers.on("CreateDelegationToken", move, node=1)
    assert kafka.create_delegation_token().token_id == "id-1"
    assert len(brokers.asked("CreateDelegationToken", node=2)) == 1


def test_listed_by_owner_and_age(brokers, kafka, keeper):
    for owner, now_ms in (("User:b", 5), ("User:a", 7), ("User:a", 6)):
        keeper.now_ms = NOW_MS + now_ms
        kafka.create_delegation_token(owner, {"User:r2", "User:r1"})
    found = kafka.describe_delegation_tokens()
    assert [(item.owner, item.token_id) for item in found] == [
        *(("User:a", "id-3"), ("User:a", "id-2"), ("User:b", "id-1"))
    ]
    assert found[0].renewers == ("User:r1", "User:r2")
    assert found[0].hmac.reveal() == hmac_text("id-3")
    assert [item.token_id for item in kafka.describe_delegation_tokens({"User:b"})] == ["id-1"]
    before = len(brokers.asked("DescribeDelegationToken"))
    assert kafka.describe_delegation_tokens(set()) == []  # nobody is not everybody
    assert len(brokers.asked("DescribeDelegationToken")) == before


def test_of_an_old_broker_the_owner_is_who_asked(brokers, kafka, keeper):
    brokers.versions |= {"DescribeDelegationToken": (1, 2), "CreateDelegationToken": (1, 2)}
    kafka.create_delegation_token()
    assert kafka.describe_delegation_tokens()[0].requester == "User:reports"


REFUSALS = {
    61: "delegation.token.secret.key, the same one",
    64: "log in with SASL, or with a certificate of their own, and not with a token",
    65: "this user needs the right CREATE_TOKENS on the user",
    67: "renewers are users: User:<name>",
}


@pytest.mark.parametrize("code", REFUSALS)
def test_what_is_refused_says_what_to_do(brokers, kafka, code):
    brokers.on("CreateDelegationToken", CreateDelegationTokenResponse(error_code=code))
    with pytest.raises(BrokerError, match=r"a token of 'User:a' at broker") as caught:
        kafka.create_delegation_token("User:a")
    assert REFUSALS[code] in str(caught.value)
    if code in {61, 64}:
        brokers.on("DescribeDelegationToken", DescribeDelegationTokenResponse(error_code=code))
        with pytest.raises(BrokerError) as caught:
            kafka.describe_delegation_tokens()
        assert REFUSALS[code] in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (62, "no token with this HMAC: it has expired"),
        (63, "its owner and its renewers alone"),
        (66, "make another one"),
        (99, "POSITION_OUT_OF_RANGE"),
    ],
)
def test_a_renewal_that_is_refused_says_what_to_do(brokers, kafka, code, said):
    brokers.on("RenewDelegationToken", RenewDelegationTokenResponse(error_code=code))
    with pytest.raises(BrokerError, match=said) as caught:
        kafka.renew_delegation_token(hmac_text("id-1"))
    assert hmac_text("id-1") not in str(caught.value)


@pytest.mark.parametrize("owner", ["reports", "User:", ":reports", "", 5])
def test_what_is_no_principal(brokers, kafka, owner):
    for ask in (
        lambda: kafka.create_delegation_token(owner),
        lambda: kafka.create_delegation_token(None, [owner]),
        lambda: kafka.describe_delegation_tokens([owner]),
    ):
        with pytest.raises(ConfigError, match="expected a principal: User:reports"):
            ask()
    assert brokers.calls == []


def test_one_principal_is_no_set_of_them(kafka):
    with pytest.raises(ConfigError, match="expected a set"):
        kafka.create_delegation_token(None, "User:a")
    with pytest.raises(ConfigError, match="expected a set"):
        kafka.describe_delegation_tokens("User:a")


@pytest.mark.parametrize("seconds", [0, -1, nan, inf, 1e17, True, "7d"])
def test_what_is_no_time(brokers, kafka, seconds):
    for ask in (
        lambda: kafka.create_delegation_token(max_lifetime_s=seconds),
        lambda: kafka.renew_delegation_token(hmac_text("id-1"), seconds),
        lambda: kafka.expire_delegation_token(hmac_text("id-1"), seconds),
    ):
        with pytest.raises(ConfigError, match="expected seconds, more than 0"):
            ask()
    assert brokers.calls == []


@pytest.mark.parametrize("hmac", ["", "no base64!", "gehéim", Secret(""), b"geheim", None])
def test_what_is_no_hmac_is_not_shown(brokers, kafka, hmac):
    with pytest.raises(ConfigError, match="an HMAC in base64") as caught:
        kafka.renew_delegation_token(hmac)
    assert "geh" not in str(caught.value)
    assert "base64!" not in str(caught.value)
    assert brokers.calls == []


def test_the_hmac_is_shown_nowhere(brokers, kafka, keeper, caplog):
    with caplog.at_level(logging.DEBUG):
        token = kafka.create_delegation_token()
        kafka.renew_delegation_token(token)
        kafka.describe_delegation_tokens()
        kafka.expire_delegation_token(token)
    shown = f"{token} {token!r} {caplog.text} {brokers.asked('RenewDelegationToken')}"
    assert hmac_text("id-1") not in shown
    assert repr(hmac_of("id-1")) not in shown
    assert pickle.loads(pickle.dumps(token)) == token


def test_what_logs_in_with_it(kafka, keeper):
    assert kafka.create_delegation_token().login("SCRAM-SHA-256") == {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="id-1" password="{hmac_text("id-1")}" tokenauth="true";',
    }

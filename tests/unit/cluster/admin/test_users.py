"""SCRAM users listed, set and deleted: salted passwords on the wire, and no password elsewhere."""

from __future__ import annotations

import hashlib
import logging
import pickle

import pytest

from pyspark_kafkaproto.cluster.admin import ScramCredential
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DeadlineExceeded
from pyspark_kafkaproto.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
)
from pyspark_kafkaproto.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
)
from pyspark_kafkaproto.net.secret import Secret
from tests.fake_broker import close, late

PASSWORD = "gehéim ☃"
NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
BOTH = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}


def described(code=0, message=None, **users):
    """Of each user an error code, or mechanisms with iterations."""
    part = DescribeUserScramCredentialsResponse.Result
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=message,
        results=tuple(
            part(user=user, error_code=own)
            if isinstance(own, int)
            else part(
                user=user,
                credential_infos=tuple(
                    part.CredentialInfo(mechanism=NUMBERS.get(name, 9), iterations=rounds)
                    for name, rounds in own.items()
                ),
            )
            for user, own in users.items()
        ),
    )


def altered(**codes):
    part = AlterUserScramCredentialsResponse.Result
    results = (part(user=user, error_code=code) for user, code in codes.items())
    return AlterUserScramCredentialsResponse(results=tuple(results))


def well(call):
    """All of it is done."""
    changes = (*call.request.upsertions, *call.request.deletions)
    return altered(**{item.name: 0 for item in changes})


def test_all_users_are_asked_for_by_naming_none(brokers, kafka):
    """A null instead is never answered where the right is missing (the broker fails over it)."""
    brokers.controller = 2
    brokers.on("DescribeUserScramCredentials", described(b=BOTH, a={"SCRAM-SHA-512": 4096}))
    assert kafka.describe_users() == {"a": {"SCRAM-SHA-512": 4096}, "b": BOTH}
    (request,) = brokers.asked("DescribeUserScramCredentials", node=2)
    assert request.users == ()


def test_named_users_alone_are_asked_about_and_nobody_is_not_everybody(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a=BOTH))
    assert kafka.describe_users({"a"}) == {"a": BOTH}
    (request,) = brokers.asked("DescribeUserScramCredentials")
    assert [item.name for item in request.users] == ["a"]
    assert kafka.describe_users(set()) == {}
    kafka.delete_users(set())
    kafka.set_users(())
    assert len(brokers.asked("DescribeUserScramCredentials")) == 1
    assert brokers.asked("AlterUserScramCredentials") == []


@pytest.mark.slow
def test_user_without_credentials_is_named_and_the_others_are_told(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a=BOTH, b=91))
    with pytest.raises(BrokerError, match=r"user 'b'.*RESOURCE_NOT_FOUND.*no such cred") as caught:
        kafka.describe_users({"a", "b"})
    assert caught.value.usable == {"a": BOTH}


@pytest.mark.slow
def test_user_who_was_made_just_now_is_news_to_some_brokers(brokers, kafka, clock):
    brokers.on("DescribeUserScramCredentials", described(a=91), described(a=BOTH))
    assert kafka.describe_users({"a"}) == {"a": BOTH}
    brokers.on("DescribeUserScramCredentials", described(a=91), described(a=BOTH))
    brokers.on("AlterUserScramCredentials", well)
    kafka.delete_users({"a"})
    assert len(brokers.asked("AlterUserScramCredentials")) == 2  # for each mechanism


@pytest.mark.slow
def test_who_is_looked_up_and_deleted_has_the_time_of_one_call(brokers, kafka_at):
    """Each of the two had all of it."""
    there = described(a={"SCRAM-SHA-512": 4096})
    brokers.on("DescribeUserScramCredentials", late(brokers, there, 0.6))
    brokers.on("AlterUserScramCredentials", late(brokers, well, 0.6))
    kafka = kafka_at(brokers.bootstrap_servers, **{"default.api.timeout.ms": "900"})
    with pytest.raises(DeadlineExceeded, match="it may have been done all the same"):
        kafka.delete_users({"a"})


def test_missing_rights_are_named(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(code=31, message="Request Request(…)"))
    with pytest.raises(BrokerError, match=r"\(31\): this user needs the right DESCRIBE on the clu"):
        kafka.describe_users()
    brokers.on("AlterUserScramCredentials", altered(a=31))
    with pytest.raises(BrokerError, match=r"\(31\): this user needs the right ALTER on the clust"):
        kafka.set_users({ScramCredential("a", PASSWORD)})


def test_one_error_among_all_users_is_told(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a=BOTH, b=-1))
    with pytest.raises(BrokerError, match=r"user 'b'.*UNKNOWN_SERVER_ERROR"):
        kafka.describe_users()


def test_mechanism_of_a_later_kafka_is_shown_as_a_number(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a={"SCRAM-SHA-3": 5000}))
    assert kafka.describe_users() == {"a": {"(9)": 5000}}
    with pytest.raises(ConfigError, match=r"'\(9\)': expected one of SCRAM-SHA-256, SCRAM"):
        kafka.delete_users({"a"})


def test_password_goes_salted_and_each_time_anew(brokers, kafka):
    brokers.controller = 2
    brokers.on("AlterUserScramCredentials", well)
    one = ScramCredential("a", PASSWORD, "SCRAM-SHA-256", 5000)
    kafka.set_users([one])
    kafka.set_users([one])
    first, second = (
        item.upsertions[0] for item in brokers.asked("AlterUserScramCredentials", node=2)
    )
    assert (first.name, first.mechanism, first.iterations) == ("a", 1, 5000)
    assert len(first.salt) >= 16
    assert first.salted_password == hashlib.pbkdf2_hmac(
        "sha256", PASSWORD.encode(), first.salt, 5000
    )
    assert first.salt != second.salt


def test_salt_is_the_same_in_another_try(brokers, kafka, clock):
    """Two brokers that have heard of one each would let the user in by luck."""
    brokers.on("AlterUserScramCredentials", altered(a=7), well)
    kafka.set_users([ScramCredential("a", PASSWORD)])
    first, second = brokers.asked("AlterUserScramCredentials")
    assert first == second


@pytest.mark.slow
def test_no_request_changes_a_user_twice(brokers, kafka):
    """Controllers refuse that, and their answers tell users apart, not mechanisms."""
    brokers.on("AlterUserScramCredentials", well)
    kafka.set_users(
        ScramCredential(user, PASSWORD, mechanism) for user in "ab" for mechanism in NUMBERS
    )
    brokers.on("DescribeUserScramCredentials", described(a=BOTH, b={"SCRAM-SHA-256": 4096}))
    kafka.delete_users({"a", "b"})
    done = [
        [(item.name, item.mechanism) for item in (*request.upsertions, *request.deletions)]
        for request in brokers.asked("AlterUserScramCredentials")
    ]
    assert done == [[("a", 1), ("b", 1)], [("a", 2), ("b", 2)], [("a", 1), ("b", 1)], [("a", 2)]]


def test_one_that_is_refused_is_named_and_the_others_are_set(brokers, kafka):
    brokers.on("AlterUserScramCredentials", altered(a=0, b=93))
    with pytest.raises(
        BrokerError, match=r"user 'b', SCRAM-SHA-512 at.*UNACCEPTABLE_CREDENTIAL"
    ) as caught:
        kafka.set_users({ScramCredential("a", PASSWORD), ScramCredential("b", PASSWORD)})
    assert set(caught.value.usable) == {("a", "SCRAM-SHA-512")}


def test_old_metadata_version_is_said_by_the_broker(brokers, kafka):
    part = AlterUserScramCredentialsResponse.Result
    old = part(user="a", error_code=35, error_message="The current metadata version 3.4 …")
    brokers.on("AlterUserScramCredentials", AlterUserScramCredentialsResponse(results=(old,)))
    with pytest.raises(BrokerError, match=r"UNSUPPORTED_VERSION.*current metadata version 3\.4"):
        kafka.set_users({ScramCredential("a", PASSWORD)})


def test_nothing_is_deleted_where_users_have_not_got_the_mechanism(brokers, kafka, clock):
    own = {"SCRAM-SHA-512": 4096}
    brokers.on("DescribeUserScramCredentials", described(a=BOTH, b=own, c=own, d=91))
    with pytest.raises(BrokerError, match="no such credential") as caught:
        kafka.delete_users(set("abcd"), {"SCRAM-SHA-256"})
    told = str(caught.value)
    assert all(name in told for name in ("user 'd'", "'b', SCRAM-SHA-256", "'c', SCRAM-SHA-256"))
    assert "'a'" not in told
    assert (caught.value.code, caught.value.usable) == (91, None)
    assert brokers.asked("AlterUserScramCredentials") == []


def test_what_keeps_credentials_from_being_seen_is_told(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(code=31))
    with pytest.raises(BrokerError, match="the right DESCRIBE on the cluster"):
        kafka.delete_users({"a"}, {"SCRAM-SHA-256"})


def test_mechanism_that_one_broker_has_yet_to_hear_of_is_deleted(brokers, kafka, clock):
    own = {"SCRAM-SHA-512": 4096}
    brokers.on("DescribeUserScramCredentials", described(a=own), described(a=BOTH))
    brokers.on("AlterUserScramCredentials", well)
    assert kafka.delete_users({"a"}, {"SCRAM-SHA-256"}) == {("a", "SCRAM-SHA-256")}


def test_what_would_be_deleted_is_told_before(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a=BOTH))
    both = {("a", "SCRAM-SHA-256"), ("a", "SCRAM-SHA-512")}
    assert kafka.delete_users({"a"}, dry_run=True) == both
    assert kafka.delete_users({"a"}, {"SCRAM-SHA-512"}, dry_run=True) == {("a", "SCRAM-SHA-512")}
    assert kafka.delete_users({"a"}, ()) == set()
    assert brokers.asked("AlterUserScramCredentials") == []


@pytest.mark.slow
def test_what_is_looked_up_before_a_deletion_is_not_told_as_done(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a=BOTH, b=91))
    with pytest.raises(BrokerError, match="user 'b'") as caught:
        kafka.delete_users({"a", "b"})
    assert caught.value.usable is None
    assert brokers.asked("AlterUserScramCredentials") == []


@pytest.mark.slow
def test_what_an_earlier_try_may_have_deleted_is_said(brokers, kafka):
    brokers.on("DescribeUserScramCredentials", described(a=BOTH))
    brokers.on("AlterUserScramCredentials", close(), altered(a=91))
    with pytest.raises(BrokerError, match=r"no such credential.*; an earlier try may have done it"):
        kafka.delete_users({"a"}, {"SCRAM-SHA-256"})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"user": ""}, "'user' is ''"),
        ({"user": None}, "'user' is missing"),
        ({"user": "jürgen"}, "'jürgen': brokers let only names of ASCII characters log in"),
        ({"user": "a\0b"}, "names of ASCII characters"),
        ({"mechanism": "PLAIN"}, "'PLAIN': expected one of SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"iterations": 4095}, "4095: expected 4096 to 16384"),
        ({"iterations": 16385}, "16385: expected 4096 to 16384"),
        ({"iterations": "5000"}, "'5000': expected 4096 to 16384"),
        ({"password": ""}, "'password' is '.not shown.': expected a password, it is empty"),
        ({"password": "geh\udcff"}, "'.not shown.': expected text that can be UTF-8"),
        ({"password": PASSWORD.encode()}, "'password' is '.not shown.': expected text"),
    ],
)
def test_wrong_credentials_are_refused_here(wrong, said):
    with pytest.raises(ConfigError, match=said) as caught:
        ScramCredential(**({"user": "a", "password": PASSWORD} | wrong))
    assert "geh" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_one_password_for_each(kafka):
    twice = [ScramCredential("a", "one"), ScramCredential("a", "two")]
    with pytest.raises(ConfigError, match="'a': it is given twice for SCRAM-SHA-512"):
        kafka.set_users(twice)
    with pytest.raises(ConfigError, match="expected a set of names"):
        kafka.describe_users("reports")
    with pytest.raises(ConfigError, match="'PLAIN'"):
        kafka.delete_users({"a"}, {"PLAIN"})
    with pytest.raises(ConfigError, match=r"'credentials'.*expected a set of Scram"):
        kafka.set_users(twice[0])
    for wrong in ({"a": PASSWORD}, {("a", PASSWORD)}, [PASSWORD]):
        with pytest.raises(ConfigError, match=r"ScramCredential\(user, ") as caught:
            kafka.set_users(wrong)
        assert PASSWORD not in str(caught.value)


def test_password_is_nowhere_to_be_seen(brokers, kafka, caplog):
    brokers.on("AlterUserScramCredentials", altered(a=93))
    credential = ScramCredential("a", PASSWORD)
    with caplog.at_level(logging.DEBUG), pytest.raises(BrokerError) as caught:
        kafka.set_users({credential})
    (request,) = brokers.asked("AlterUserScramCredentials")
    salted = repr(request.upsertions[0].salted_password)
    for shown in (repr(credential), str(caught.value), caplog.text, repr(request)):
        assert "geh" not in shown
        assert salted not in shown
    assert ScramCredential("a", Secret(PASSWORD)) == credential
    assert pickle.loads(pickle.dumps(credential)) == credential

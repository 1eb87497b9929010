"""SASL conversations: RFC's own examples, and brokers that are not what they should be."""

import base64
import hashlib
import hmac

import pytest

from pyspark_kafkaproto.net import sasl
from pyspark_kafkaproto.net.sasl import SaslRefused

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def rfc():
    return sasl.scram("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_plain_is_name_and_password_in_one_message():
    conversation = sasl.plain("jürgen", "pass")
    assert next(conversation) == "\0jürgen\0pass".encode()
    with pytest.raises(StopIteration):
        conversation.send(b"")


def test_scram_is_the_rfcs_example():
    conversation = rfc()
    assert next(conversation) == f"n,,n=user,r={NONCE}".encode()
    assert conversation.send(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
    with pytest.raises(StopIteration):
        conversation.send(SERVER_FINAL.encode())


@pytest.mark.parametrize("is_token", [False, True])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_proves_a_password_that_the_server_has_salted(mechanism, is_token):
    """The extension that a token has is among what is signed."""
    algorithm = mechanism[6:].replace("-", "").lower()
    password, salt = "ﬁ, = ☃", b"salt"
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, 5000)
    conversation = sasl.scram(mechanism, "a,b=c", password, is_token=is_token)
    first = next(conversation).decode()
    assert first.startswith("n,,n=a=2Cb=3Dc,r=")
    nonce, _, extension = first[first.index("r=") :].partition(",")
    assert extension == ("tokenauth=true" if is_token else "")
    challenge = f"{nonce}more,s={base64.b64encode(salt).decode()},i=5000"
    final = conversation.send(challenge.encode()).decode()
    bare, _, proof = final.rpartition(",p=")
    message = f"{first[3:]},{challenge},{bare}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), message, algorithm)
    proved = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert proved == client_key
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    verifier = base64.b64encode(hmac.digest(server_key, message, algorithm))
    with pytest.raises(StopIteration):
        conversation.send(b"v=" + verifier)


def test_every_exchange_has_a_nonce_of_its_own():
    assert next(sasl.scram("SCRAM-SHA-256", "u", "p")) != next(
        sasl.scram("SCRAM-SHA-256", "u", "p")
    )


@pytest.mark.parametrize(
    ("challenge", "said"),
    [
        (SERVER_FIRST.replace("rOpr", "xxxx"), "does not continue ours"),
        (SERVER_FIRST.replace("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", ""), "does not continue ours"),
        (SERVER_FIRST.replace("4096", "4095"), "'4095' iterations: 4096 to 100000"),
        (SERVER_FIRST.replace("4096", "2147483647"), "iterations: 4096 to 100000"),
        (SERVER_FIRST.replace("4096", "9" * 5000), "iterations"),
        (SERVER_FIRST.replace("4096", "-1"), "iterations"),
        (SERVER_FIRST.replace("W22Z", "§"), "not base64"),
        (SERVER_FIRST.replace(",i=4096", ""), "parts r, s, i"),
        ("m=ext," + SERVER_FIRST, "parts r, s, i"),
        ("e=unknown-user", "the broker answers 'unknown-user'"),
        ("", "parts r, s, i"),
        ("\udcff", "parts r, s, i"),
    ],
)
def test_a_challenge_that_is_wrong_is_refused(challenge, said):
    conversation = rfc()
    next(conversation)
    with pytest.raises(SaslRefused) as caught:
        conversation.send(challenge.encode("utf-8", "surrogateescape"))
    assert said in str(caught.value)
    assert "pencil" not in str(caught.value)


def test_the_most_rounds_that_are_accepted_are_made():
    conversation = rfc()
    next(conversation)
    assert conversation.send(SERVER_FIRST.replace("4096", "100000").encode()).startswith(b"c=biws,")


def test_words_of_a_broker_are_cut():
    conversation = rfc()
    next(conversation)
    with pytest.raises(SaslRefused) as caught:
        conversation.send(f"e={'x' * 150}\n{'y' * 150}".encode())
    assert str(caught.value) == f"the broker answers '{'x' * 150}\\n{'y' * 49}'"


@pytest.mark.parametrize("final", [SERVER_FINAL.replace("6rri", "7rri"), "v=", "", "e=other-error"])
def test_a_broker_that_does_not_know_the_password_is_refused(final):
    conversation = rfc()
    next(conversation)
    conversation.send(SERVER_FIRST.encode())
    with pytest.raises(SaslRefused, match=r"signature|parts v|other-error"):
        conversation.send(final.encode())


def test_oauthbearer_sends_token_and_extensions():
    conversation = sasl.oauthbearer("a.b.c", {"logicalCluster": "lkc-1"})
    assert next(conversation) == b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc-1\x01\x01"
    with pytest.raises(StopIteration):
        conversation.send(b"")


def test_a_refused_token_is_acknowledged_first():
    conversation = sasl.oauthbearer("a.b.c", {})
    next(conversation)
    assert conversation.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslRefused, match="does not accept the token: 'invalid_token'"):
        conversation.send(b"")


@pytest.mark.parametrize("refusal", [b"no json", b"[1]", b"\xff", b"[" * 99_999])
def test_a_refusal_may_be_anything(refusal):
    conversation = sasl.oauthbearer("a.b.c", {})
    next(conversation)
    conversation.send(refusal)
    with pytest.raises(SaslRefused):
        conversation.send(b"")

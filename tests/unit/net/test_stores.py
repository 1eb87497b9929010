"""Trust stores and key stores: PEM in files and texts, PKCS12, JKS refused."""

import pickle
import sys
import tempfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.net.stores import own_identity, trusted_certificates
from pyspark_kafkaproto.net.tls import make_context
from tests.certificates import Authority

SSL = {"bootstrap.servers": "b:1", "security.protocol": "SSL"}


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def me(authority):
    return authority.issue("me")


def config(**properties):
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return ClientConfig.parse(SSL | named)


@pytest.mark.slow
def test_nothing_given_means_the_systems_authorities_and_no_own_key():
    assert trusted_certificates(config()) is None
    assert own_identity(config()) is None
    assert make_context(config()).check_hostname


@pytest.mark.parametrize("kind", [None, "PEM", "JKS"])
def test_a_pem_file_is_known_by_its_content(authority, tmp_path, kind):
    more = {} if kind is None else {"ssl_truststore_type": kind}
    found = config(ssl_truststore_location=authority.pem_file(tmp_path / "ca"), **more)
    assert len(make_context(found).get_ca_certs()) == 1


@pytest.mark.parametrize("joint", [" ", "", "\\n"])
def test_pem_text_may_be_one_line(authority, me, joint):
    def flat(pem):
        return pem.strip().replace("\n", joint)

    found = config(
        ssl_truststore_certificates=flat(authority.pem),
        ssl_keystore_key=flat(me.key_pem("pw")),
        ssl_keystore_certificate_chain=flat(me.chain_pem),
        ssl_key_password="pw",
    )
    assert len(make_context(found).get_ca_certs()) == 1


@pytest.mark.slow
def test_a_pkcs12_key_store_without_a_key_is_named(authority, tmp_path):
    path = authority.pkcs12_file(tmp_path / "ca.p12", "pw")
    found = config(ssl_keystore_location=path, ssl_keystore_password="pw")
    with pytest.raises(ConfigError, match=r"keystore\.location.*ca\.p12.*holds no private key"):
        own_identity(found)


@pytest.mark.slow
def test_pkcs12_stores_are_opened(authority, me, tmp_path):
    found = config(
        ssl_truststore_location=authority.pkcs12_file(tmp_path / "ca.p12", "pw"),
        ssl_truststore_password="pw",
        ssl_keystore_location=me.pkcs12_file(tmp_path / "me.p12", "pw"),
        ssl_keystore_password="pw",
    )
    assert len(make_context(found).get_ca_certs()) == 1
    assert "PRIVATE KEY" in own_identity(found).pem.reveal()
    assert "PRIVATE" not in repr(own_identity(found))


@pytest.mark.parametrize(
    ("password", "said"), [("wrong", "does not open"), (None, "required to open")]
)
def test_pkcs12_with_a_wrong_password_says_which_property(me, tmp_path, password, said):
    more = {} if password is None else {"ssl_keystore_password": password}
    found = config(ssl_keystore_location=me.pkcs12_file(tmp_path / "me.p12", "pw"), **more)
    with pytest.raises(ConfigError, match=said) as caught:
        own_identity(found)
    assert caught.value.option == "ssl.keystore.password"
    assert (" is missing: " in str(caught.value)) == (password is None)


def test_pkcs12_without_the_extra_says_what_to_install(me, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    found = config(ssl_keystore_location=me.pkcs12_file(tmp_path / "my key.p12", "pw"))
    with pytest.raises(ConfigError, match=r"pip install 'pyspark-kafkaproto\[tls\]'") as caught:
        own_identity(found)
    assert f"openssl pkcs12 -in '{tmp_path}/my key.p12' -out" in str(caught.value)


@pytest.mark.parametrize(
    ("store", "read", "command"),
    [
        ("truststore", trusted_certificates, "keytool -list -rfc -keystore '{0}' > ca.pem"),
        ("keystore", own_identity, "-importkeystore -srckeystore '{0}' -destkeystore '{0}'.p12"),
    ],
)
def test_jks_is_refused_with_the_command_that_converts_it(tmp_path, store, read, command):
    file = tmp_path / "my store.jks"
    file.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    found = config(**{f"ssl_{store}_location": str(file)})
    with pytest.raises(ConfigError) as caught:
        read(found)
    assert caught.value.option == f"ssl.{store}.location"
    assert command.format(file) in str(caught.value)


@pytest.mark.parametrize("read", [trusted_certificates, own_identity])
@pytest.mark.parametrize("end", ["", "\0"])
def test_a_file_that_is_not_there_is_named(read, end):
    found = config(ssl_truststore_location="/no/ca" + end, ssl_keystore_location="/no/key" + end)
    with pytest.raises(ConfigError, match=r"/no/.*on every executor"):
        read(found)


@pytest.mark.parametrize("password", [None, "pw"])
@pytest.mark.parametrize("kind", ["garbage", "nothing", "DER"])
def test_what_is_no_store_is_refused(authority, tmp_path, kind, password):
    file = tmp_path / "x"
    der = authority.certificate.public_bytes(Encoding.DER)
    file.write_bytes({"garbage": b"garbage", "nothing": b"", "DER": der}[kind])
    more = {} if password is None else {"ssl_truststore_password": password}
    with pytest.raises(ConfigError, match="neither PEM nor PKCS12: expected") as caught:
        trusted_certificates(config(ssl_truststore_location=str(file), **more))
    assert (caught.value.option, caught.value.value) == ("ssl.truststore.location", str(file))


@pytest.mark.parametrize("lacking", ["PRIVATE KEY", "CERTIFICATE"])
def test_a_key_store_without_one_half_is_named(me, tmp_path, lacking):
    file = tmp_path / "my.pem"
    file.write_text(me.chain_pem if lacking == "PRIVATE KEY" else me.key_pem())
    with pytest.raises(ConfigError, match=f"there is no {lacking} in it") as caught:
        make_context(config(ssl_keystore_location=str(file)))
    assert (caught.value.option, caught.value.value) == ("ssl.keystore.location", str(file))


def test_what_is_no_pem_text_is_refused():
    with pytest.raises(ConfigError, match="expected PEM"):
        trusted_certificates(config(ssl_truststore_certificates="garbage"))


@pytest.mark.parametrize(
    "pem", ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "-----BEGIN X-----"]
)
def test_a_trust_store_without_a_certificate_is_refused(tmp_path, pem):
    file = tmp_path / "x"
    file.write_text(pem)
    with pytest.raises(ConfigError) as caught:
        make_context(config(ssl_truststore_location=str(file)))
    assert caught.value.option == "ssl.truststore.location"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("password", "said"), [("wrong", "does not decrypt"), (None, "the private key is encrypted")]
)
def test_an_encrypted_key_needs_its_password(me, password, said):
    more = {} if password is None else {"ssl_key_password": password}
    found = config(
        ssl_keystore_key=me.key_pem("pw"), ssl_keystore_certificate_chain=me.chain_pem, **more
    )
    with pytest.raises(ConfigError, match=said) as caught:
        make_context(found)
    assert caught.value.option == "ssl.key.password"


@pytest.mark.parametrize(
    ("form", "password", "said"),
    [
        (PrivateFormat.TraditionalOpenSSL, "wrong", "does not decrypt"),
        (PrivateFormat.TraditionalOpenSSL, None, "the private key is encrypted"),
        (PrivateFormat.PKCS8, "hunter2" * 200, "longer than 1024 bytes"),
    ],
)
def test_password_of_a_key_is_named_whatever_the_key_looks_like(me, form, password, said):
    hiding = BestAvailableEncryption(b"pw")
    key = me.key.private_bytes(Encoding.PEM, form, hiding).decode()
    more = {} if password is None else {"ssl_key_password": password}
    found = config(ssl_keystore_key=key, ssl_keystore_certificate_chain=me.chain_pem, **more)
    with pytest.raises(ConfigError, match=said) as caught:
        make_context(found)
    assert caught.value.option == "ssl.key.password"
    assert "hunter2" not in str(caught.value)


def test_a_key_that_stands_with_the_chain_is_not_shown(me):
    both = me.chain_pem + me.key_pem()
    found = config(ssl_keystore_key=me.key_pem(), ssl_keystore_certificate_chain=both)
    assert "BEGIN" not in repr(found)
    found = config(ssl_keystore_key=me.key_pem(), ssl_keystore_certificate_chain="MIIEvQ")
    with pytest.raises(ConfigError, match="expected PEM") as caught:
        make_context(found)
    assert caught.value.option == "ssl.keystore.certificate.chain"
    assert "MIIEvQ" not in str(caught.value)


@pytest.mark.slow
def test_a_key_that_is_not_the_certificates_is_refused(authority, me):
    found = config(
        ssl_keystore_key=authority.issue("other").key_pem(),
        ssl_keystore_certificate_chain=me.chain_pem,
    )
    with pytest.raises(ConfigError, match="private key and its certificate"):
        make_context(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"truststore.location": "/no/such/file"}, "truststore.location"),
        ({"truststore.certificates": "garbage"}, "truststore.certificates"),
        ({"truststore.location": "{p12}", "truststore.password": "no"}, "truststore.password"),
        ({"keystore.location": "/no/such/file"}, "keystore.location"),
        ({"keystore.location": "{p12}", "keystore.password": "no"}, "keystore.password"),
        ({"keystore.key": "garbage", "keystore.certificate.chain": "x"}, "keystore.key"),
        ({"keystore.location": "{key}"}, "key.password"),
        ({"cipher.suites": "TLS_NO_SUCH_SUITE"}, "cipher.suites"),
    ],
)
def test_what_fails_at_the_connection_has_the_name_it_was_given_by(
    authority, me, tmp_path, given, option
):
    """As what is refused when the properties are read; a worker has the driver's by pickle."""
    files = {"key": tmp_path / "key", "p12": authority.pkcs12_file(tmp_path / "ca.p12", "pw")}
    files["key"].write_text(me.key_pem("pw") + me.chain_pem)
    named = {f"ssl.{name}": value.format(**files) for name, value in given.items()}
    found = pickle.loads(pickle.dumps(ClientConfig.parse(SSL | named, "kafka.")))
    with pytest.raises(ConfigError) as caught:
        make_context(found)
    assert caught.value.option == f"kafka.ssl.{option}"


def test_configurations_that_mean_the_same_share_connections_however_they_were_named():
    ours, sparks = ClientConfig.parse(SSL), ClientConfig.parse(SSL, "kafka.")
    assert (ours, hash(ours), repr(ours)) == (sparks, hash(sparks), repr(sparks))


@pytest.mark.parametrize("room", ["read-only", "full"])
def test_where_no_temporary_file_can_be_written_the_key_is_named(me, tmp_path, monkeypatch, room):
    nowhere = [str(tmp_path / "no" / "such")]
    if room == "read-only":
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: nowhere)
    else:
        full = Path("/dev/full")
        monkeypatch.setattr(tempfile, "NamedTemporaryFile", lambda *_, **__: full.open("w"))
    found = config(ssl_keystore_key=me.key_pem(), ssl_keystore_certificate_chain=me.chain_pem)
    with pytest.raises(ConfigError, match=r"temporary file .*: set TMPDIR") as caught:
        make_context(found)
    assert caught.value.option == "ssl.keystore.key"


def test_a_key_is_never_written_to_a_file_that_others_have_put_in_its_place(
    me, tmp_path, monkeypatch
):
    """Folders for temporary files that all may write to are not always sticky."""
    theirs, make = tmp_path / "theirs", tempfile.NamedTemporaryFile
    theirs.touch()

    def replaced(*arguments, **options):
        file = make(*arguments, dir=tmp_path, **options)
        Path(file.name).unlink()
        Path(file.name).symlink_to(theirs)
        return file

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", replaced)
    found = config(ssl_keystore_key=me.key_pem(), ssl_keystore_certificate_chain=me.chain_pem)
    with pytest.raises(ConfigError, match=r"ssl\.keystore"):
        make_context(found)
    assert theirs.read_text() == ""

"""Security properties: read, refused by name, refused together; no secret shown anywhere."""

import logging
import pickle

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.net.properties import names_of
from pyspark_kafkaproto.net.secret import Secret
from pyspark_kafkaproto.net.security import SecurityConfig, token_login

SERVERS = {"bootstrap.servers": "b-1:9092"}
SSL = SERVERS | {"security.protocol": "SSL"}
PACKAGE = "org.apache.kafka.common.security."
PLAIN = PACKAGE + 'plain.PlainLoginModule required username="me" password="hunter2";'
SCRAM = PACKAGE + 'scram.ScramLoginModule required username="me" password="hunter2";'
OAUTH = PACKAGE + 'oauthbearer.OAuthBearerLoginModule required clientId="a" clientSecret="hunter2";'
URL = "https://login.example/token"
WITH_PLAIN = SERVERS | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": PLAIN,
}
WITH_OAUTH = SERVERS | {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": OAUTH,
    "sasl.oauthbearer.token.endpoint.url": URL,
}
WITH_CA = SSL | {"ssl.truststore.location": "/ca"}
WITH_KEY = SSL | {"ssl.keystore.location": "/key"}
WITH_PEM = SSL | {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"}

# what goes with it, property, text, the field, its value
GOOD = [
    (SERVERS, "security.protocol", "ssl", "security_protocol", "SSL"),
    (SSL, "ssl.protocol", "TLSv1.2", "ssl_protocol", "TLSv1.2"),
    (SSL, "ssl.enabled.protocols", "TLSv1.3", "ssl_enabled_protocols", ("TLSv1.3",)),
    (SSL, "ssl.cipher.suites", "A, B", "ssl_cipher_suites", ("A", "B")),
    (
        SSL,
        "ssl.endpoint.identification.algorithm",
        "",
        "ssl_endpoint_identification_algorithm",
        "",
    ),
    (WITH_CA, "ssl.truststore.type", "pem", "ssl_truststore_type", "PEM"),
    (SSL, "ssl.truststore.location", "/ca", "ssl_truststore_location", "/ca"),
    (SSL, "ssl.truststore.certificates", "PEM", "ssl_truststore_certificates", "PEM"),
    (WITH_CA, "ssl.truststore.password", "x", "ssl_truststore_password", Secret("x")),
    (WITH_KEY, "ssl.keystore.type", "PKCS12", "ssl_keystore_type", "PKCS12"),
    (SSL, "ssl.keystore.location", "/key", "ssl_keystore_location", "/key"),
    (WITH_PEM, "ssl.keystore.key", "PEM", "ssl_keystore_key", Secret("PEM")),
    (
        WITH_PEM,
        "ssl.keystore.certificate.chain",
        "C",
        "ssl_keystore_certificate_chain",
        Secret("C"),
    ),
    (WITH_KEY, "ssl.keystore.password", "x", "ssl_keystore_password", Secret("x")),
    (WITH_KEY, "ssl.key.password", "x", "ssl_key_password", Secret("x")),
    (WITH_PEM, "ssl.key.password", "\tx y\u00a0 ", "ssl_key_password", Secret("x y\u00a0")),
    (WITH_PLAIN, "sasl.mechanism", "PLAIN", "sasl_mechanism", "PLAIN"),
    (WITH_PLAIN, "sasl.jaas.config", PLAIN, "sasl_jaas_config", Secret(PLAIN)),
    (
        {name: value for name, value in WITH_OAUTH.items() if "url" not in name},
        "sasl.login.callback.handler.class",
        "my.tokens:give",
        "sasl_login_callback",
        "my.tokens:give",
    ),
    *(
        (WITH_OAUTH, "sasl.oauthbearer.token.endpoint.url", url, "sasl_token_endpoint_url", url)
        for url in (URL, "https://host/@us/token", "https://[::1]:8443/@us", "http://host:80/?a=@")
    ),
    (
        WITH_OAUTH,
        "sasl.oauthbearer.client.credentials.client.id",
        "me",
        "sasl_oauth_client_id",
        "me",
    ),
    (
        WITH_OAUTH,
        "sasl.oauthbearer.client.credentials.client.secret",
        "x",
        "sasl_oauth_client_secret",
        Secret("x"),
    ),
    (WITH_OAUTH, "sasl.oauthbearer.scope", "s", "sasl_oauth_scope", "s"),
    (WITH_OAUTH, "sasl.oauthbearer.header.urlencode", "true", "sasl_oauth_urlencodes", True),
]

PEM_TEXT = "-----BEGIN PRIVATE KEY----- hunter2 -----END PRIVATE KEY-----"

# what is given, the property that is named, a part of what is said
BAD = [
    *(
        (
            WITH_OAUTH | {"sasl.oauthbearer.token.endpoint.url": url},
            "sasl.oauthbearer.token.endpoint.url",
            "stand in sasl.jaas.config",
        )
        for url in (
            "https://me:hunter2@host/token",
            "https://me:hunter2/+A==@host/token",
            "https:/me:hunter2@host/token",
            "me:hunter2@host/token",
        )
    ),
    *(
        (SSL | {f"ssl.{store}.location": PEM_TEXT}, f"ssl.{store}.location", said)
        for store, said in (
            (
                "keystore",
                "goes into kafka.ssl.keystore.key and kafka.ssl.keystore.certificate.chain",
            ),
            ("truststore", "goes into kafka.ssl.truststore.certificates"),
        )
    ),
    (WITH_PEM | {"ssl.keystore.location": PEM_TEXT}, "ssl.keystore.location", "name of a file"),
    *(
        (
            given | {"sasl.jaas.config": given["sasl.jaas.config"].replace("hunter2", "\udce4")},
            "sasl.jaas.config",
            "expected text that can be UTF-8",
        )
        for given in (WITH_PLAIN, WITH_OAUTH)
    ),
    (SERVERS | {"security.protocol": "TLS"}, "security.protocol", "SASL_SSL"),
    (SSL | {"ssl.protocol": "SSLv3"}, "ssl.protocol", "unsafe"),
    (SSL | {"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "ssl.enabled.protocols", "unsafe"),
    (
        SSL | {"ssl.endpoint.identification.algorithm": "none"},
        "ssl.endpoint.identification.algorithm",
        "expected https, or nothing",
    ),
    (WITH_CA | {"ssl.truststore.type": "BKS"}, "ssl.truststore.type", "PEM, PKCS12, JKS"),
    (SSL | {"ssl.truststore.type": "PEM"}, "ssl.truststore.type", "without kafka.ssl.trust"),
    (SSL | {"ssl.truststore.password": "x"}, "ssl.truststore.password", "has no effect without"),
    (SSL | {"ssl.key.password": "x"}, "ssl.key.password", "without kafka.ssl.keystore.location"),
    (WITH_CA | {"ssl.key.password": "x"}, "ssl.key.password", "or kafka.ssl.keystore.key"),
    (WITH_PEM | {"ssl.keystore.password": "x"}, "ssl.keystore.password", "kafka.ssl.key.password"),
    (
        SSL | {"ssl.truststore.certificates": "PEM", "ssl.truststore.password": "x"},
        "ssl.truststore.password",
        "has no effect on PEM text",
    ),
    (
        WITH_OAUTH | {"sasl.login.callback.handler.class": "my.tokens:give"},
        "sasl.oauthbearer.token.endpoint.url",
        "has no effect with a function in kafka.sasl.login.callback.handler.class",
    ),
    (
        WITH_CA | {"ssl.truststore.certificates": "PEM"},
        "ssl.truststore.location",
        "give one of them",
    ),
    (
        SSL | {"ssl.truststore.certificates": "PEM", "ssl.truststore.type": "JKS"},
        "ssl.truststore.type",
        "expected PEM",
    ),
    (WITH_PEM | {"ssl.keystore.location": "/k"}, "ssl.keystore.location", "give one of them"),
    (SSL | {"ssl.keystore.key": "k"}, "ssl.keystore.key", "certificate.chain, or none"),
    (SSL | {"ssl.keystore.typ": "PEM"}, "ssl.keystore.typ", "did you mean kafka.ssl.keystore.type"),
    (SSL | {"ssl.engine.factory.class": "a.B"}, "ssl.engine.factory.class", "a Java class"),
    (SERVERS | {"ssl.truststore.location": "/ca"}, "security.protocol", "expected SSL or SASL_SSL"),
    (SERVERS | {"sasl.jaas.config": PLAIN}, "security.protocol", "SASL_PLAINTEXT or SASL_SSL"),
    (SERVERS | {"sasl.kerberos.service.name": "kafka"}, "sasl.kerberos.service.name", "Kerberos"),
    (SERVERS | {"security.protocol": "SASL_SSL"}, "sasl.mechanism", "required"),
    (WITH_PLAIN | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism", "Kerberos is not supported"),
    (WITH_PLAIN | {"sasl.mechanism": "AWS_MSK_IAM"}, "sasl.mechanism", "OAUTHBEARER"),
    (WITH_PLAIN | {"sasl.mechanism": "DIGEST-MD5"}, "sasl.mechanism", "expected one of PLAIN"),
    (WITH_PLAIN | {"sasl.jaas.config": SCRAM}, "sasl.jaas.config", "PLAIN goes with"),
    (
        WITH_PLAIN | {"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;"},
        "sasl.jaas.config",
        "Kerberos",
    ),
    (
        WITH_PLAIN | {"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"},
        "sasl.jaas.config",
        "a function that signs tokens",
    ),
    (
        WITH_PLAIN | {"sasl.jaas.config": PLAIN.replace("password", "pasword")},
        "sasl.jaas.config",
        'username="…" and password="…"',
    ),
    (
        WITH_PLAIN | {"sasl.jaas.config": PLAIN.replace(";", " tokenauth=true;")},
        "sasl.jaas.config",
        "delegation tokens (tokenauth) log in by the mechanisms of SCRAM alone, with org.apache",
    ),
    (
        WITH_PLAIN
        | {
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": SCRAM.replace(";", " tokenauth=yes;"),
        },
        "sasl.jaas.config",
        'tokenauth: expected "true" or "false"',
    ),
    (
        WITH_PLAIN | {"sasl.jaas.config": PLAIN.replace('"me"', '"m\0e"')},
        "sasl.jaas.config",
        "must not hold a NUL",
    ),
    (
        WITH_PLAIN | {"sasl.oauthbearer.scope": "s"},
        "sasl.mechanism",
        "kafka.sasl.oauthbearer.scope has no effect",
    ),
    (
        WITH_OAUTH | {"sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"},
        "sasl.oauthbearer.token.endpoint.url",
        "https://",
    ),
    *(
        (
            WITH_OAUTH | {"sasl.oauthbearer.token.endpoint.url": url},
            "sasl.oauthbearer.token.endpoint.url",
            said,
        )
        for url, said in (
            ("https://[::1/token", "expected https://host/path (Invalid IPv6 URL)"),
            ("https://host:port/token", "expected https://host/path (Port could not"),
            ("https://host/t\u00f6ken", "%XX stands for blanks and what is not ASCII"),
            ("https://host/token?realm=a b", "%XX stands for blanks and what is not ASCII"),
            ("https://:443/token", "expected https://host/path"),
        )
    ),
    (
        WITH_OAUTH | {"sasl.login.callback.handler.class": "com.example.Tokens"},
        "sasl.login.callback.handler.class",
        "module:function",
    ),
    (
        WITH_OAUTH | {"sasl.jaas.config": OAUTH.replace("clientId", "clientID")},
        "sasl.jaas.config",
        "other than clientId",
    ),
    (
        {name: value for name, value in WITH_OAUTH.items() if "url" not in name},
        "sasl.oauthbearer.token.endpoint.url",
        "required for OAUTHBEARER",
    ),
    (
        {name: value for name, value in WITH_PLAIN.items() if "jaas" not in name},
        "sasl.jaas.config",
        "required for PLAIN",
    ),
    *(
        (
            WITH_OAUTH | {"sasl.jaas.config": OAUTH.replace(left_out, "")},
            "sasl.jaas.config",
            'expected clientId="…" and clientSecret="…"',
        )
        for left_out in (
            'clientId="a"',
            'clientSecret="hunter2"',
            'clientId="a" clientSecret="hunter2"',
        )
    ),
    *(
        (
            WITH_OAUTH
            | {"sasl.jaas.config": OAUTH[:-1] + f' unsecuredLoginLifetimeSeconds="{text}";'},
            "sasl.jaas.config",
            "unsecuredLoginLifetimeSeconds: expected a whole number",
        )
        for text in ("soon", "-5", "1.5", "")
    ),
    (
        WITH_OAUTH | {"sasl.oauthbearer.header.urlencode": "maybe"},
        "sasl.oauthbearer.header.urlencode",
        "true or false",
    ),
]


def test_every_property_has_a_good_example():
    assert {name for _, name, *_ in GOOD} == names_of(SecurityConfig).keys()


@pytest.mark.parametrize(("others", "name", "text", "attribute", "value"), GOOD)
def test_good_value_is_read(others, name, text, attribute, value):
    assert getattr(ClientConfig.parse(others | {name: text}), attribute) == value


@pytest.mark.parametrize(("given", "name", "said"), BAD)
def test_bad_value_or_company_names_the_property_and_what_to_do(given, name, said):
    with pytest.raises(ConfigError) as caught:
        ClientConfig.parse(given, "kafka.")
    assert caught.value.option == f"kafka.{name}"
    assert said in caught.value.allowed
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["ssl.trustore.location", "sasl.password", "security.providers", "sasl.login.class"]
)
def test_no_unknown_property_of_security_is_passed_over(name):
    with pytest.raises(ConfigError) as caught:
        ClientConfig.parse(SERVERS | {name: "hunter2"})
    assert caught.value.option == name
    assert "hunter2" not in repr(caught.value)


@pytest.mark.parametrize(
    ("mechanism", "jaas"),
    [
        ("PLAIN", PLAIN),
        ("PLAIN", "kafkashaded." + PLAIN),
        ("SCRAM-SHA-256", SCRAM),
        ("SCRAM-SHA-512", SCRAM),
    ],
)
def test_a_password_is_found_in_the_login_module(mechanism, jaas):
    config = ClientConfig.parse(
        WITH_PLAIN | {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    )
    assert config.login_module().options == {"username": "me", "password": "hunter2"}
    assert config.uses_sasl
    assert not config.uses_tls


def test_javas_own_handler_for_token_endpoints_means_the_endpoint():
    handler = PACKAGE + "oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    config = ClientConfig.parse(WITH_OAUTH | {"sasl.login.callback.handler.class": handler})
    assert config.token_function is None


def test_a_token_function_needs_no_login_module():
    config = ClientConfig.parse(
        SERVERS
        | {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": "my.tokens:give",
        }
    )
    assert config.login_module().options == {}


EVERY_SECRET = {
    "ssl.truststore.location": "/ca",
    "ssl.truststore.password": "hunter2",
    "ssl.key.password": "hunter2",
    "sasl.oauthbearer.client.credentials.client.secret": "hunter2",
}


@pytest.mark.parametrize(
    "store",
    [
        {"ssl.keystore.key": "hunter2", "ssl.keystore.certificate.chain": "PEM"},
        {"ssl.keystore.location": "/key", "ssl.keystore.password": "hunter2"},
    ],
)
def test_secrets_are_shown_nowhere_and_travel_all_the_same(store, caplog):
    with caplog.at_level(logging.DEBUG):
        config = ClientConfig.parse(WITH_OAUTH | EVERY_SECRET | store)
        again = pickle.loads(pickle.dumps(config))
        logging.getLogger("x").debug("%s %r", config, [again])
    assert again == config
    assert hash(again) == hash(config)
    assert config != ClientConfig.parse(WITH_OAUTH)
    shown = f"{config} {config!r} {again!r} {config.login_module()!r} {caplog.text}"
    assert "hunter2" not in shown
    assert again.ssl_key_password.reveal() == "hunter2"


def test_a_secret_hides_in_every_form():
    secret = Secret("hunter2")
    forms = [
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret!r:>20}",
        f"{[secret]}",
    ]
    assert not [form for form in forms if "hunter2" in form]
    assert secret != "hunter2"
    assert not Secret("")
    config = ClientConfig.parse(WITH_PLAIN | {"sasl.jaas.config": Secret(PLAIN)})
    assert config.login_module().options["password"] == "hunter2"


@pytest.mark.parametrize(("said", "is_one"), [("true", True), ("TRUE", True), ("false", False)])
def test_a_delegation_token_is_a_login_of_scram(said, is_one):
    jaas = SCRAM.replace(";", f' tokenauth="{said}";')
    given = WITH_PLAIN | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas}
    assert ClientConfig.parse(given).logs_in_with_token == is_one
    assert not ClientConfig.parse(given | {"sasl.jaas.config": SCRAM}).logs_in_with_token
    assert not ClientConfig.parse(WITH_PLAIN).logs_in_with_token
    assert not ClientConfig.parse(SSL).logs_in_with_token


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_properties_of_a_token_log_in_with_it(mechanism):
    properties = token_login("an id", Secret('h"mac='), mechanism)
    config = ClientConfig.parse(SERVERS | {"security.protocol": "SASL_SSL"} | properties)
    assert config.logs_in_with_token
    assert config.sasl_mechanism == mechanism
    options = config.login_module().options
    assert (options["username"], options["password"]) == ("an id", 'h"mac=')


def test_a_token_goes_with_scram_alone():
    with pytest.raises(ConfigError, match="expected one of SCRAM-SHA-256, SCRAM-SHA-512"):
        token_login("an id", Secret("hmac"), "PLAIN")

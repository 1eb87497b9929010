"""The client properties of security: names and meanings are Kafka's.

What Java alone can do is refused by name.

`SecurityConfig` is the part of ClientConfig that says how to prove who is who. It opens no file and
no connection: `tls` and `login` do, when a connection is made.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.jaas import LoginModule, parse_jaas, write_jaas
from pyspark_kafkaproto.net.properties import (
    ALIKE,
    as_written_here,
    boolean,
    kafka_property,
    meant,
    names_of,
    secret,
    text,
    words,
)
from pyspark_kafkaproto.net.secret import HIDDEN, Secret

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
_STORE_TYPES = ("PEM", "PKCS12", "JKS")
OAUTHBEARER = "OAUTHBEARER"

_PACKAGE = "org.apache.kafka.common.security."
_SCRAM = _PACKAGE + "scram.ScramLoginModule"
_MODULES = {
    "PLAIN": _PACKAGE + "plain.PlainLoginModule",
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    OAUTHBEARER: _PACKAGE + "oauthbearer.OAuthBearerLoginModule",
}
_TOKENAUTH = "tokenauth"  # of the module for SCRAM (KIP-48)
_KERBEROS = (
    "Kerberos is not supported: ask for a listener with SCRAM-SHA-512 or OAUTHBEARER, or read "
    'with Spark\'s own format("kafka")'
)
_IAM = (
    "Amazon's IAM mechanism is not supported: such clusters take the same identity as OAUTHBEARER "
    "with a function that signs tokens, see docs/security.md"
)
_REFUSED_MECHANISMS = {"GSSAPI": _KERBEROS, "AWS_MSK_IAM": _IAM}
_REFUSED_MODULES = {"Krb5LoginModule": _KERBEROS, "IAMLoginModule": _IAM}

# What these do in Java is what this package does by itself when a token endpoint is named.
_ENDPOINT_HANDLERS = (
    _PACKAGE + "oauthbearer.OAuthBearerLoginCallbackHandler",
    _PACKAGE + "oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# An @ behind such a beginning has no name and no secret before it: those may hold a slash, too.
_HOST = re.compile(r"https?://(?:\[[^]@/]+\]|[^@:/]+)(?::[0-9]+)?/")
_OAUTH_OPTIONS = re.compile(
    r"clientId|clientSecret|scope|extension_[A-Za-z]+"
    r"|unsecuredLoginStringClaim_\w+|unsecuredLoginLifetimeSeconds"
)

# Properties of the Java client that name Java classes or Java's own algorithms.
_JAVA_ONLY = {
    "sasl.client.callback.handler.class": "it names a Java class; tokens come from a Python "
    "function in sasl.login.callback.handler.class (module:function)",
    "sasl.login.class": "it names a Java class",
    "ssl.engine.factory.class": "it names a Java class",
    "ssl.keymanager.algorithm": "it names an algorithm of Java's",
    "ssl.provider": "it names a security provider of Java's",
    "ssl.secure.random.implementation": "it names a generator of Java's",
    "ssl.trustmanager.algorithm": "it names an algorithm of Java's",
}


def _security_protocol(name: str, given: str) -> str:
    if given.strip().upper() not in PROTOCOLS:
        raise ConfigError(name, given, f"expected one of {', '.join(PROTOCOLS)}")
    return given.strip().upper()


def _mechanism(name: str, given: str) -> str:
    mechanism = given.strip()
    if mechanism in _REFUSED_MECHANISMS:
        raise ConfigError(name, mechanism, _REFUSED_MECHANISMS[mechanism])
    if mechanism not in _MODULES:
        raise ConfigError(name, given, f"expected one of {', '.join(_MODULES)}")
    return mechanism


def _store_location(name: str, given: str) -> str:
    """A name of a file: what is taken for one is shown."""
    if "-----BEGIN " in given:
        store = name.removesuffix("location")
        texts = f"{store}key and {store}certificate.chain"
        if "truststore" in store:
            texts = f"{store}certificates"
        raise ConfigError(name, HIDDEN, f"expected the name of a file: PEM text goes into {texts}")
    return given.strip()


def _store_type(name: str, given: str) -> str:
    if given.strip().upper() not in _STORE_TYPES:
        raise ConfigError(name, given, f"expected one of {', '.join(_STORE_TYPES)}")
    return given.strip().upper()


def _identification(name: str, given: str) -> str:
    if given.strip().lower() not in {"https", ""}:
        raise ConfigError(name, given, "expected https, or nothing for no check of host names")
    return given.strip().lower()


def _tls_versions(name: str, given: str) -> tuple[str, ...]:
    versions = words(name, given)
    if not versions or not set(versions) <= set(TLS_VERSIONS):
        raise ConfigError(name, given, "expected TLSv1.2, TLSv1.3 or both: older ones are unsafe")
    return versions


def _tls_protocol(name: str, given: str) -> str:
    if given.strip() not in {"TLS", *TLS_VERSIONS}:
        raise ConfigError(name, given, "expected TLSv1.3, TLSv1.2 or TLS: older ones are unsafe")
    return given.strip()


def _login_callback(name: str, given: str) -> str:
    handler = given.strip()
    if handler in _ENDPOINT_HANDLERS or _FUNCTION.fullmatch(handler):
        return handler
    raise ConfigError(
        name,
        given,
        "a Java class cannot be called from here: expected a Python function as module:function, "
        "importable on the executors, that takes the options of the login module and returns a "
        f"token; or {_ENDPOINT_HANDLERS[0]} with sasl.oauthbearer.token.endpoint.url",
    )


def _endpoint_url(name: str, given: str) -> str:
    if "@" in given and not _HOST.match(given.strip()):
        why = "expected https://host/path: clientId and clientSecret stand in sasl.jaas.config"
        raise ConfigError(name, HIDDEN, why)
    if not re.match(r"https?://[^/\s]", given.strip()):
        raise ConfigError(name, given, "expected https://host/path")
    # Those pay for the room of URLs who have one.
    from urllib.parse import urlsplit  # noqa: PLC0415

    try:
        parts = urlsplit(given.strip())
        of_host = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(name, given, f"expected https://host/path ({error})") from None
    if not of_host[0] or not re.fullmatch(r"[!-~]*", parts.path + parts.query):
        why = "expected https://host/path, where %XX stands for blanks and what is not ASCII"
        raise ConfigError(name, given, why)
    return given.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityConfig:
    """How the broker is known to be the right one, and how it gets to know us.

    `prefix` (such as `kafka.`) is what stood before the properties' names: errors say it, too.
    """

    prefix: str = field(default="", compare=False, repr=False)
    security_protocol: str = kafka_property("security.protocol", _security_protocol, PLAINTEXT)

    ssl_protocol: str = kafka_property("ssl.protocol", _tls_protocol, "TLSv1.3")
    ssl_enabled_protocols: tuple[str, ...] = kafka_property(
        "ssl.enabled.protocols", _tls_versions, TLS_VERSIONS
    )
    ssl_cipher_suites: tuple[str, ...] = kafka_property("ssl.cipher.suites", words, ())
    ssl_endpoint_identification_algorithm: str = kafka_property(
        "ssl.endpoint.identification.algorithm", _identification, "https"
    )
    ssl_truststore_type: str | None = kafka_property("ssl.truststore.type", _store_type)
    ssl_truststore_location: str | None = kafka_property("ssl.truststore.location", _store_location)
    ssl_truststore_certificates: str | None = kafka_property("ssl.truststore.certificates", text)
    ssl_truststore_password: Secret | None = kafka_property("ssl.truststore.password", secret)
    ssl_keystore_type: str | None = kafka_property("ssl.keystore.type", _store_type)
    ssl_keystore_location: str | None = kafka_property("ssl.keystore.location", _store_location)
    ssl_keystore_key: Secret | None = kafka_property("ssl.keystore.key", secret)
    # A secret to Java, too: one file often holds the key with the chain.
    ssl_keystore_certificate_chain: Secret | None = kafka_property(
        "ssl.keystore.certificate.chain", secret
    )
    ssl_keystore_password: Secret | None = kafka_property("ssl.keystore.password", secret)
    ssl_key_password: Secret | None = kafka_property("ssl.key.password", secret)

    sasl_mechanism: str | None = kafka_property("sasl.mechanism", _mechanism)
    sasl_jaas_config: Secret | None = kafka_property("sasl.jaas.config", secret)
    sasl_login_callback: str | None = kafka_property(
        "sasl.login.callback.handler.class", _login_callback
    )
    sasl_token_endpoint_url: str | None = kafka_property(
        "sasl.oauthbearer.token.endpoint.url", _endpoint_url
    )
    sasl_oauth_client_id: str | None = kafka_property(
        "sasl.oauthbearer.client.credentials.client.id", text
    )
    sasl_oauth_client_secret: Secret | None = kafka_property(
        "sasl.oauthbearer.client.credentials.client.secret", secret
    )
    sasl_oauth_scope: str | None = kafka_property("sasl.oauthbearer.scope", text)
    sasl_oauth_urlencodes: bool = kafka_property(
        "sasl.oauthbearer.header.urlencode", boolean, False
    )

    @property
    def uses_tls(self) -> bool:
        """Whether bytes are encrypted."""
        return self.security_protocol in {"SSL", "SASL_SSL"}

    @property
    def uses_sasl(self) -> bool:
        """Whether a user is named to the broker."""
        return self.security_protocol.startswith("SASL_")

    @property
    def token_function(self) -> str | None:
        """The `module:function` that gives tokens; None when the endpoint does."""
        return None if self.sasl_login_callback in _ENDPOINT_HANDLERS else self.sasl_login_callback

    @property
    def logs_in_with_token(self) -> bool:
        """Whether it is a delegation token, with its HMAC, that stands as name and password."""
        is_scram = self.uses_sasl and (self.sasl_mechanism or "").startswith("SCRAM-")
        return is_scram and _says_token(self.login_module())

    def named(self, name: str) -> str:
        """A property's name as it was given, for errors to say."""
        return self.prefix + name

    @property
    def from_options(self) -> bool:
        """Whether its properties were given as options of Spark: those have a prefix."""
        return bool(self.prefix)

    def login_module(self) -> LoginModule:
        """What sasl.jaas.config says, as far as the mechanism knows it; ConfigError if not so."""
        name, mechanism = self.named("sasl.jaas.config"), self.sasl_mechanism or ""
        if self.sasl_jaas_config is None:
            if mechanism == OAUTHBEARER and (self.token_function or self.sasl_token_endpoint_url):
                return LoginModule(_MODULES[mechanism], {})
            example = f'{_MODULES[mechanism]} required username="…" password="…";'
            raise ConfigError(name, None, f"required for {mechanism}: {example}")
        module = parse_jaas(name, self.sasl_jaas_config)
        for end, why in _REFUSED_MODULES.items():
            if module.name.endswith(end):
                raise ConfigError(name, module.name, why)
        # Some hosted Sparks put a package of their own in front of Kafka's.
        if not module.name.endswith(_MODULES[mechanism]):
            expected = f"{mechanism} goes with {_MODULES[mechanism]}"
            raise ConfigError(name, module.name, expected)
        check = _check_oauth if mechanism == OAUTHBEARER else _check_password
        check(name, module)
        try:
            "".join(module.options.values()).encode()
        except UnicodeEncodeError:  # half a character, or bytes of a terminal's other encoding
            raise ConfigError(name, HIDDEN, "expected text that can be UTF-8") from None
        return module

    def check_security(self, given: Collection[str]) -> None:
        """Refuse properties that do not go together; `given` are the names that were set.

        Raises:
            ConfigError: says which, and what would go.
        """
        protocol = self.named("security.protocol")
        for kind, is_used, wanted in (
            ("ssl.", self.uses_tls, "SSL or SASL_SSL"),
            ("sasl.", self.uses_sasl, "SASL_PLAINTEXT or SASL_SSL"),
        ):
            idle = [name for name in given if name.startswith(kind)]
            if idle and not is_used:
                why = f"{self.named(idle[0])} has no effect with it: expected {wanted}"
                raise ConfigError(protocol, self.security_protocol, why)
        if self.uses_sasl:
            self._check_sasl(given)
        if self.uses_tls:
            self._check_stores()

    def _check_sasl(self, given: Collection[str]) -> None:
        if self.sasl_mechanism is None:
            known = ", ".join(_MODULES)
            raise ConfigError(
                self.named("sasl.mechanism"),
                None,
                f"required with {self.named('security.protocol')} {self.security_protocol}: one of "
                f"{known} (Kafka's default, GSSAPI, is Kerberos, which is not supported)",
            )
        of_oauth = [name for name in given if name.startswith(("sasl.oauth", "sasl.login"))]
        if of_oauth and self.sasl_mechanism != OAUTHBEARER:
            why = f"{self.named(of_oauth[0])} has no effect with it: expected {OAUTHBEARER}"
            raise ConfigError(self.named("sasl.mechanism"), self.sasl_mechanism, why)
        module = self.login_module()
        if self.sasl_mechanism == OAUTHBEARER:
            self._check_token_source(given, module)

    def _check_token_source(self, given: Collection[str], module: LoginModule) -> None:
        if self.token_function:
            # It is given the login module's options, and nothing of these.
            idle = [name for name in given if name.startswith("sasl.oauthbearer.")]
            if idle:
                handler = self.named("sasl.login.callback.handler.class")
                raise ConfigError(
                    self.named(idle[0]),
                    HIDDEN,
                    f"has no effect with a function in {handler}: what it needs goes into "
                    f"{self.named('sasl.jaas.config')}",
                )
            return
        is_unsecured = any(name.startswith("unsecured") for name in module.options)
        if self.sasl_token_endpoint_url is None and not is_unsecured:
            handler = self.named("sasl.login.callback.handler.class")
            raise ConfigError(
                self.named("sasl.oauthbearer.token.endpoint.url"),
                None,
                f"required for OAUTHBEARER, unless {handler} names "
                "a function (module:function) that gives tokens",
            )
        has_id = module.options.get("clientId") or self.sasl_oauth_client_id
        has_secret = module.options.get("clientSecret") or self.sasl_oauth_client_secret
        if self.sasl_token_endpoint_url and not (has_id and has_secret):
            raise ConfigError(
                self.named("sasl.jaas.config"),
                HIDDEN,
                'expected clientId="…" and clientSecret="…" for the token endpoint',
            )

    def _check_stores(self) -> None:
        for one, other in (
            ("ssl.truststore.location", "ssl.truststore.certificates"),
            ("ssl.keystore.location", "ssl.keystore.key"),
        ):
            if self._value_of(one) and self._value_of(other):
                why = f"{self.named(other)} is given too: give one of them"
                raise ConfigError(self.named(one), self._value_of(one), why)
        if bool(self.ssl_keystore_key) != bool(self.ssl_keystore_certificate_chain):
            key, chain = map(self.named, ("ssl.keystore.key", "ssl.keystore.certificate.chain"))
            raise ConfigError(key, HIDDEN, f"expected {key} and {chain}, or none of them")
        for name in ("ssl.truststore", "ssl.keystore"):
            location = self._value_of(f"{name}.location")
            text_name = "certificates" if name == "ssl.truststore" else "key"
            is_text = self._value_of(f"{name}.{text_name}")
            for idle in ("type", "password"):
                if self._value_of(f"{name}.{idle}") and not (location or is_text):
                    stores = map(self.named, (f"{name}.location", f"{name}.{text_name}"))
                    why = f"has no effect without {' or '.join(stores)}"
                    raise ConfigError(self.named(f"{name}.{idle}"), HIDDEN, why)
            if is_text and self._value_of(f"{name}.password"):
                opens = self.named("ssl.key.password")
                why = f"has no effect on PEM text: {opens} is what opens a key in it"
                raise ConfigError(self.named(f"{name}.password"), HIDDEN, why)
            if is_text and self._value_of(f"{name}.type") not in {None, "PEM"}:
                why = f"{self.named(name)}.{text_name} holds PEM text: expected PEM"
                raise ConfigError(self.named(f"{name}.type"), self._value_of(f"{name}.type"), why)

        if self.ssl_key_password and not (self.ssl_keystore_location or self.ssl_keystore_key):
            stores = map(self.named, ("ssl.keystore.location", "ssl.keystore.key"))
            why = f"has no effect without {' or '.join(stores)}"
            raise ConfigError(self.named("ssl.key.password"), HIDDEN, why)

    def _value_of(self, name: str) -> object:
        return getattr(self, names_of(type(self))[name].name)


def token_login(token_id: str, hmac: Secret, mechanism: str) -> dict[str, str]:
    """The properties that log in with a delegation token; the text of one shows the HMAC.

    Raises:
        ConfigError: it is no mechanism that takes tokens.
    """
    if _MODULES.get(mechanism) != _SCRAM:
        known = ", ".join(name for name, module in _MODULES.items() if module == _SCRAM)
        raise ConfigError("mechanism", mechanism, f"expected one of {known}")
    options = {"username": token_id, "password": hmac.reveal(), _TOKENAUTH: "true"}
    text = write_jaas(LoginModule(_SCRAM, options)).reveal()
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": text}


def is_security_property(name: str) -> bool:
    """Whether one that is not in the table must not be passed over: it starts or reads like one."""
    if as_written_here(name).startswith(("ssl.", "sasl.", "security.")):
        return True
    return bool(meant("", name, names_of(SecurityConfig), ALIKE))


_LIKELY = 0.75  # what was meant, where it is sure to be one of these


def refuse_unknown(prefix: str, name: str) -> None:
    """Raise the ConfigError for a property of security that this package does not have."""
    why = _JAVA_ONLY.get(name)
    if name.startswith("sasl.kerberos."):
        why = _KERBEROS
    if why is None:
        hint = meant(prefix, name, names_of(SecurityConfig), _LIKELY)
        why = f"this package has no such property, and none of security is ignored{hint}"
    raise ConfigError(prefix + name, HIDDEN, why)


def _says_token(module: LoginModule) -> bool:
    return module.options.get(_TOKENAUTH, "").lower() == "true"


def _check_password(name: str, module: LoginModule) -> None:
    if _says_token(module) and not module.name.endswith(_SCRAM):
        allowed = "delegation tokens (tokenauth) log in by the mechanisms of SCRAM alone, with "
        raise ConfigError(name, HIDDEN, allowed + _SCRAM)
    if module.options.get(_TOKENAUTH, "true").lower() not in {"true", "false"}:
        raise ConfigError(name, HIDDEN, 'tokenauth: expected "true" or "false"')
    known = {"username", "password", _TOKENAUTH}
    if not {"username", "password"} <= module.options.keys() <= known:
        raise ConfigError(name, HIDDEN, 'expected username="…" and password="…", nothing else')
    if "\0" in module.options["username"] + module.options["password"]:
        raise ConfigError(name, HIDDEN, "name and password must not hold a NUL character")


def _check_oauth(name: str, module: LoginModule) -> None:
    # What is not known is not shown: where a quote is missing it may be a part of a secret.
    if not all(_OAUTH_OPTIONS.fullmatch(option) for option in module.options):
        known = "clientId, clientSecret, scope, extension_<name>, unsecuredLoginStringClaim_<name>"
        raise ConfigError(name, HIDDEN, f"it has an option other than {known}")
    lifetime = module.options.get("unsecuredLoginLifetimeSeconds", "1")
    if not re.fullmatch(r"[0-9]{1,9}", lifetime):
        raise ConfigError(name, HIDDEN, "unsecuredLoginLifetimeSeconds: expected a whole number")

"""From the configuration to a SASL conversation: who we are, by which mechanism."""

from __future__ import annotations

from pyspark_kafkaproto.net import sasl
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.security import OAUTHBEARER, SecurityConfig

_EXTENSION = "extension_"


def begin_login(config: SecurityConfig, deadline: Deadline) -> sasl.Conversation:
    """A conversation for `config.sasl_mechanism`; fetches a token first where one is needed.

    Raises:
        AuthenticationFailed: no token is to be had, for good.
        ConnectionFailed: the token endpoint cannot be reached.
        ConfigError: the configuration cannot be used.
    """
    mechanism = config.sasl_mechanism or ""
    options = config.login_module().options
    if mechanism == OAUTHBEARER:
        # It brings `urllib`, 12 ms, for those who need a token.
        from pyspark_kafkaproto.net.oauth import bearer_token  # noqa: PLC0415

        extensions = {
            name.removeprefix(_EXTENSION): value
            for name, value in options.items()
            if name.startswith(_EXTENSION)
        }
        return sasl.oauthbearer(bearer_token(config, options, deadline), extensions)
    if mechanism == "PLAIN":
        return sasl.plain(options["username"], options["password"])
    username, password = options["username"], options["password"]
    return sasl.scram(mechanism, username, password, is_token=config.logs_in_with_token)

"""Users who log in with SCRAM: their credentials listed, set and deleted (KIP-554).

Passwords are salted here: what goes to the brokers, and what these keep, is the salted password. It
is as good as the password for a login by SCRAM, so it is hidden like one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyspark_kafkaproto.cluster.asking import Question, ask, cut, nothing_done_yet
from pyspark_kafkaproto.cluster.controller import (
    ask_controller,
    ask_controller_once,
    controller_places,
    refusal,
)
from pyspark_kafkaproto.cluster.given import checked_each
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.error_codes import RESOURCE_NOT_FOUND
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError, joined
from pyspark_kafkaproto.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from pyspark_kafkaproto.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from pyspark_kafkaproto.net.secret import HIDDEN, Secret

_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
SCRAM_MECHANISMS: Final = tuple(_MECHANISMS)
LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16_384  # of new credentials, as Kafka has it

_SALT_BYTES = 24
_USERS_PER_REQUEST = 1000
_DESCRIBE = "DescribeUserScramCredentials"
_NO_SUCH_USER = "there is no such credential: kafkaproto users list shows those that there are"

Credentials = dict[str, int]
"""Mechanism to iterations."""
_Own = tuple[str, str]  # user and mechanism


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a user is to log in with.

    Args:
        user: the name, in ASCII; the principal is `User:` and this.
        password: text, taken just as it is; hidden.
        mechanism: of `SCRAM_MECHANISMS`.
        iterations: 4,096 to 16,384; more make a stolen credential dearer to guess from, and each
            login dearer too.
    """

    user: str
    password: str | Secret = field(repr=False)
    mechanism: str = "SCRAM-SHA-512"
    iterations: int = LEAST_ITERATIONS

    def __post_init__(self) -> None:
        _check_user(self.user)
        if not self.user.isascii() or "\0" in self.user:
            # Brokers would make it, and then read no such name at a login.
            allowed = "brokers let only names of ASCII characters log in with SCRAM"
            raise ConfigError("user", self.user, allowed)
        _check_mechanism(self.mechanism)
        object.__setattr__(self, "password", _checked_password(self.password))
        rounds: object = self.iterations
        is_number = isinstance(rounds, int) and not isinstance(rounds, bool)
        if not is_number or not LEAST_ITERATIONS <= self.iterations <= MOST_ITERATIONS:
            allowed = f"expected {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
            raise ConfigError("iterations", rounds, allowed)


def describe_users(router: Router, users: Collection[str] | None = None) -> dict[str, Credentials]:
    """Mechanisms and iterations of each user; None: of all who have SCRAM credentials.

    Raises:
        BrokerError: a user has none, or this user may not see them; `usable` has the others.
    """
    if users is None:
        # None means all, too, but where the right is missing brokers never answer that.
        every = DescribeUserScramCredentialsRequest(users=())
        return ask_controller_once(router, "describe users", every, _read_all)
    names = _checked_users(users)
    # One who was made just now is news to some brokers.
    return router.doubting(RESOURCE_NOT_FOUND, lambda: _ask_about(router, names))


def _ask_about(router: Router, names: Collection[str]) -> dict[str, Credentials]:
    user = DescribeUserScramCredentialsRequest.User
    named = Question(
        f"describe {_named(names)}",
        lambda part: DescribeUserScramCredentialsRequest(
            users=tuple(user(name=name) for name in part)
        ),
        lambda answer, _: _read_described(answer),
        cut(_USERS_PER_REQUEST),
    )
    return ask(router, named, names, partial(controller_places, router))


def set_users(router: Router, credentials: Collection[ScramCredential]) -> None:
    """Make users, or give them other passwords; what is set for other mechanisms stays.

    Raises:
        BrokerError: one was refused; `usable` has (user, mechanism) of those that are set.
        ConfigError: a user is to have two passwords for one mechanism.
    """
    salted = {own: _salted(item) for own, item in _each_once(credentials).items()}

    def make_request(part: list[_Own]) -> AlterUserScramCredentialsRequest:
        return AlterUserScramCredentialsRequest(upsertions=tuple(salted[own] for own in part))

    question = Question(f"set {_named(salted)}", make_request, _read_altered, _one_of_each_user)
    ask_controller(router, question, salted)


def delete_users(
    router: Router,
    users: Collection[str],
    mechanisms: Collection[str] | None = None,
    *,
    dry_run: bool = False,
) -> set[_Own]:
    """Delete users' credentials for `mechanisms` (None: for each that they have), all or none.

    Args:
        router: whom to ask.
        users: their names.
        mechanisms: of `SCRAM_MECHANISMS`.
        dry_run: whether to only tell what would be deleted.

    Returns:
        (user, mechanism) of what is deleted.

    Raises:
        BrokerError: users have no such credentials, all of whom are named, and nothing is deleted;
            or one was refused, and `usable` has what would be returned of the others.
    """
    with nothing_done_yet():
        doomed = _doomed(router, users, mechanisms)
    if dry_run:
        return doomed

    def make_request(part: list[_Own]) -> AlterUserScramCredentialsRequest:
        deletion = AlterUserScramCredentialsRequest.Deletion
        deletions = (deletion(name=own[0], mechanism=_MECHANISMS[own[1]]) for own in part)
        return AlterUserScramCredentialsRequest(deletions=tuple(deletions))

    question = Question(f"delete {_named(doomed)}", make_request, _read_altered, _one_of_each_user)
    ask_controller(router, question, doomed, RESOURCE_NOT_FOUND)
    return doomed


def _doomed(
    router: Router, users: Collection[str], mechanisms: Collection[str] | None
) -> set[_Own]:
    """What is there to be deleted."""
    names = _checked_users(users)
    if mechanisms is None:
        there = describe_users(router, names)
        for mechanism in {mechanism for own in there.values() for mechanism in own}:
            _check_mechanism(mechanism)  # those of a later Kafka have no number here
        return {(user, mechanism) for user, own in there.items() for mechanism in own}
    check_set("mechanisms", mechanisms)
    chosen = set(mechanisms)
    for mechanism in chosen:
        _check_mechanism(mechanism)
    # What was set just now is news to some brokers.
    router.doubting(RESOURCE_NOT_FOUND, lambda: _check_there(router, names, chosen))
    return {(user, mechanism) for user in names for mechanism in chosen}


def _check_there(router: Router, names: Collection[str], mechanisms: Collection[str]) -> None:
    """Refuse what some of these users have not got, or users who have nothing at all."""
    errors: list[KafkaProtoError] = []
    try:
        there = _ask_about(router, names)
    except BrokerError as error:
        if error.code != RESOURCE_NOT_FOUND:
            raise
        errors.append(error)
        there = error.usable or {}
    missing = [(user, own) for user in there for own in mechanisms if own not in there[user]]
    errors += [_no_such(user, own) for user, own in sorted(missing)]
    if errors:
        raise joined(errors)


def _no_such(user: str, mechanism: str) -> BrokerError:
    subject = f"user {user!r}, {mechanism}"
    return BrokerError(RESOURCE_NOT_FOUND, _DESCRIBE, subject, _NO_SUCH_USER)


def _one_of_each_user(part: list[_Own]) -> Iterator[list[_Own]]:
    """In a request no user is changed twice: controllers refuse that, and tell results by users."""
    for mechanism in _MECHANISMS:
        yield from cut(_USERS_PER_REQUEST)([own for own in part if own[1] == mechanism])


# What is asked


def _checked_users(users: Collection[str]) -> set[str]:
    check_set("users", users)
    names = set(users)
    for user in names:
        _check_user(user)
    return names


def _check_user(user: object) -> None:
    if not isinstance(user, str) or not user:
        raise ConfigError("user", user, "expected a name")


def _checked_password(password: object) -> Secret:
    """As it is hidden; what is wrong with it is told without a word of it."""
    text = password.reveal() if isinstance(password, Secret) else password
    if not isinstance(text, str):
        raise ConfigError("password", HIDDEN, "expected text")
    if not text:
        raise ConfigError("password", HIDDEN, "expected a password, it is empty")
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of a terminal with another encoding
        raise ConfigError("password", HIDDEN, "expected text that can be UTF-8") from None
    return Secret(text)


def _check_mechanism(mechanism: object) -> None:
    if mechanism not in _MECHANISMS:
        raise ConfigError("mechanism", mechanism, f"expected one of {', '.join(_MECHANISMS)}")


def _each_once(credentials: Collection[ScramCredential]) -> dict[_Own, ScramCredential]:
    example = "ScramCredential(user, password)"  # what else it is may be a password
    given = checked_each("credentials", credentials, ScramCredential, example, is_secret=True)
    found: dict[_Own, ScramCredential] = {}
    for item in given:
        if found.setdefault((item.user, item.mechanism), item) != item:
            allowed = f"it is given twice for {item.mechanism}, and not alike"
            raise ConfigError("user", item.user, allowed)
    return found


def _salted(item: ScramCredential) -> AlterUserScramCredentialsRequest.Upsertion:
    from pyspark_kafkaproto.net.sasl import salted_password  # noqa: PLC0415 - hashes

    salt = os.urandom(_SALT_BYTES)
    password = item.password.reveal() if isinstance(item.password, Secret) else item.password
    return AlterUserScramCredentialsRequest.Upsertion(
        name=item.user,
        mechanism=_MECHANISMS[item.mechanism],
        iterations=item.iterations,
        salt=salt,
        salted_password=salted_password(item.mechanism, password, salt, item.iterations),
    )


def _named(users: Collection[str | _Own]) -> str:
    names = {user if isinstance(user, str) else user[0] for user in users}
    return f"user {names.pop()!r}" if len(names) == 1 else f"{len(names)} users"


# What is answered


def _read_all(answer: DescribeUserScramCredentialsResponse) -> dict[str, Credentials]:
    """All users, or the error of the whole answer."""
    found = _read_described(answer)
    results = {}
    for user, item in found.items():
        if isinstance(item, BrokerError):
            raise item
        results[user] = item
    return dict(sorted(results.items()))


def _read_described(
    answer: DescribeUserScramCredentialsResponse,
) -> dict[str, Credentials | BrokerError]:
    if answer.error_code:
        raise refusal(answer.error_code, _DESCRIBE, "the cluster's users", answer.error_message)
    return {
        item.user: _error(item.error_code, _DESCRIBE, item.user, item.error_message)
        or {_mechanism(own.mechanism): own.iterations for own in item.credential_infos}
        for item in answer.results
    }


def _read_altered(
    answer: AlterUserScramCredentialsResponse, part: list[_Own]
) -> dict[_Own, BrokerError | None]:
    mechanism = part[0][1]  # all have the same
    api = "AlterUserScramCredentials"
    return {
        (item.user, mechanism): _error(
            item.error_code, api, item.user, item.error_message, mechanism
        )
        for item in answer.results
    }


def _mechanism(number: int) -> str:
    return next((name for name, own in _MECHANISMS.items() if own == number), f"({number})")


def _error(
    code: int, api: str, user: str, message: str | None, mechanism: str = ""
) -> BrokerError | None:
    if not code:
        return None
    of_what = f", {mechanism}" if mechanism else ""
    text = _NO_SUCH_USER if code == RESOURCE_NOT_FOUND else message
    return refusal(code, api, f"user {user!r}{of_what}", text)

"""What the exit codes of `kafkaproto` mean; docs/cluster.md has the same table for users."""

from __future__ import annotations

from pyspark_kafkaproto.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)

FAILED = 1  # a broker refused, what came is damaged, or a disk is full
# click's own for arguments; here for values of client properties and unusable files, too
WRONG_USAGE = 2
NOT_WELL = 3  # the answer is no: a hop is broken, a broker does not run, rows differ
NOT_REACHED = 4  # no broker answers, or not in time
NOT_ALLOWED = 5  # wrong password, or a right is missing
NOBODY_READS = 141  # whoever read our output has gone (`| head`), as a shell has it

_AUTHORIZATION_CODES = (
    TOPIC_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
)


def exit_code_of(error: KafkaProtoError) -> int:
    """The exit code for an error of this package."""
    if isinstance(error, AuthenticationFailed):
        return NOT_ALLOWED
    if isinstance(error, BrokerError) and error.code in _AUTHORIZATION_CODES:
        return NOT_ALLOWED
    if isinstance(error, ConfigError):
        return WRONG_USAGE
    if isinstance(error, (ConnectionFailed, DeadlineExceeded)):
        return NOT_REACHED
    return FAILED

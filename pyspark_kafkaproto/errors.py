"""The exception tree.

Every error says in its text what failed, with its value and what to do: Spark passes exceptions
between processes as text only. They pickle all the same, whatever their constructors take.
All rooms raise these; of the package this one knows the table of error codes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from math import inf
from typing import Any, TypeVar

from pyspark_kafkaproto.error_codes import ErrorCode, error_code, missing_right

_E = TypeVar("_E", bound="KafkaProtoError")


class KafkaProtoError(Exception):
    """Root of everything this package raises on purpose.

    `patience_s` is how long the same failure is worth a retry: whoever raises an error that time
    will hardly mend (a topic nobody knows, no bootstrap server ever reached) sets it low.
    `usable` is what was done or answered all the same, where many things were asked for at once,
    and `refused` what was refused for good: what is neither may have been done, and nobody said so.
    """

    patience_s: float = inf
    usable: Any = None
    refused: Any = None

    def add_line(self, text: str) -> None:
        """Say more, in a line of its own: in `str` too, where notes of exceptions are not."""
        self.args = (f"{self}\n{text}", *self.args[1:])

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def another(error: _E) -> _E:
    """The same error, for who raises it more than once.

    With each raise an error's traceback grows, and holds the frames of all who have met it.
    """
    same = copy(error).with_traceback(error.__traceback__)
    same.__cause__, same.__context__ = error.__cause__, error.__context__
    same.__suppress_context__ = error.__suppress_context__
    return same


def joined(errors: Sequence[KafkaProtoError]) -> KafkaProtoError:
    """The first of several, which names all others too."""
    first, *others = errors
    for error in others:
        first.add_line(str(error))
    return first


def _rebuild(
    cls: type[KafkaProtoError], args: tuple[Any, ...], state: dict[str, Any]
) -> KafkaProtoError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(KafkaProtoError, ValueError):
    """An option or property has a value that cannot be used; names it and what is allowed.

    `value` is shown as given, so callers pass a placeholder for secrets; None is one that was not
    given. `condition` is Spark's own name of this error, where Spark has one.
    """

    def __init__(self, option: str, value: object, allowed: str, condition: str = "") -> None:
        shown = f"[{condition}] " if condition else ""
        found = "missing" if value is None else repr(value)
        super().__init__(f"{shown}option {option!r} is {found}: {allowed}")
        self.option = option
        self.value = value
        self.allowed = allowed
        self.condition = condition


class ConnectionFailed(KafkaProtoError, ConnectionError):
    """A broker could not be reached or was lost; `stage` says how far the connection came.

    Stages in their order: resolve, connect, TLS handshake, handshake, token, send, receive; or
    bootstrap, where no broker that was asked tells of the cluster.
    """

    def __init__(self, broker: str, stage: str, reason: str) -> None:
        super().__init__(f"broker {broker}: {stage} failed: {reason}")
        self.broker = broker
        self.stage = stage
        self.reason = reason

    @property
    def was_connected(self) -> bool:
        """Whether a connection was made, if not for long."""
        return self.stage not in ("resolve", "connect")

    def with_reason(self, reason: str) -> ConnectionFailed:
        """The same, for which more can be said."""
        better = ConnectionFailed(self.broker, self.stage, reason)
        better.patience_s = self.patience_s
        return better


class DeadlineExceeded(KafkaProtoError, TimeoutError):
    """Work did not end in its time; `attempts` tells what was tried and how each try ended."""

    def __init__(self, what: str, timeout_s: float, attempts: Iterable[str] = ()) -> None:
        self.what = what
        self.timeout_s = timeout_s
        self.attempts = tuple(attempts)
        tried = "".join(f"\n  - {attempt}" for attempt in self.attempts)
        super().__init__(f"{what}: not done within {timeout_s:g} s{tried and '; tried:' + tried}")


class Throttled(DeadlineExceeded):
    """A broker wants silence for longer than there is time: nothing was sent to it.

    It says the same for as long as the throttle lasts, so that many tries are told as one.
    """

    def __init__(self, broker: str, throttle_s: float, timeout_s: float) -> None:
        what = f"broker {broker} throttles this client for {throttle_s:g} s, over a quota of its"
        super().__init__(f"{what} user or id", timeout_s)


class OutOfMemory(KafkaProtoError):
    """The system gives no memory for an answer of `size_bytes`.

    `prefix` (such as `kafka.`) is what stands before the properties' names.
    """

    def __init__(self, broker: str, size_bytes: int, prefix: str = "") -> None:
        super().__init__(
            f"broker {broker}: no memory for an answer of {size_bytes} bytes: set "
            f"{prefix}fetch.max.bytes and {prefix}max.partition.fetch.bytes lower, or let the "
            "process have more "
            "(in Spark's workers spark.executor.pyspark.memory bounds it)"
        )
        self.broker = broker
        self.size_bytes = size_bytes


class AuthenticationFailed(KafkaProtoError):
    """The broker refused who we are; never retried, so that no account is locked."""

    def __init__(self, broker: str, mechanism: str, reason: str) -> None:
        super().__init__(f"broker {broker}: {mechanism} authentication failed: {reason}")
        self.broker = broker
        self.mechanism = mechanism
        self.reason = reason


class DevBrokerFailed(KafkaProtoError):
    """The embedded broker, or one of Kafka's tools beside it, could not be fetched or run."""


class UnreadableCapture(KafkaProtoError):
    """A file that is no capture of network traffic."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} cannot be read as a capture: {reason}")
        self.name = name
        self.reason = reason


class LocalProtocolError(KafkaProtoError):
    """We, or the caller, asked for something the protocol does not allow."""


class InvalidRecord(KafkaProtoError, ValueError):
    """A record that no record batch can hold as it is.

    `row` is its number in the columns, from 0; `position` where it stands among the rows that were
    to be appended: what came before it is appended.
    """

    def __init__(self, reason: str, *, row: int, position: int) -> None:
        super().__init__(f"row {row}: {reason}")
        self.reason = reason
        self.row = row
        self.position = position


class RemoteProtocolError(KafkaProtoError):
    """The peer's bytes are not what the protocol says.

    `path` is the field that could not be read (`topics[3].partitions[0].records`), `where` what
    was read (an API and its version, a connection).
    """

    def __init__(self, reason: str, *, where: str = "", path: str = "") -> None:
        prefix = "".join(f"{part}: " for part in (where, path) if part)
        super().__init__(prefix + reason)
        self.reason = reason
        self.where = where
        self.path = path


class CorruptRecords(RemoteProtocolError):
    """A record batch that is damaged or unknown; what readers treat otherwise has a subclass.

    Args:
        reason: what is wrong, with the values that disagree.
        base_offset: the batch's base offset as far as it could be read, else -1.
        pos: where the batch begins in the block, in bytes; everything before it is sound.
        topic, partition: filled in by whoever knows which partition was read.
        condition: Spark's own name of this error, where Spark has one.
    """

    def __init__(
        self,
        reason: str,
        *,
        base_offset: int = -1,
        pos: int = 0,
        topic: str | None = None,
        partition: int | None = None,
        condition: str = "",
    ) -> None:
        shown = f"[{condition}] " if condition else ""
        subject = "record batch" if topic is None else f"{topic}-{partition}, record batch"
        super().__init__(reason, where=f"{shown}{subject} at offset {base_offset} (byte {pos})")
        self.base_offset = base_offset
        self.pos = pos
        self.topic = topic
        self.partition = partition
        self.condition = condition

    def of(self, topic: str, partition: int, condition: str = "") -> CorruptRecords:
        """The same error, with the topic-partition it was found in, and Spark's name for it."""
        condition = condition or self.condition
        return self._changed(topic=topic, partition=partition, condition=condition)

    def because(self, more: str) -> CorruptRecords:
        """The same error, with `more` behind its reason."""
        return self._changed(reason=f"{self.reason}; {more}")

    def _changed(self, **changes: Any) -> CorruptRecords:
        names = ("reason", "base_offset", "pos", "topic", "partition", "condition")
        return type(self)(**({name: getattr(self, name) for name in names} | changes))


class BatchTooLarge(CorruptRecords):
    """A record batch that is larger than the limit; as far as was read, it is sound."""


class TimestampOutOfRange(CorruptRecords):
    """A record whose timestamp in microseconds, as columns hold it, does not fit 64 bits."""


class UnsupportedVersion(KafkaProtoError):
    """The broker and this package share no version of an API, or not the one a feature needs."""


_SPARKS_WAY_OUT = (
    "If you do not want the job to fail because of missing records, set the option failOnDataLoss "
    "to false."
)


class DataLoss(KafkaProtoError):
    """Records that should be there are gone; carries Spark's own condition name.

    Args:
        condition: the part after `KAFKA_DATA_LOSS.`, as in Spark's error conditions.
        text: what is gone.
        way_out: what can be done, for those who are not in Spark.
        advice: more of that, for those who have what it names; kept as an attribute.
    """

    def __init__(
        self, condition: str, text: str, way_out: str = _SPARKS_WAY_OUT, advice: str = ""
    ) -> None:
        super().__init__(f"[KAFKA_DATA_LOSS.{condition}] {text} {way_out}{advice}")
        self.condition = condition
        self.text = text
        self.advice = advice


class BrokerError(KafkaProtoError):
    """A broker answered with an error code.

    Args:
        code: the number, kept even where this package does not know it.
        api: the API that was asked.
        subject: what the code was about (`topic 'orders'`, `group 'g', partition orders-0`).
        message: the broker's own text, if it sent one, or ours about what to do.
        usable: what was answered without error all the same, for the caller to use.
    """

    def __init__(
        self, code: int, api: str, subject: str, message: str = "", usable: Any = None
    ) -> None:
        row = error_code(code)
        right = missing_right(api, code)
        needed = f"this user needs the right {right}" if right else ""
        said = message.rstrip(" .") if needed else message
        detail = "; ".join(filter(None, (said, needed)))
        super().__init__(f"{api}: {subject}: {row.name} ({code}){detail and ': ' + detail}")
        self.code = code
        self.api = api
        self.subject = subject
        self.message = message
        self.usable = usable

    @property
    def error(self) -> ErrorCode:
        """The row of the table for this code, with what this API's client does about it."""
        return error_code(self.code, self.api)

    def at(self, broker: str) -> BrokerError:
        """The same error, with the broker that answered it."""
        named = BrokerError(
            self.code, self.api, f"{self.subject} at broker {broker}", self.message, self.usable
        )
        named.patience_s = self.patience_s
        return named

    def saying(self, message: str) -> BrokerError:
        """The same error, with another message."""
        told = BrokerError(self.code, self.api, self.subject, message, self.usable)
        told.patience_s = self.patience_s
        return told

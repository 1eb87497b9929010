"""Records that can never be written: what is too large, malformed, or refused by the broker.

They fail the write, or go to a dead letter topic with the reason in their headers, counted. A batch
that the broker refuses without saying which record is at fault is halved until one is left. A
letter that is too large for its topic is cut, and says what was left out; one whose timestamp no
topic of the same settings would take has that in a header, and the time of now in its place.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Sequence

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.plain import (
    ProducerRecord,
    decoded_batch,
    encoded_part,
    encoded_records,
    records_of,
)
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.verdicts import TOO_LARGE
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.error_codes import INVALID_TIMESTAMP
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import ProducerConfig
from pyspark_kafkaproto.records import Decoded

_log = logging.getLogger(__name__)

REASON_HEADER = "kafkaproto.reason"
TOPIC_HEADER = "kafkaproto.topic"
PARTITION_HEADER = "kafkaproto.partition"
TIMESTAMP_HEADER = "kafkaproto.timestamp"
LEFT_OUT_HEADER = "kafkaproto.left_out"

# Letters are values in Python, which buffer.memory does not count: more are not held, but for those
# of the answers that one look at the brokers takes.
MOST_HELD_BYTES = 4 << 20
_LETTER_BYTES = 1000  # of Python's objects for each, about

_LEAST_LIMIT_BYTES = 1024
# What a letter needs beside its contents: a batch's header, and lengths in its record. With more
# values would be left out that there is room for.
_ROOM_BYTES = 128
_REASON_CHARACTERS = 1000

_PUT_ASIDE = ". To put such records aside instead: "
_ADVICE = f"{_PUT_ASIDE}give the Producer a dead_letter_topic"
_ADVICE_IN_SPARK = f"{_PUT_ASIDE}onInvalidRecord=deadletter with deadLetterTopic"


class RecordRefused(KafkaProtoError):
    """A record that can never be written; names its topic, partition and row.

    Attributes:
        advice: the end of the text, for those who have what it names.
    """

    def __init__(self, subject: str, row: int, reason: str, advice: str) -> None:
        super().__init__(f"{subject}, row {row}: {reason}{advice}")
        self.advice = advice
        self.row = row
        self.reason = reason


class RecordsRefused(BrokerError):
    """Records that a broker does not take; `advice` as in `RecordRefused`."""

    def __init__(self, error: BrokerError, subject: str, reason: str, advice: str) -> None:
        super().__init__(error.code, error.api, subject, f"{reason}{advice}")
        self.advice = advice


class Refusals:
    """What becomes of records that can never be written.

    Attributes:
        letters: dead letters that wait to be written, as records for the dead letter topic, each
            with the number of the row that it is of.
        count: how many records were refused.
    """

    def __init__(self, config: ProducerConfig, dead_letter_topic: str | None) -> None:
        self._config = config
        self.dead_letter_topic = dead_letter_topic
        self.letters: deque[tuple[int, ProducerRecord]] = deque()
        self._held_bytes = 0
        self.count = 0

    @property
    def holds_many(self) -> bool:
        """Whether so many letters wait that they should be sent before there are more."""
        return self._held_bytes > MOST_HELD_BYTES

    def take_letters(self) -> list[tuple[int, ProducerRecord]]:
        """The first of the letters that wait, no more than should be held at once; at least one."""
        taken: list[tuple[int, ProducerRecord]] = []
        until = self._held_bytes - MOST_HELD_BYTES
        while self.letters and self._held_bytes > until:
            taken.append(self.letters.popleft())
            self._held_bytes -= _held_bytes_of(taken[-1][1])
        return taken

    def forget_letters(self) -> None:
        """Nothing was refused yet of what is sent from now on."""
        self.letters.clear()
        self._held_bytes = 0

    def refuse(
        self, record: ProducerRecord, row: int, topic: str | None, partition: int, reason: str
    ) -> None:
        """A row that was never sent.

        Args:
            record: its content.
            row: its number.
            topic: where it was to go; None where it did not say.
            partition: -1 where there is none.
            reason: why it cannot.

        Raises:
            RecordRefused: such records fail the write.
        """
        if not self._puts_aside(topic):
            place = TopicPartition(topic, partition) if topic and partition >= 0 else topic
            subject = str(place or "a row without a topic")
            raise RecordRefused(subject, row, reason, self._advice)
        self._put_aside(record, row, topic or "", partition, reason)

    def of_row(self, error: BrokerError, row: int) -> BrokerError:
        """The error of a topic that does not exist, with the first row that is to go there."""
        error.add_line(f"Row {row} names it{self._advice}")
        return error

    def refuse_batch(
        self,
        queue: PartitionQueue,
        batch: Batch,
        data: ProduceResponse.Topic.Partition,
        error: BrokerError,
    ) -> list[Batch]:
        """A batch in flight that the broker does not take, replaced by what is left of it.

        Returns:
            The batches in its place.

        Raises:
            BrokerError: such records fail the write.
        """
        parts = self._left_of(queue, batch, data, error)
        queue.replace(batch, parts)
        return parts

    def _left_of(
        self,
        queue: PartitionQueue,
        batch: Batch,
        data: ProduceResponse.Topic.Partition,
        error: BrokerError,
    ) -> list[Batch]:
        """Its halves where any of its records may be at fault; else what can be written of it.

        The rest is put aside.
        """
        decoded = decoded_batch(batch.data, batch.records)
        numbers = batch.row_numbers()
        reasons = _reasons(data, batch, error)
        is_too_large = error.code in TOO_LARGE
        if batch.records > 1 and (is_too_large or not reasons):
            if is_too_large:
                half = max(_LEAST_LIMIT_BYTES, decoded.max_batch_bytes // 2)
                queue.limit_bytes = min(queue.limit_bytes, half)
            elif not self._may_be_mended(queue, error):
                raise self._advised(error, error.subject, error.message)
            middle = batch.records // 2
            halves = (range(middle), range(middle, batch.records))
            return [
                self._part(batch, decoded, index, rows, numbers)
                for index, rows in enumerate(halves)
            ]
        letters = None
        if is_too_large:
            letters = self._cut_letter(queue, batch, decoded, numbers)
        elif error.code == INVALID_TIMESTAMP:
            letters = self._untimed_letters(queue, batch, decoded, numbers, reasons)
        if letters is not None:
            return [letters]
        self._put_aside_rows(queue, decoded, reasons, numbers, error)
        kept = [row for row in range(batch.records) if row not in reasons]
        return [self._part(batch, decoded, 0, kept, numbers)] if kept else []

    def _put_aside_rows(
        self,
        queue: PartitionQueue,
        decoded: Decoded,
        reasons: dict[int, str],
        numbers: Sequence[int],
        error: BrokerError,
    ) -> None:
        topic, partition = queue.partition
        if not self._puts_aside(topic):
            row, reason = next(iter(reasons.items()))
            subject = error.subject
            if len(numbers) > 1:
                subject = subject.replace(", ", f", row {numbers[row]} among ", 1)
            raise self._advised(error, subject, reason)
        for record, row in zip(records_of(decoded, reasons), reasons, strict=True):
            reason = f"{error.error.name}: {reasons[row]}"
            self._put_aside(record, numbers[row], topic, partition, reason, error.code)

    def _part(
        self,
        batch: Batch,
        decoded: Decoded,
        index: int,
        rows: Sequence[int],
        numbers: Sequence[int],
    ) -> Batch:
        data = encoded_part(decoded, rows, self._config.codec, self._config.level)
        return batch.part(index, data, (numbers[row] for row in rows))

    @property
    def _advice(self) -> str:
        """What to do; nothing where it is done, and a row for that topic itself is at fault."""
        if self.dead_letter_topic is not None:
            return ""
        return _ADVICE_IN_SPARK if self._config.client.from_options else _ADVICE

    def _advised(self, error: BrokerError, subject: str, reason: str) -> RecordsRefused:
        """The error of records that a broker refused, with what can be done about them."""
        return RecordsRefused(error, subject, reason or "no reason given", self._advice)

    def _puts_aside(self, topic: str | None) -> bool:
        return self.dead_letter_topic is not None and topic != self.dead_letter_topic

    def _has_letters(self, queue: PartitionQueue) -> bool:
        """Whether it is one of the dead letter topic, where rows of the user's may go as well."""
        return queue.partition.topic == self.dead_letter_topic

    def _put_aside(
        self,
        record: ProducerRecord,
        row: int,
        topic: str,
        partition: int,
        reason: str,
        code: int = 0,
    ) -> None:
        self.count += 1
        if self.count == 1:
            _log.warning("a record goes to %s: %s", self.dead_letter_topic, reason)
        headers = [
            *record.headers,
            (REASON_HEADER, reason[:_REASON_CHARACTERS].encode()),
            (TOPIC_HEADER, topic.encode()),
        ]
        if partition >= 0:
            headers.append((PARTITION_HEADER, str(partition).encode()))
        letter = record._replace(topic=self.dead_letter_topic, partition=None, headers=headers)
        if code == INVALID_TIMESTAMP:
            letter = _untimed(letter)
        letter = self._fitting(letter)
        self.letters.append((row, letter))
        self._held_bytes += _held_bytes_of(letter)

    def _fitting(self, letter: ProducerRecord) -> ProducerRecord:
        """The letter without what cannot be written anywhere: it says what was left out."""
        room = self._config.max_request_size - _ROOM_BYTES
        while _size(letter) > room:
            smaller = _cut(letter)
            if smaller is None:
                break
            letter = smaller
        return letter

    def _cut_letter(
        self, queue: PartitionQueue, batch: Batch, decoded: Decoded, numbers: Sequence[int]
    ) -> Batch | None:
        """A letter that is too large for its topic without the next thing it can do without.

        None where it is no letter, or has nothing left to leave out.
        """
        if not self._has_letters(queue):
            return None
        (letter,) = records_of(decoded, [0])
        smaller = _cut(letter) if _our_headers(letter) else None
        if smaller is None:
            return None
        data = encoded_records([smaller], self._config.codec, self._config.level)
        return batch.part(0, data, numbers)

    def _may_be_mended(self, queue: PartitionQueue, error: BrokerError) -> bool:
        """Whether single records of a batch can be put aside, or written in another form."""
        is_untimed = self._has_letters(queue) and error.code == INVALID_TIMESTAMP
        return self._puts_aside(queue.partition.topic) or is_untimed

    def _untimed_letters(
        self,
        queue: PartitionQueue,
        batch: Batch,
        decoded: Decoded,
        numbers: Sequence[int],
        refused: Collection[int],
    ) -> Batch | None:
        """A batch of letters, those that were refused with the time of now; their own is a header.

        None where one of those is no letter, or was refused with the time of now.
        """
        if not self._has_letters(queue):
            return None
        letters = records_of(decoded, range(batch.records))
        for row in refused:
            ours = _our_headers(letters[row])
            if not ours or TIMESTAMP_HEADER in dict(ours):
                return None
            letters[row] = _untimed(letters[row])
        data = encoded_records(letters, self._config.codec, self._config.level)
        return batch.part(0, data, numbers)


def _untimed(letter: ProducerRecord) -> ProducerRecord:
    """The letter with the time of now, its record's in a header."""
    text = str(letter.timestamp_ms).encode()
    return letter._replace(timestamp_ms=None, headers=[*letter.headers, (TIMESTAMP_HEADER, text)])


def _cut(letter: ProducerRecord) -> ProducerRecord | None:
    """The letter without its value, else its record's headers, else its key; None without all."""
    ours = _our_headers(letter)
    headers = letter.headers[: len(letter.headers) - len(ours)]
    if letter.value:
        what = f"value ({_size_of(letter.value)} bytes)"
        letter = letter._replace(value=None)
    elif headers:
        what = f"headers ({_size_of(headers)} bytes)"
        headers = []
    elif letter.key:
        what = f"key ({_size_of(letter.key)} bytes)"
        letter = letter._replace(key=None)
    else:
        return None
    before = dict(ours).pop(LEFT_OUT_HEADER, None)
    note = what if before is None else f"{before.decode()}, {what}"
    kept = [pair for pair in ours if pair[0] != LEFT_OUT_HEADER]
    return letter._replace(headers=[*headers, *kept, (LEFT_OUT_HEADER, note.encode())])


def _our_headers(letter: ProducerRecord) -> list[tuple[str, bytes | None]]:
    """The headers that a letter has beside its record's, which may be a letter's itself."""
    named = [
        (key if isinstance(key, str) else key.decode(errors="replace"), value)
        for key, value in letter.headers
    ]
    begins = [place for place, (key, _) in enumerate(named) if key == REASON_HEADER]
    return named[begins[-1] :] if begins else []


def _reasons(
    data: ProduceResponse.Topic.Partition, batch: Batch, error: BrokerError
) -> dict[int, str]:
    """Which records are at fault, and why; empty where the broker does not say (KIP-467)."""
    named = {
        item.batch_index: item.batch_index_error_message or error.message
        for item in data.record_errors
        if 0 <= item.batch_index < batch.records
    }
    if batch.records == 1:
        return named or {0: error.message}
    return named


def _size(record: ProducerRecord) -> int:
    """What a record takes, but for what every record has; see `_ROOM_BYTES`."""
    contents = _size_of(record.value) + _size_of(record.key) + _size_of(record.headers)
    return contents + sum(_length_bytes(item) for pair in record.headers for item in pair)


def _held_bytes_of(letter: ProducerRecord) -> int:
    return _size(letter) + _LETTER_BYTES


def _length_bytes(content: str | bytes | None) -> int:
    """What the length before a header's key or value takes: a zigzag varint, -1 for null."""
    return max(1, -(-(2 * _size_of(content)).bit_length() // 7))


def _size_of(content: str | bytes | Sequence[tuple[str | bytes, bytes | None]] | None) -> int:
    if content is None:
        return 0
    if isinstance(content, str):
        return len(content.encode())
    if isinstance(content, bytes):
        return len(content)
    return sum(_size_of(key) + _size_of(value) for key, value in content)

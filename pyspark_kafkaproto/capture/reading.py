"""A whole capture, from its packets to its messages, in memory that is bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyspark_kafkaproto.capture.conversation import Conversation, Limits, Note
from pyspark_kafkaproto.capture.fast_path import fast_path_of
from pyspark_kafkaproto.capture.message import Message
from pyspark_kafkaproto.capture.packets import PacketReader


def read_messages(
    reader: PacketReader, ports: Collection[int] = (), limits: Limits | None = None
) -> Iterator[Message | Note]:
    """All messages of a capture, in the order in which they became complete, and notes.

    Args:
        reader: from `open_capture`.
        ports: of brokers: nothing else is looked at then. Empty: Kafka on any port.
        limits: what bounds the memory.
    """
    conversation = Conversation(ports, limits)
    fast_path = fast_path_of(reader, conversation)
    for packet in reader:
        if found := conversation.feed(packet):
            yield from found
        while fast_path is not None and (found := fast_path.take()):
            yield from found
    yield from conversation.finish()
    if reader.damage:
        yield Note(conversation.time_ns, None, f"the capture ends early: {reader.damage}")

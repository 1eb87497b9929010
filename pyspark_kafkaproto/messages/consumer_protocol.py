"""ConsumerProtocol.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Message, Struct, Versions, array, field


class ConsumerProtocolAssignment(Message):
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = None

    class AssignedPartition(Struct):
        topic: str = field("string", "0+")
        partitions: tuple[int, ...] = array("int32", "0+")

    assigned_partitions: tuple[AssignedPartition, ...] = array(AssignedPartition, "0+")
    user_data: bytes | None = field("bytes", "0+", default=None, nullable="0+")


class ConsumerProtocolSubscription(Message):
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = None

    class OwnedPartition(Struct):
        topic: str = field("string", "1+")
        partitions: tuple[int, ...] = array("int32", "1+")

    topics: tuple[str, ...] = array("string", "0+")
    user_data: bytes | None = field("bytes", "0+", default=None, nullable="0+")
    owned_partitions: tuple[OwnedPartition, ...] = array(OwnedPartition, "1+", ignorable=True)
    generation_id: int = field("int32", "2+", default=-1, ignorable=True)
    rack_id: str | None = field("string", "3+", default=None, nullable="3+", ignorable=True)

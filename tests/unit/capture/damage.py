"""A conversation that has something of everything, as captures; and damage done to one."""

from pyspark_kafkaproto.capture.link import ETHERNET
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from pyspark_kafkaproto.messages.sasl_handshake import SaslHandshakeRequest
from pyspark_kafkaproto.records import NewRecord, encode_batch
from pyspark_kafkaproto.wire.frame import encode_request
from tests.unit.capture.talks import (
    fetch_request,
    fetch_response,
    metadata_request,
    metadata_response,
)
from tests.unit.capture.wire import Talk, enhanced, interface, section

_RECORDS = [NewRecord(b"value", b"key", 1_700_000_000_000, [(b"h", None)])] * 3


def talk():
    """A conversation with records in every compression, and a password."""
    made = Talk().open()
    made.say(0, metadata_request(1)).say(1, metadata_response(1))
    for codec in range(5):
        made.say(0, fetch_request(codec + 2, version=12))
        made.say(1, fetch_response(codec + 2, encode_batch(_RECORDS, codec=codec), 12), 150)
    made.say(0, encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 90, "c"))
    made.say(0, encode_request(SaslAuthenticateRequest(auth_bytes=b"\0me\0secret"), 2, 91, "c"))
    return made.close()


def originals():
    """The same conversation as pcap and as pcapng."""
    made = talk()
    blocks = [enhanced(0, time_ns // 1000, data) for time_ns, data, _ in made.packets]
    return [made.pcap(), section() + interface(ETHERNET) + b"".join(blocks)]


def damaged(rng, original):
    """Bytes changed, taken out, doubled or moved; mostly behind the file's header."""
    data = bytearray(original)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(0 if rng.random() < 0.05 else 24, len(data))
        size = rng.choice([1, 1, 2, 4, 60, 400])
        match rng.randrange(5):
            case 0:
                data[at : at + size] = rng.randbytes(size)
            case 1:
                data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            case 2:
                del data[at : at + size]
            case 3:
                data[at:at] = data[at : at + size]
            case _:
                other = rng.randrange(24, len(data))
                data[at : at + size] = data[other : other + size]
        if len(data) < 100:
            break
    return bytes(data)

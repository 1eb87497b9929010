# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The packets that carry the rest of a frame, natively: headers checked, payloads joined.

Law: what is taken are packets that `fast_path.py` would take one after the other with the same
effect, and nothing else; any bytes are read within their bounds, and no Python object is made per
packet. The first packet that does not fit is left to those who look closely. `fast_path.py` does
without this where it was not built.
Formats: as in `pcap.py` and `link.py`, whose numbers these are.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp, memcpy

cdef enum:  # of a pcap packet: seconds, their fraction, bytes kept, bytes on the wire
    FRACTION_POS = 4
    KEPT_POS = 8
    HEADER_BYTES = 16
    PACKET_BYTES_MAX = 262_144

cdef enum:  # of an Ethernet frame that carries IPv4 without options, and TCP
    TYPE_POS = 12
    IP_POS = 14
    TOTAL_POS = 16
    FRAGMENT_POS = 20
    PROTOCOL_POS = 23
    FLOW_POS = 26
    TCP_POS = 34
    SEQ_POS = 38
    OFFSET_POS = 46
    FLAGS_POS = 47
    PLAIN_STOP = 48

cdef enum:
    ETHERTYPE_IPV4 = 0x0800
    PLAIN_IPV4 = 0x45
    FRAGMENT_OFFSET = 0x1FFF
    TCP = 6
    PLAIN_TCP = 0x50
    ACK = 0x10
    TURNS = 0x17  # ACK, FIN, RST and SYN

cdef enum:
    ADDRESS_BYTES = 4
    PORT_BYTES = 2
    FLOW_BYTES = 12


cdef struct Connection:
    const uint8_t *flow  # addresses and ports of who sends the frame, and of its receiver
    uint8_t reverse[FLOW_BYTES]
    bint is_big_endian  # the file


cdef struct Packet:
    const uint8_t *payload
    const uint8_t *behind
    Py_ssize_t size
    uint32_t seq


cdef inline uint32_t big_uint32_at(const uint8_t *at) noexcept nogil:
    return (
        <uint32_t> at[0] << 24 | <uint32_t> at[1] << 16 | <uint32_t> at[2] << 8 | <uint32_t> at[3]
    )


cdef inline uint32_t uint32_at(const uint8_t *at, bint is_big_endian) noexcept nogil:
    if is_big_endian:
        return big_uint32_at(at)
    return (
        <uint32_t> at[3] << 24 | <uint32_t> at[2] << 16 | <uint32_t> at[1] << 8 | <uint32_t> at[0]
    )


cdef inline int big_uint16_at(const uint8_t *at) noexcept nogil:
    return at[0] << 8 | at[1]


cdef inline bint is_plain(const uint8_t *frame) noexcept nogil:
    """Whether PLAIN_STOP bytes are the usual headers of a segment in the middle of a stream."""
    return (
        big_uint16_at(frame + TYPE_POS) == ETHERTYPE_IPV4
        and frame[IP_POS] == PLAIN_IPV4
        and frame[PROTOCOL_POS] == TCP
        and not big_uint16_at(frame + FRAGMENT_POS) & FRAGMENT_OFFSET
        and frame[OFFSET_POS] >= PLAIN_TCP
        and frame[FLAGS_POS] & TURNS == ACK
    )


cdef inline bint take_packet(
    const uint8_t *at, const uint8_t *end, const Connection *connection, Packet *packet
) noexcept nogil:
    """The packet at `at`, if it is usual and whole, from the frame's sender or without payload."""
    cdef const uint8_t *frame
    cdef uint32_t kept
    cdef int start, stop
    if end - at < HEADER_BYTES + PLAIN_STOP:
        return False
    frame = at + HEADER_BYTES
    kept = uint32_at(at + KEPT_POS, connection.is_big_endian)
    if kept > PACKET_BYTES_MAX or end - frame < <int> kept or not is_plain(frame):
        return False
    start = TCP_POS + (frame[OFFSET_POS] >> 4) * 4
    stop = IP_POS + big_uint16_at(frame + TOTAL_POS)
    if not start <= stop <= <int> kept:
        return False
    packet.payload = frame + start
    packet.behind = frame + kept
    packet.size = stop - start
    packet.seq = big_uint32_at(frame + SEQ_POS)
    if memcmp(frame + FLOW_POS, connection.flow, FLOW_BYTES) == 0:
        return True
    return packet.size == 0 and memcmp(frame + FLOW_POS, connection.reverse, FLOW_BYTES) == 0


cdef inline void set_reverse(Connection *connection) noexcept nogil:
    cdef const uint8_t *flow = connection.flow
    cdef int ports = 2 * ADDRESS_BYTES
    memcpy(connection.reverse, flow + ADDRESS_BYTES, ADDRESS_BYTES)
    memcpy(connection.reverse + ADDRESS_BYTES, flow, ADDRESS_BYTES)
    memcpy(connection.reverse + ports, flow + ports + PORT_BYTES, PORT_BYTES)
    memcpy(connection.reverse + ports + PORT_BYTES, flow + ports, PORT_BYTES)


def take_run(
    bytes data not None,
    Py_ssize_t pos,
    bint is_big_endian,
    bytes flow not None,
    uint32_t seq,
    Py_ssize_t wanted,
):
    """The usual packets from `pos` on that carry the next bytes of one side of a connection.

    Between them may stand packets of either side that carry nothing. The last one taken carries
    something, so that its time is that of both the bytes and the packets.

    Args:
        data: packets as in a pcap file.
        pos: where in `data` the first of them stands.
        is_big_endian: whether the file is.
        flow: the sender's and receiver's addresses and ports, as they stand in a packet.
        seq: the sequence number of the next byte.
        wanted: how many bytes, at most.

    Returns:
        (the position behind the last packet taken, how many packets, their payload, and the last
        one's seconds and their fraction); (pos, 0, b"", 0, 0) where there is none.

    Raises:
        ValueError: `pos` is not in `data`, or `flow` is none of IPv4.
    """
    cdef const uint8_t *first = <const uint8_t *> PyBytes_AS_STRING(data)
    cdef const uint8_t *end = first + PyBytes_GET_SIZE(data)
    cdef Connection connection
    cdef Packet packet
    cdef const uint8_t *at
    cdef const uint8_t *last = NULL
    cdef const uint8_t *behind
    cdef uint8_t *to
    cdef Py_ssize_t size = 0, seen = 0, packets = 0
    if not 0 <= pos <= PyBytes_GET_SIZE(data):
        raise ValueError(f"position {pos} is not in {len(data)} bytes")
    if PyBytes_GET_SIZE(flow) != FLOW_BYTES:
        raise ValueError(f"a flow of {len(flow)} bytes")
    connection.flow = <const uint8_t *> PyBytes_AS_STRING(flow)
    connection.is_big_endian = is_big_endian
    set_reverse(&connection)

    at = behind = first + pos
    while size < wanted and take_packet(at, end, &connection, &packet):
        seen += 1
        if packet.size:
            if packet.seq != seq or packet.size > wanted - size:
                break
            size += packet.size
            seq += <uint32_t> packet.size
            packets, last, behind = seen, at, packet.behind
        at = packet.behind
    if last is NULL:
        return pos, 0, b"", 0, 0

    payload = PyBytes_FromStringAndSize(NULL, size)
    to = <uint8_t *> PyBytes_AS_STRING(payload)
    at = first + pos
    while at < behind and take_packet(at, end, &connection, &packet):
        memcpy(to, packet.payload, packet.size)
        to += packet.size
        at = packet.behind
    return (
        <Py_ssize_t> (behind - first),
        packets,
        payload,
        uint32_at(last, is_big_endian),
        uint32_at(last + FRACTION_POS, is_big_endian),
    )

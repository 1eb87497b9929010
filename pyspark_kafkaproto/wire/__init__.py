"""Bytes <-> values of Kafka's protocol, without I/O and without knowing any message.

cursor       the bounded reader, and the writer: the only place where a position moves
types        the primitive types of the protocol guide, as codecs
declaration  how a message is declared: `Request`, `Response`, `Struct`, `field`, `array`
schema       the compiler, and what callers use: `encode`, `decode`, `read`
frame        size prefix and headers: `encode_request`, `decode_response`, and the reverse
front        the start of a message whose records are still coming
standing     a question that is asked again and again: its bytes and its last answer are kept
quick        readers made for one class and version, for messages that come often
trace        decoding that remembers where each field stood
ids          ids of 16 bytes, as Kafka's tools print them
path         errors that know their field: `topics[3].partitions[0].records`
printable    texts from anybody, as a terminal may be given them

Law: any bytes give a message or `RemoteProtocolError`, and memory follows the bytes that are
there, never a number that stands in them. A value that a version cannot carry is a
`LocalProtocolError`; nothing is dropped unless Kafka's definitions allow it. What a version has is
said by the declarations, and asked by nobody outside of this room.

Source: the protocol guide of Apache Kafka (types and headers), KIP-482 (flexible versions).
"""

"""The protocol analyser: captured bytes in, the conversation out. No socket, no thread of its own.

pcap, pcapng   packets out of capture files; merged: of several
link           from a link layer's bytes to a TCP segment
tcp            segments to byte streams: order, overlaps, losses
frames         a byte stream to frames: the size prefix, and finding the next one after a loss
conversation   connections, requests matched to responses; sides: the two of each, and what they
               make of their frames
fast_path      nearly all packets of a large pcap, taken without being looked at one by one; _run:
               the rest of a frame natively
reading        a whole capture: what `read_messages` gives
message        one message: what it is, decoded when somebody asks
about          the topics, partitions, offsets and errors of a message; subjects: where a class says
               so; walk: a function made of that
tree           its fields with their byte ranges; batches (batches.py) and message sets opened
secrets        byte ranges that nobody is to see
selection      which messages are shown · statistics: counts and latencies · report, page: showing
recorder       the other way: frames into a pcapng, under the names of `naming`; frame_file: onto a
               disk that may be full

Memory is bounded whatever a capture holds: see `conversation.Limits`. It must not know brokers,
and nothing below it knows captures. Formats: the pcap and pcapng drafts of the IETF's opsawg; the
link types of tcpdump.org; RFC 9293 (TCP); Kafka's protocol guide.
"""

from pyspark_kafkaproto.capture.conversation import Conversation, Limits, Note
from pyspark_kafkaproto.capture.message import Message
from pyspark_kafkaproto.capture.pcap import open_capture
from pyspark_kafkaproto.capture.reading import read_messages

__all__ = ["Conversation", "Limits", "Message", "Note", "open_capture", "read_messages"]

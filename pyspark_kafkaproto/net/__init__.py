"""Sockets, deadlines, connections, retries: everything that waits for a peer.

`transport` and `tls` own the sockets to brokers, `relay` and `ports` those of servers; `connection`
speaks request and response over one: it begins with a `handshake`, in `versions` that both sides
know, and logs in by `authentication`: `login` picks a mechanism of `sasl`, `jaas` and `oauth` say
with what. Requests leave by its `outgoing`, answers come by its `incoming`, large ones as an
`arrival`, which `_inflow` receives natively; both tell `observing` of their frames. `pool`
keeps connections per configuration, `waiting` waits for several; `retry` is the loop that tries
again, `bounded` ends calls that know no time-out; `hints` say what a beginning that breaks tells.
`config`, `consumer_config`, `share_config` and `producer_config` are Kafka's client properties as
values, made by the readers in `properties`, `security` those about TLS and SASL, `stores` the
certificates that these name, `secret` a text never shown; `properties_file` is a file of them. This
room knows messages only as things to send and receive: what a topic or a group is stands in
`cluster`.
"""

from pyspark_kafkaproto.net.arrival import Arrival
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.connection import Connection, Reply
from pyspark_kafkaproto.net.consumer_config import ConsumerConfig
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.incoming import MakeBuffer
from pyspark_kafkaproto.net.pool import Connections, connections_for
from pyspark_kafkaproto.net.producer_config import ProducerConfig
from pyspark_kafkaproto.net.retry import Backoff, retrying
from pyspark_kafkaproto.net.share_config import ShareConfig
from pyspark_kafkaproto.net.transport import Endpoint
from pyspark_kafkaproto.net.waiting import wait_for_answers

__all__ = [
    "Arrival",
    "Backoff",
    "ClientConfig",
    "Connection",
    "Connections",
    "ConsumerConfig",
    "Deadline",
    "Endpoint",
    "MakeBuffer",
    "ProducerConfig",
    "Reply",
    "ShareConfig",
    "connections_for",
    "retrying",
    "wait_for_answers",
]

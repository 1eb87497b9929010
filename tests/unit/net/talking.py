"""Connections to fake brokers, and to a socket that the test itself answers by."""

from __future__ import annotations

import socket
from contextlib import closing, contextmanager

from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from pyspark_kafkaproto.net.transport import Transport

ALL_TOPICS = MetadataRequest(topics=None)
SOON_S = 0.05
PIECE = 100


def config_of(cluster, **properties):
    """With properties whose dots are underscores."""
    names = {name.replace("_", "."): value for name, value in properties.items()}
    return ClientConfig.parse({"bootstrap.servers": cluster.address()} | names, "kafka.")


@contextmanager
def opened(cluster, on_frame=None, **properties):
    connection = Connection.open(
        Endpoint.parse(cluster.address()), config_of(cluster, **properties), soon(), on_frame
    )
    with closing(connection):
        yield connection


def soon(timeout_s=5.0):
    return Deadline.after(timeout_s)


@contextmanager
def joined():
    """A connection that nobody has shaken hands on, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = Endpoint(*server.getsockname())
        config = ClientConfig.parse({"bootstrap.servers": str(place)})
        with closing(Connection(Transport.connect(place, soon()), config)) as connection:
            peer, _ = server.accept()
            with peer:
                yield connection, peer


def named(cluster_id):
    return MetadataResponse(cluster_id=cluster_id)


def take_in_until(connection, is_enough):
    deadline = soon()
    while not is_enough():
        deadline.check("waiting for what the peer sent")
        connection.take_in()


def records_of(size_bytes):
    partition = FetchResponse.Topic.Partition(records=bytes(size_bytes))
    return FetchResponse(responses=(FetchResponse.Topic(partitions=(partition,)),))

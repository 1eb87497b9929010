"""Every message of every client API and version, wrapped in a capture, is decoded."""

import pytest

from pyspark_kafkaproto.capture.tree import tree
from pyspark_kafkaproto.messages import request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.wire.frame import encode_request, encode_response
from tests.examples import first
from tests.unit.capture.wire import Talk, read


@pytest.mark.parametrize("api", first(8, APIS), ids=lambda api: api.name)
def test_every_version_of(api):
    # With acks 0, the default, no answer would come.
    values = {"acks": 1} if api.name == "Produce" else {}
    asked, answered = request_class(api.key)(**values), response_class(api.key)()
    talk = Talk().open()
    versions = range(api.versions.min, api.versions.max + 1)
    for version in versions:
        talk.say(0, encode_request(asked, version, version + 1, "everything"))
        talk.say(1, encode_response(answered, version, version + 1))
    messages, _ = read(talk.close().pcap())
    for message in messages:
        assert message.body() is not None, message.problem
        assert (message.api, message.client_id) == (api.name, "everything")
        root = tree(message)
        assert root.problem == ""
        assert root.stop - root.children[-1].stop <= 1  # no tagged fields: a byte without a node
    requests = [message.version for message in messages if message.kind == "request"]
    assert requests == list(versions)
    assert len(messages) == 2 * len(versions)

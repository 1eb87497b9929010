"""Kafka's messages: one generated file per API, request and response, all versions in one class.

    from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse

    request = MetadataRequest(topics=(MetadataRequest.Topic(name="orders"),))
    frame = encode_request(request, 12, correlation_id=1, client_id="me")       # wire.frame
    _, response = decode_response(MetadataResponse, payload, 12)                # wire.frame
    body = encode(request, 12); again = decode(MetadataRequest, body, 12)       # wire.schema

A message class has `API_KEY`, `API_NAME` ("Metadata"), `VERSIONS` (a named tuple `min, max`, both
included; `9 in VERSIONS` asks for one), `FLEXIBLE_FROM` (None: never) and `FIELDS`. Instances are
frozen, built by keyword, and compare by value; what is not named has the default of Kafka's
definitions, else 0, "", (), False, or 16 zero bytes. Names are Kafka's in snake_case; structures
are nested classes in the singular (`MetadataResponse.Topic.Partition`).

- arrays are tuples; `bytes` are copied out of the frame, `records` are a memoryview of it
- uuid is 16 bytes, `NO_ID` (wire.declaration) the id of nothing; a repr shows them as Kafka's tools
- a field that a version lacks has its default after decoding; encoding refuses another value
  (LocalProtocolError with field and version), unless Kafka's definitions call the field ignorable
- tagged fields that are not declared stay in `unknown_tagged_fields` and are written back
- damaged bytes are a RemoteProtocolError with API, version and path (`topics[3].name`)

`find_api`, `key_of`, `request_class` and `response_class` go from an API's key or name to what is
known of it; importing this package loads no message. This room knows bytes and classes, no broker.
Which versions are covered: docs/protocol-coverage.md. Source: the definitions in Kafka's client
jars.
"""

from pyspark_kafkaproto.messages.registry import find_api, key_of, request_class, response_class

__all__ = ["find_api", "key_of", "request_class", "response_class"]

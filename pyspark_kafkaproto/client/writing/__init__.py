"""The way of rows to brokers, step by step; `client/produce` is who walks it.

`intake` takes what is sent: `gathering` has records wait until `plain` makes Arrow of them,
`coalescing` puts small batches together. `appending` brings each row to the open batch of its
partition: `picking` sorts rows by topic, `targets` knows the topics and their partitions,
`placement` says which of these each row goes to. `accumulate` encodes rows into record batches,
`queues` and `batches` are what waits for each partition, under the producer's `identity` and its
`sequences`, `sending` brings it to the leaders over their `links`, `verdicts` and `refusals` say
what becomes of what a broker does not take; `int32` reads the numbers of rows. `forgotten` warns of
rows that go with a producer that nobody closed.
Nothing here knows of transactions but that a batch is in one, or of who made the rows.
"""

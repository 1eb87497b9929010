"""Membership in a consumer group, seen from the inside.

`membership` is what the member's two threads know of it, `keeper` the one that keeps it, and
`conversation` how it speaks with the group's coordinator; what is said there, and when, is in the
rooms of the two protocols, `classic` and `incremental` (`pattern` is a subscription in the latter).
`tail` fetches on without an end, from all leaders at once (`under_way` has the Fetches that are not
answered yet, `sessions` what brokers remember of them, `failing` what is not read for an error,
`patience` how long others wait for one who says nothing), `seen` is what is known of the logs,
`beginning` says where a partition begins (`held` when that is asked again), and `reset` where a
position goes that is not there.
`reading` makes rows of all that (`fetched` has those that nobody has asked for yet, `told` what an
error was raised for), and `commits` knows how far the group has heard of them.
`client.consumer` is the face that users see.
"""

"""Membership in a consumer group of the classic protocol, seen from the inside.

`assignors` shares partitions out and `subscription` says so in bytes (both pure); `membership` is
what the member's two threads know of it, `coordinator` what is said to the group's coordinator,
`keeper` the thread that says it; `tail` fetches on without an end, from all leaders at once
(`under_way` has the Fetches that are not answered yet, `sessions` what brokers remember of them,
`failing` what is not read for an error),
`seen` is what is known of the logs, `reset` says where a position goes that is not there, and
`reading` makes rows of all that.
`client.consumer` is the face that users see.
"""

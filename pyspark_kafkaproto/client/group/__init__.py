"""Membership in a consumer group of the classic protocol, seen from the inside.

`assignors` shares partitions out and `subscription` says so in bytes (both pure); `membership` is
what the member's two threads know of it, `coordinator` what is said to the group's coordinator,
`keeper` the thread that says it; `positions` is where to read, `tail` reads on without an end.
`client.consumer` is the face that users see.
"""

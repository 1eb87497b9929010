"""A member by the protocol of KIP-848: `group.protocol=consumer`.

The broker shares partitions out, and a member gives up those alone that go to others.
`coordinator` is what is said to it, all of it in heartbeats; `assigned` knows the topics that it
names by their ids, and `keeper` beats.
"""

"""A member by the classic protocol: `group.protocol=classic`.

`assignors` shares partitions out and `subscription` says so in bytes (both pure); `coordinator` is
what is said to the group's coordinator, `keeper` says it at its time.
"""

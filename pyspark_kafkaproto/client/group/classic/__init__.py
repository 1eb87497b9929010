"""A member by the classic protocol: `group.protocol=classic`.

`assignors` shares partitions out between `subscriber`s, and `sticky` so that they stay where they
are; `subscription` says so in bytes (all of them pure). `coordinator` is what is said to the
group's coordinator; `keeper` says it at its time, and gives all up at each rebalance, where
`cooperative` reads on.
"""

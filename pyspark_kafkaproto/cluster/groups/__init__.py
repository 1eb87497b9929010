"""Groups of every type: what they commit, who is in them, and how far behind they are.

`committed` gets and sets offsets, for share groups `share_offsets`; `reset` moves either, and `lag`
compares them with the logs' ends. `members` lists, describes and deletes groups: the values are in
`described`, and `share_groups` and `streams_groups` ask, by `describing`, for those of newer types.
"""

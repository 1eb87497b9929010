"""Membership in a share group (KIP-932), seen from the inside.

`membership` is what is said to the group's coordinator, `leaders` knows whom to fetch from,
`session` is our side of a conversation with one of them, and `exchange` has those with all, at the
`pace` that quotas leave; `answers` says what their errors mean. `held` is what was given to us and
what is to become of it, `rows` makes Arrow batches of it, and `coming` has those that are not
handed out. `consumer` is the face that users see.
"""

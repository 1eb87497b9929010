"""The streaming source. `reader` answers the engine; the other rooms know one thing each.

offsets: as the engine logs them · options · limits: how much a batch takes (pure) · tail: what is
there now · taking: how far the next batch goes · available_now: the snapshot of that trigger ·
planning: a batch's tasks · commits, listener: what was read, told to a consumer group.
"""

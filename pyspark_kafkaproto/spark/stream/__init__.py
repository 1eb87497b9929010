"""The streaming source. `reader` answers the engine; the other rooms know one thing each.

limited, unlimited: where the next batch ends, for engines with and without limits · offsets: as the
engine logs them · options · limits: how much a batch takes (pure) · tail: what is there now ·
taking: how far the next batch goes · available_now: the snapshot of that trigger · starting: where
a query begins · planning: a batch's tasks · commits, listener: what was read, told to a consumer
group · refused: a stream that is not to be.
"""

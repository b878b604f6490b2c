"""The shard: the decision cycle and everything around it, in one process on one event loop.

    ports      what it needs from outside: time, a place to compute, a disk, streams
    book       the machines as this shard knows them; every change of a machine goes through it
    merging    what an observed record means for a machine that is known

It needs no coordinator to start, to be ready or to decide, and never imports one: they meet on
the wire.
"""

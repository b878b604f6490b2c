"""What the provider knows about its machines, held in memory and in the store.

`ledger` makes every change of a record durable before it is visible, under one of `machine_locks`.
`load` rebuilds it at start, `slots` adds and retires records, `host_key_pins` keeps keys met for
the first time, and `kv_shelf` keeps the hosts of a substrate in memory.
"""

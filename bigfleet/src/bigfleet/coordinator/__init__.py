"""The coordinator: the slow facts of a fleet, and machines that change their shard.

    ports         what it needs from outside: time, a place for slow work
    pauses        how long to wait before the next try
    state         the facts as tables; commands, the rules that refuse them, the rows they write
    store         where rows are kept and who leads: SQLite for one replica, etcd for three
    leading       becoming the leader, being it, losing it
    reports       what shards said last, in the leader's memory
    instructions  what shards are told until they say how it went
    assignments   what a shard is given: domains, clusters, quotas, providers
    rebalance     which machines should change their shard
    coordinator   all of it put together, without a transport
    service       the calls over gRPC; server: the process

It decides no provisioning and is never on a shard's hot path. It never imports the shard: they
meet on the wire.
"""

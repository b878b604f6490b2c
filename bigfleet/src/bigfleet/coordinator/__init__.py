"""The coordinator: the slow facts of a fleet, and the moves of machines between shards.

Rooms, high to low; a room imports rooms below it only:

    server      the process: gRPC service, report handler, listings, settings
    rebalance   which machines should change their shard, and each move until it ends
    leadership  the election loop, and the state that a leader holds
    reports     what shards reported last, what goes back to them: instructions, assignments
    state       the facts as tables; commands, the rules that refuse them, the rows they write
    store       where rows are kept and who leads: SQLite for one replica, etcd for three

Beside the rooms: `errors`, and `ports`, which holds what a coordinator needs from outside.

It decides no provisioning and is never on a shard's hot path. It never imports the shard: they
meet on the wire. The words are those of docs/internals/glossary.md.
"""

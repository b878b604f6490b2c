"""A whole fleet in one process on virtual time, driven by a seed.

    loop        an event loop without a clock of its own: time jumps, the order is drawn
    process     which tasks live and die together: crashes, pauses, restarts
    ports       clock, disk and a place to compute, as a shard asks for them
    network     how long things take on the way, and what never arrives
    provider    a provider as a model: the truth about machines
    cluster     a cluster and its operator as a model: the truth about demand and nodes
    drawing     the fleet, the workload and the faults of a seed
    invariants  what must hold at every step, and what must hold once it is quiet
    run         one seed from beginning to end

The shard in it is the production code, unchanged.
"""

"""The operator of one cluster: its demand to the shard, the shard's machines to the cluster.

    requests      a CapacityRequest as a value, or why it cannot be carried
    rollup        all CapacityRequests, added up by row, as the frame that is sent
    acknowledge   requests whose roll-up was taken are told so; unmet ones, why
    bootstrap     what a new node starts with: a template, and tokens that end
    machines      NodeStateUpdates as UpcomingNodes; hints as AvailableCapacity
    nodes         what the cluster sees of its nodes, and what DaemonSets take on each
    drain         nodes that are to be emptied, within their grace and their budgets
    session       the stream to the shard: frames out, frames in, reconnecting
    traces        what it adds to a trace: the roll-up at its beginning, the node at its end
    server        the process: lease, watches, probes

It dials out and never listens for the shard. With it away its cluster keeps all its machines.
"""

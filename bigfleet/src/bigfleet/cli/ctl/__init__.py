"""`bigfleetctl`: looking into a running fleet and telling it what to do.

    main        the program: global options, and the commands put together
    groups      one-line refusals, and global options wherever they stand
    asking      what every command has: options, clock, questions to a person
    calling     the fleet: shards one by one or all at once
    leading     coordinators: following the leader
    wires       connections
    refusals    what a failed call means, and the remedy
    listing     one row, three forms: table, JSON, YAML
    words       times, amounts, labels and enums as people read them

    registry, domains, quotas, providers, rebalancing     what the coordinator knows
    needs (explaining), machines, watching, pausing       what one shard knows and does
    snapshots                                             the coordinator's state as a file
    status (overview, collecting, diagnosis, screen)      everything at a glance

Commands import gRPC when they run, so that `--help` answers at once.
"""

# The floor of TLS has to be set before anything imports grpc.
import bigfleet.wire.floor  # noqa: F401 - it acts by being imported

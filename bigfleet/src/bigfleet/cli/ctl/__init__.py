"""`bigfleetctl`: look into a running fleet and give it instructions.

    main          the program: global options, and the commands put together
    groups        one-line refusals, and global options wherever they stand
    context       what every command has: options, clock, questions to a person
    calls         coordinators, shards, connections, and what a failed call means
    render        one row as table, JSON or YAML; times, amounts and labels as text
    coordinators  commands on what the coordinator knows
    shards        commands on what one shard knows and does
    status        the fleet on one screen, what is wrong with it, and what to do

Commands import gRPC when they run, so that `--help` answers at once.
"""

# The environment of gRPC has to be set before anything imports grpc.
import bigfleet.wire.grpc_env  # noqa: F401 - it acts by being imported

"""The shard's side of the coordinator: it reports, and carries out each instruction once.

    report              what the shard says of itself, from columns
    client              when it reports and to whom: every few seconds, to the leader
    coordinator_caller  the call over gRPC
    instructions        fences, and each instruction once by its id
    moves               machines that change their shard: choosing, giving, receiving, draining
    promises            machines drained for another shard, kept for it
    donations           which machines to give, a choice on columns
    errors              what can go wrong

A shard needs none of this to decide: with no coordinator it owns everything and goes on.
"""

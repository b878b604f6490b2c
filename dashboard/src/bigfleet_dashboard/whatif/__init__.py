"""What if: the real engine on a copy of the present state, changed as requested.

    scenario  the copy: a shard's exported state as machines and needs
    changes   demand, prices, lost and added machines
    planning  both states decided, and what differs
    service   asks the shard, and keeps the engine in a process of its own

Nothing here reaches a provider or a shard's state: a plan is computed and shown.
"""

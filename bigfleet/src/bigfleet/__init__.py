"""BigFleet: the control plane that decides which machines serve which cluster.

    cli            the commands; puts processes together
    shard          owns machines and demand, decides every cycle, acts through providers
    coordinator    assigns domains, clusters and quotas to shards; moves machines between them
    operator       in a cluster: sums up demand, bootstraps nodes, drains them
    podcontroller  in a cluster: one CapacityRequest for each Pod that is demand
    decision       the engine: machines, demand and policy in, a plan out; `engine_warm_up` compiles
    explanation    what blocks a need, and what would help
    scenario       a fleet and its demand as a file
    inventory      a shard's machines as columns
    provider, kube, wire   calls to providers and API servers; messages as values
    observe        metrics, logs, traces, settings;  jit  compiled functions
    model          the values that all of these use

Two questions cross packages. A Create that may have happened twice: the shard's
`shard.act.book_listener`, and the kit's `backend.steps`. The cap on reclaims: `shard.act.rails`.
"""

__version__ = "0.1.0"

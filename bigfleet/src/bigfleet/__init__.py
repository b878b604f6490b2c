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

Some questions cross packages; each is answered in these modules:

    the cap on reclaims             shard.act.rails
    a Create that was not answered  in the kit: kit.launch_once, backend.steps; the shard waits for
                                    the provider's record: shard.act.settlement
    a machine that a List omits     shard.providers.apply_lists, shard.providers.mass_loss
    more demand than can be read    wire.rollup_limits; than can be decided in time:
                                    decision.work_budget, shard.decide.watchdog
    which machine is cheapest       decision.tables (costs), decision.kernels.heads (candidates)
    what a restart keeps            shard.state.data_dir, shard.machines.merge_record
    a move between shards           coordinator.rebalance.planning.planner, then
                                    coordinator.rebalance.moves.advance
    the words for why               model.reasons; what would help: explanation.phrases
"""

__version__ = "0.1.0"

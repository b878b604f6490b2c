"""Scale and failure tests: a profile run on a substrate, measured and judged.

    load       the simulated clusters of a run, in a process of their own
    provider   the provider of a run, in a process of its own
    local      the substrate local-process: real coordinators, shards, etcd, and what strikes them
    record     samples of all processes, and the measured window as gate values
    results    summary, files and a page
    main       the command bigfleet-scaletest

Profiles, workloads, gates and the summary belong to `bigfleet_lab`, which never imports this.
"""

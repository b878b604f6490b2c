"""`kubectl bigfleet`: what BigFleet does in one cluster, for the people who use that cluster.

    kubectl bigfleet why pod/NAME       why a Pod waits, or which machine serves it
    kubectl bigfleet why node/NAME      for which demand a node is there, and whether it leaves
    kubectl bigfleet requests           the CapacityRequests of a namespace
    kubectl bigfleet upcoming           machines on their way into the cluster and out of it
    kubectl bigfleet plan               every need with its machines and its verdict
    kubectl bigfleet doctor             whether the parts of BigFleet in this cluster work

    main            the program: options and commands
    context         what every command has: options, the API server, the shard
    kube_objects    the fields of Pods, Nodes and Deployments that are read
    cluster_reader  reads them, and notes what this user may not read
    shard_reader    asks the shard why a need is unmet, where the shard can be reached
    collect         what each command reads, from both
    answer          one paragraph and one command to run next; as JSON the facts as well
    why_pod, why_node, listings, checks   the words

Nothing is changed. Everything but the remedies comes from the cluster itself, so that most of it
works for a person who cannot reach the fleet.
"""

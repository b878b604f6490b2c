"""What a process shows to the outside, and how its settings are read.

    shard         everything a shard counts, one class with plain methods; coordinator, operator and
                  podcontroller likewise
    tracing       traces: one for each change of demand
    metrics       one registry per component: names, series that exist from the start, build info
    distribution  histograms that are cheap to write and read, and their three sets of bounds
    kubecalls     calls to a Kubernetes API server
    cycles        the last cycles one by one, for exact quantiles
    logs          log lines as text or JSON
    pages         /metrics, probes and debug pages, as routes of bigfleet_base.http
    settings      flags, environment and file as one checked value; addresses of other processes
    process       the clock and threads of a real process

Names, labels and label values of metrics, and the words that open log lines, are a public
interface.
"""

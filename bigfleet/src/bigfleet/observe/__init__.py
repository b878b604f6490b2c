"""What a process shows to the outside, and how it is told what to do.

    metrics    one registry per component: names, series that exist from the start, build info
    buckets    the three sets of histogram bounds
    shard      everything a shard counts, one class with plain methods; coordinator, operator and
               podcontroller likewise
    kubecalls  calls to a Kubernetes API server
    cycles     the last cycles one by one, for exact quantiles
    logs       log lines as text or JSON
    pages      /metrics, probes and debug pages, as routes of bigfleet_base.http
    settings   flags, environment and file as one checked value
    process    the clock and threads of a real process

Names, labels and label values of metrics, and the words that open log lines, are a public
interface.
"""

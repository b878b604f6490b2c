"""What a process shows to the outside, and how it is told what to do.

    metrics    one registry per component: names, series that exist from the start, build info
    buckets    the three sets of histogram bounds
    shard      everything a shard counts, one class with plain methods; coordinator, operator and
               podcontroller likewise
    kubecalls  calls to a Kubernetes API server
    cycles     the last cycles one by one, for exact quantiles
    ages       how long the oldest machine is in each moving state
    distribution  histograms that are cheap to write and read;  page  the text of /metrics
    scrape_throttle  scrapes that do not delay a cycle
    logs       log lines as text or JSON
    tracing    traces: one for each change of demand
    pages      /metrics, probes and debug pages, as routes of bigfleet_base.http
    settings   flags, environment and file as one checked value;  addresses  of other processes;
               setting_errors  why a value is refused
    process    the clock and threads of a real process

Names, labels and label values of metrics, and the words that open log lines, are a public
interface.
"""

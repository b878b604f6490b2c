"""Where facts come from; each source writes into the state, and says how it is doing.

channels     gRPC channels, certificates looked at again when the files change
coordinator  the leader's reads, followed wherever it is
shards       one task per shard: status, needs, machines, and the stream of decisions
pages        cycle times and metrics of shards, over HTTP
prometheus, clusters  optional: what only they know
collector    all of them, for as long as the dashboard runs
"""

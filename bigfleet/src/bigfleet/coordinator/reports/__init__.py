"""What shards reported last, and what goes back with the acknowledgement.

report_cache  the last report of each shard, in the leader's memory
instructions  instructions repeated to a shard until it acknowledges them
assignments   the domains, clusters, quotas and providers assigned to a shard
"""

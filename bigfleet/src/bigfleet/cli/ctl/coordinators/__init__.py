"""Commands on what the coordinator knows.

registry     shards and clusters: list, bind, forget, remove
domains      topology domains and the shards that they belong to
quotas       how many machines of a provider and region each shard may hold
providers    the registry of providers
rebalancing  reports, instructions, and machines on their way between shards
snapshots    the coordinator's state as a file
"""

"""The shard's machines as objects of the cluster.

node_state  a NodeStateUpdate, and what is known, as an UpcomingNode. Pure
writer      writes UpcomingNodes, the newest state of each machine, several at once
available   hints at what the cluster could get, as AvailableCapacity
"""

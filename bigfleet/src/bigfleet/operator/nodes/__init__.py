"""What the cluster sees of its nodes, for the shard.

objects      the fields of Nodes, Pods and DaemonSets that are read
book         nodes, the Pods on each, and which machine a node is
"""

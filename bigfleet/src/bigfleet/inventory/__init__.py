"""The machines of one shard as columns, with the classes and orders the engine reads.

Owns storage and snapshots of machines; decides nothing.
"""

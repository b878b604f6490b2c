"""A shard put together and served.

settings   what the owner may set, as flags, variables and keys of a file
tuning     the same as values the parts understand
shard      all parts of a shard and how they hang together, without a transport
process    gRPC, probes and metrics around it, from start to orderly stop
status     what a shard lets people see and do, for the two services below
admin      the service by which people pause, drain, exclude
reading    the service by which people look: needs, machines, decisions, scenario
"""

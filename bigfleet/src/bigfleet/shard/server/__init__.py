"""A shard put together and served.

settings       what the owner may set, as flags, variables and keys of a file; as values
shard          all parts of a shard put together, without a transport
process        gRPC, probes and metrics around it, from start to orderly stop
readiness      why the shard is not ready, for /readyz and the health service
status         what a shard lets people see and do, for the two services below
admin_service  the service by which people pause, drain, exclude
read_service   the service by which people look: needs, machines, decisions, scenario
"""

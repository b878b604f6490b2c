"""The coordinator as a process, and the calls that it answers.

coordinator     all parts of a coordinator put together, without a transport
report_handler  answers a shard's report: registers the shard, acknowledges, assigns
listings        the tables and reports as the messages that bigfleetctl reads
service         the gRPC calls, and the status of each refusal
settings        flags, variables and keys of the settings file
process         opens the store, serves gRPC and HTTP, runs until it is stopped
"""

"""The part of etcd's gRPC API that the store uses, as definitions and as generated Python.

The definitions beside this file name only the messages and fields that are sent or read here, with
etcd's own names and numbers; whatever else a server sends is ignored. `make proto` generates.
"""

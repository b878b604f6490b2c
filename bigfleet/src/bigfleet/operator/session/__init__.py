"""The stream to the shard.

grpc_dial  opens a stream over gRPC
session    one stream from Hello to its end: frames out, frames in
dialer     session after session, with a growing pause between bad ones
"""

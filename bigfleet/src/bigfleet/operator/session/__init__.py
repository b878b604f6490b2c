"""The stream to the shard.

line         one stream over gRPC
session      one stream from Hello to its end: frames out, frames in
connecting   session after session, with a growing pause between bad ones
"""

"""The edge of the wire: protobuf to values and back, channel options, fencing tokens, TLS files.

    machines   a provider's machine record as a value, or refused; stamps as shard_metadata
    channel    the options every client channel of ours has
    backoff    how long to wait before the next try
    session    a cluster's stream to its shard, and the pauses between two
    fencing    the tokens a shard puts on its mutations
    tls        three files, looked at again when they change
    floor      TLS 1.3 or newer, and no lines of gRPC's own
    causes     why there is no connection, in words

Who calls whom, and when, is told elsewhere.
"""

# The floor of TLS has to be set before anything imports grpc.
import bigfleet.wire.floor  # noqa: F401 - it acts by being imported

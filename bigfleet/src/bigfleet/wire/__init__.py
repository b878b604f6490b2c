"""The edge of the wire: protobuf to values and back, channel options, fencing tokens, TLS files.

    machines        a machine's record as a value, or refused; stamps as shard_metadata; and back
    needs           rows of demand as values, and back
    taints          taints and tolerations, also those of an earlier release
    rollup_limits   how large a roll-up may be, read off its bytes
    session         a cluster's stream to its shard, and the pauses between two
    channel         the options of every client channel of ours
    server          a gRPC server as every component runs it; server_tls: its certificate files
    identity        the name in a peer's certificate, and what it may do
    fencing         the tokens a shard puts on its mutations
    backoff         how long to wait before the next try
    tls             a client's three files, read again when they change
    tls_diagnosis   why there is no connection, in words; what is wrong with certificates
    grpc_env        what gRPC reads from the environment: TLS 1.3 or newer, no lines of its own

Which component calls which is left to the components.
"""

# The environment of gRPC has to be set before anything imports grpc.
import bigfleet.wire.grpc_env  # noqa: F401 - it acts by being imported

"""Operators' sessions: one stream per cluster, and the frames that pass over it.

    grpc_server      streams over gRPC
    sessions         the registry: who is connected, what can be asked of a cluster
    session          one stream from its Hello to its end
    outbox           frames waiting for a session's writer, bounded and coalescing
    node_updates     changes of machines, sent to the clusters they concern
    frames           machines as frames
    replay_throttle  shares the event loop while sessions are replayed
    messages         what those who act pass to sessions: bootstrap data, drain instructions
    errors           how a session can fail

The demand that sessions bring is taken in `demand`; machines are changed in `act`.
"""

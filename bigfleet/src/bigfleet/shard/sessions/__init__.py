"""Operators' sessions: one stream per cluster, the demand it brings and the frames it is told.

    sessions      the registry: who is connected, what can be asked of a cluster
    session       one stream from its Hello to its end
    outbox        frames waiting for a session's writer, bounded and coalescing
    rollups       what becomes of a roll-up: read, judged, taken, acknowledged
    ingest        a roll-up as columns, or refused whole
    quarantine    roll-ups that suddenly ask for almost nothing are held
    needs         the demand of all clusters, in columns
    updates       changes of machines, told to the clusters they concern
    frames        machines as frames
    observations  what operators see of their nodes
    grpc_server   streams over gRPC

Deciding, acting and the machines themselves are left to the rest of the shard.
"""

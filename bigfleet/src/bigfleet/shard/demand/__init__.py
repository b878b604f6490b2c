"""The demand of all clusters of this shard.

    rollups         what becomes of a roll-up: read, judged, taken, answered
    ingest          a roll-up from the wire as columns, or refused whole
    quarantine      roll-ups that suddenly ask for almost nothing are held until repeated
    cluster_rows    one cluster's rows, and what changes when a roll-up replaces them
    needs_table     the rows of all clusters, as the engine reads them
    symbol_gc       collects interned identities that nothing references
    errors          RollUpRefusedError

Roll-ups arrive through `operators.sessions`, which knows this room as a Protocol only.
"""

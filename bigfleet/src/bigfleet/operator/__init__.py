"""The operator of one cluster: its demand to the shard, the shard's machines to the cluster.

Rooms, each above what it may use (import-linter keeps the order):

    server                          the process: lease, probes
      watches, settings             watches of the API server; flags, variables and keys of a file
        operator                    one cluster's operator, put together of its parts
          session                   the stream to the shard: frames out, frames in, reconnecting
          acknowledge               tells requests that their roll-up arrived; unmet ones, why
          bootstrap                 what a new node starts with: a template, and tokens that end
          drain                     nodes to be emptied, within their grace and their budgets
          traces                    spans of a roll-up at its beginning and of a node at its end
            nodes                   nodes as the cluster sees them, and what DaemonSets take
              machines              NodeStateUpdates as UpcomingNodes; hints as AvailableCapacity
              demand                CapacityRequests, added up by row, as the frame that is sent
                ports, errors       time and lines to the shard; what can go wrong

It dials out and never listens for the shard. With it away its cluster keeps all its machines.
Words: docs/internals/glossary.md.
"""

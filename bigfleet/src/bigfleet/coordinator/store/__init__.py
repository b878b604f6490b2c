"""Where the coordinator's rows are kept, and which replica may write them.

    interface     what every engine does, and what its rows, leaders and snapshots are
    errors        the error tree of a store
    changes       what one commit does to the rows
    leaders       which replica leads, for every task in this process
    call_metrics  counts calls, how long they take and why they fail
    factory       makes the engine that the settings name

Rooms: `sqlite`, the embedded engine in one file; `etcd`, the replicated engine for three
coordinators; `etcdapi`, the generated messages that etcd speaks; `snapshots`, the state as one
JSON document, exported and restored.
"""

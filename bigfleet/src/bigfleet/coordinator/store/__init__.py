"""Where the coordinator's rows are kept, and who may write them.

interface  what every engine does, and what its rows, leaders and snapshots are; see errors
changes    what one commit does to the rows
sqlite     the embedded engine: one file
etcd       the replicated engine: three coordinators, one leads; etcdapi is what it speaks
leaders    who leads, for everybody in this process
counting   calls, how long they take and why they fail
documents  snapshots as one JSON text; restoring puts one back, exporting takes them regularly
opening    which engine the settings mean
"""

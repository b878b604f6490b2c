"""The replicated engine: three coordinators over an etcd cluster, their own or shared.

    connection      addresses, log-in, calls with deadlines and fail-over, etcd's errors
    keys            which keys there are, and transactions over them
    election        the lease and the key of the leader
    leader_watch    follows which replica leads
    batches         commits larger than one transaction of etcd
    guarded_writer  transactions that pass only while a certain replica leads
    compaction      deletes old revisions
    engine          the store made of these

There is no consensus of our own: what makes a write safe is one comparison inside etcd, that the
key of the leader is still the one it was elected by.
"""

from bigfleet.coordinator.store.etcd.connection.address import EtcdAddress
from bigfleet.coordinator.store.etcd.engine import EtcdStore

__all__ = ["EtcdAddress", "EtcdStore"]

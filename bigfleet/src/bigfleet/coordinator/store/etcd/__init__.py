"""The replicated engine: three coordinators over an etcd that is theirs or shared.

    address     where it is, from `etcd://host:2379,host:2379/prefix`
    faults      etcd's complaints as the errors of a store
    members     calls to whichever member answers: deadlines, fail-over, TLS, log-in
    keys        which keys there are, and transactions over them
    election    the lease and the key of the leader
    following   who leads, watched
    batches     commits larger than one transaction of etcd
    compacting  old revisions, let go
    engine      the store made of these

There is no consensus of our own: what makes a write safe is one comparison inside etcd, that the
key of the leader is still the one it was elected by.
"""

from bigfleet.coordinator.store.etcd.address import EtcdAddress
from bigfleet.coordinator.store.etcd.engine import EtcdStore

__all__ = ["EtcdAddress", "EtcdStore"]

"""Simulated clusters: the operator's side of the session, for many clusters from one process.

    ports       what a cluster needs from outside: time, and a line to its shard
    lines       the line over gRPC;  memory  the line inside one process
    workload    objects with replicas;  generating  seeded ones;  changing  how demand moves
    rollup      the objects as a roll-up, rows kept as bytes
    nodes       what the shard says of machines, as nodes;  placing  pods on them;  drains
    cluster     all of it as one cluster;  session, operator  its conversation with the shard
    faults      what it can be told to do wrong
    fleet       many clusters;  run, stats, summary  a whole run and what came of it

A cluster behaves as a real one does where the shard can see it: demand is what exists, running or
not; a pod that is evicted comes back; a node is Ready late, or never. Time, chance and transport
are passed in, so that the same clusters run over a network and in a simulation on virtual time.
"""

from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.cluster import SimCluster
from bigfleet_lab.simcluster.errors import SimClusterError, WorkloadError
from bigfleet_lab.simcluster.fleet import SimFleet
from bigfleet_lab.simcluster.generator import Mix, make_workload
from bigfleet_lab.simcluster.operator import SimOperator
from bigfleet_lab.simcluster.ports import Clock, Dial
from bigfleet_lab.simcluster.workload import Workload, WorkObject

__all__ = [
    "Behaviour",
    "Clock",
    "Dial",
    "Mix",
    "SimCluster",
    "SimClusterError",
    "SimFleet",
    "SimOperator",
    "WorkObject",
    "Workload",
    "WorkloadError",
    "make_workload",
]

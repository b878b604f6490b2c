"""BigFleet capacity provider `kwok`: imagined hosts, real Nodes, for tests and demos.

spec       what the provider declares: options, capacity, prices, limits
join       the bootstrap data: which API server a host joins, and as what
servers    API servers by cluster, from kubeconfigs, bootstrap data or one address for all
api        the few calls of the Node and Pod API that are made
nodes      the Node object of a host, and which pods leave it
substrate  hosts in a table of the store, whose Configure and Drain make and remove Nodes
errors     how the API server's errors become the kit's classes
main       the executable
"""

__version__ = "0.1.0"

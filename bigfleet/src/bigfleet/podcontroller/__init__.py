"""The pod controller: one CapacityRequest for every Pod that is demand.

    pods             the fields of Pods and Nodes that are read
    demand           whether a Pod is demand
    ownership        which nodes BigFleet brought
    requirements     node selector and affinity as requirements; tolerations
    penalties        what interrupting a Pod costs
    resource_claims  devices of ResourceClaims, and which Pod carries a shared one
    request          Pod -> CapacityRequest
    stuck            Pods whose room is asked for once more, where the owner wants it
    arrivals         nodes that are on their way, and when they are expected
    notices          the Events that the owner of a Pod reads
    controller       keeps the two in step
    settings         what the owner may set
    server           the process: lease, watches, probes

It knows nothing of shards: what it writes is read by the operator.
"""

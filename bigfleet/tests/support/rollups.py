"""Roll-ups as tests write them: rows in few words, messages of the wire out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bigfleet_api.v1alpha1 import capacity_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2

ZONE = "topology.kubernetes.io/zone"
MIB = 2**20


def requirement(key: str, operator: int, *values: str) -> pb.NodeSelectorRequirement:
    """One requirement; the operator is a number, also one that does not exist."""
    made = pb.NodeSelectorRequirement(key=key, values=values)
    made.operator = operator  # type: ignore[assignment]
    return made


def row(
    pool: str = "a",
    cpu: str = "4",
    unit: str = "1",
    *,
    priority: int = 0,
    group: str = "",
    size_class: str = "",
    requirements: Iterable[pb.NodeSelectorRequirement] | None = None,
    aggregate: Mapping[str, str] | None = None,
    min_unit: Mapping[str, str] | None = None,
) -> pb.CapacityNeed:
    """A row that wants machines of one pool."""
    wanted = (requirement("pool", 1, pool),) if requirements is None else tuple(requirements)
    return pb.CapacityNeed(
        requirements=wanted,
        aggregate_resources={"cpu": cpu} if aggregate is None else aggregate,
        min_unit={"cpu": unit} if min_unit is None else min_unit,
        priority=priority,
        group=group,
        size_class=size_class,
    )


def rollup(
    *rows: pb.CapacityNeed,
    cluster: str = "c-1",
    at: int = 1,
    overhead: Mapping[str, str] | None = None,
) -> pb.ClusterCapacityNeeds:
    """A roll-up of these rows."""
    made = pb.ClusterCapacityNeeds(cluster_id=cluster, timestamp_unix_nanos=at, needs=rows)
    if overhead is not None:
        made.node_overhead.CopyFrom(provider_pb2.Resources(resources=overhead))
    return made


def typical(rows: int, cluster: str = "c-1", step: int = 0) -> pb.ClusterCapacityNeeds:
    """A roll-up as a busy cluster sends it: four requirements, a spread, three resources a row."""
    made = rollup(cluster=cluster, at=step + 1)
    for number in range(rows):
        pods = number + 1 + step
        need = made.needs.add(priority=1000, size_class="cpu^8,memory^33")
        need.requirements.extend(
            (
                requirement(ZONE, 1, "zone-a", "zone-b"),
                requirement("node.kubernetes.io/instance-type", 1, "m.large", "m.xlarge"),
                requirement("bigfleet.lucy.sh/capacity-type", 1, "on-demand"),
                requirement(f"team-{number}", 3),
            )
        )
        need.spread.add(topology_key=ZONE, max_skew=1, when_unsatisfiable=1)
        need.aggregate_resources.update(
            {"cpu": f"{250 * pods}m", "memory": f"{512 * pods}Mi", "pods": str(pods)}
        )
        need.min_unit.update({"cpu": "250m", "memory": "512Mi", "pods": "1"})
    return made

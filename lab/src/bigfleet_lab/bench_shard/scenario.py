"""A benchmark's fleet and demand as they are on the wire, the same for every process of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from bigfleet.model import Machine, Need
from bigfleet.scenario.state import machines_of
from bigfleet.wire.machines import machine_to_proto, metadata_from_stamp
from bigfleet.wire.needs import need_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2
from bigfleet_lab.simulate.workloads import make_workload

_IN: Final = capacity_pb2.NodeSelectorRequirement.OPERATOR_IN
SESSIONS: Final = "sessions:"
"""`sessions:1000x100`: so many clusters with so many rows each, which nothing can serve."""


@dataclass(frozen=True)
class Fleet:
    """One of the engine's workloads, served."""

    workload: str
    machines: int
    seed: int = 1

    def records(self) -> Iterator[provider_pb2.Machine]:
        """Machines as a provider lists them; bound ones with the stamp of their need."""
        name = "cold" if self.workload.startswith(SESSIONS) else self.workload
        scenario = make_workload(name, self.machines, self.seed).scenario
        for number, machine in enumerate(machines_of(scenario), 1):
            yield _record(machine, number)

    def rollups(self) -> dict[str, capacity_pb2.ClusterCapacityNeeds]:
        """What each cluster asks for."""
        if self.workload.startswith(SESSIONS):
            return dict(_many(*map(int, self.workload.removeprefix(SESSIONS).split("x"))))
        scenario = make_workload(self.workload, self.machines, self.seed).scenario
        found: dict[str, capacity_pb2.ClusterCapacityNeeds] = {}
        for need in scenario.needs:
            row = found.setdefault(
                need.cluster, capacity_pb2.ClusterCapacityNeeds(cluster_id=need.cluster)
            )
            row.needs.append(_row(need))
        return found


def _record(machine: Machine, number: int) -> provider_pb2.Machine:
    record = machine_to_proto(machine)
    record.ClearField("shard_metadata")
    if machine.stamp is not None and machine.cluster:
        metadata = metadata_from_stamp(replace(machine.stamp, sequence=number))
        record.shard_metadata.update(metadata)
    return record


def _row(need: Need) -> capacity_pb2.CapacityNeed:
    return need_to_proto(need)


def _many(clusters: int, rows: int) -> Iterator[tuple[str, capacity_pb2.ClusterCapacityNeeds]]:
    for number in range(clusters):
        rollup = capacity_pb2.ClusterCapacityNeeds(cluster_id=f"c-{number:04d}")
        for row in range(rows):
            need = rollup.needs.add(priority=row % 7)
            # What is asked for is nowhere: this measures sessions, not bindings.
            need.requirements.add(key="bench.bigfleet/row", operator=_IN, values=[f"{row % 25}"])
            need.requirements.add(
                key="bench.bigfleet/team", operator=_IN, values=[f"{number % 40}-{row // 25}"]
            )
            need.min_unit.update({"cpu": "500m", "memory": "1Gi"})
            need.aggregate_resources.update({"cpu": f"{2 + row % 9}", "memory": "16Gi"})
        yield rollup.cluster_id, rollup

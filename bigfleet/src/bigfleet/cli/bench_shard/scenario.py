"""A benchmark's fleet and demand as they are on the wire, the same for every process of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bigfleet.model import Machine, Need
from bigfleet.simulate.workloads import make_workload
from bigfleet.simulate.world import machines_of
from bigfleet.wire.machines import metadata_from_stamp
from bigfleet.wire.needs import need_to_proto
from bigfleet.wire.records import machine_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2


@dataclass(frozen=True)
class Fleet:
    """One of the engine's workloads, served."""

    workload: str
    machines: int
    seed: int = 1

    def records(self) -> Iterator[provider_pb2.Machine]:
        """Machines as a provider lists them; bound ones with the stamp of their need."""
        scenario = make_workload(self.workload, self.machines, self.seed).scenario
        for number, machine in enumerate(machines_of(scenario), 1):
            yield _record(machine, number)

    def rollups(self) -> dict[str, capacity_pb2.ClusterCapacityNeeds]:
        """What each cluster asks for."""
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

"""Small fleets in the words of the wire, and the state a dashboard makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.machines import TableBuilder
from bigfleet_dashboard.state.needs import row_of

SPECULATIVE, IDLE, CONFIGURED, FAILED = 1, 3, 5, 8
BARE_METAL, ON_DEMAND, SPOT = 1, 3, 4
PENALTY = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars"


def machine(
    name: str,
    state: int = IDLE,
    *,
    kind: int = ON_DEMAND,
    price: float = 0.38,
    zone: str = "a",
    cluster: str = "",
    penalty: str = "",
    error: str = "",
    risk: float = 0.0,
) -> provider_pb2.Machine:
    """A machine as a shard lists it."""
    return provider_pb2.Machine(
        id=name,
        state=provider_pb2.MachineState.ValueType(state),
        instance_type="big",
        zone=zone,
        capacity_type=provider_pb2.CapacityType.ValueType(kind),
        price_per_hour=price,
        interruption_probability=risk,
        cluster=cluster,
        shard_metadata={PENALTY: penalty} if penalty else {},
        last_error=error,
    )


def need(
    cluster: str = "atlas",
    priority: int = 0,
    *,
    reason: int = 0,
    cpu: str = "8",
    group: str = "",
    age: int = 0,
    fingerprint: str = "f",
) -> pb.NeedView:
    """A need as a shard explains it; unmet when it has a reason."""
    return pb.NeedView(
        need=capacity_pb2.CapacityNeed(
            aggregate_resources={"cpu": cpu},
            min_unit={"cpu": "1"},
            priority=priority,
            group=group,
        ),
        cluster_id=cluster,
        profile_fingerprint=f"{fingerprint}{priority}",
        satisfied=not reason,
        unmet_reason=pb.UnmetReason.ValueType(reason),
        claimed_machine_count=0 if reason else 1,
        age_cycles_unmet=age,
    )


def fleet_of(
    machines: Sequence[provider_pb2.Machine] = (),
    needs: Sequence[pb.NeedView] = (),
    sessions: Sequence[str] = (),
    shard: str = "s-1",
) -> Fleet:
    """A dashboard's state that has heard of one shard."""
    fleet = Fleet(clock=lambda: 1000.0)
    add_shard(fleet, machines, needs, sessions, shard)
    return fleet


def add_shard(
    fleet: Fleet,
    machines: Sequence[provider_pb2.Machine] = (),
    needs: Sequence[pb.NeedView] = (),
    sessions: Sequence[str] = (),
    shard: str = "s-1",
) -> None:
    """One more shard."""
    state = fleet.shard(shard, "127.0.0.1:7780")
    builder = TableBuilder(fleet.names, shard)
    builder.add(machines)
    state.machines = builder.table()
    state.needs = [row_of(shard, view) for view in needs]
    state.status = pb.ShardStatus(shard_id=shard, cycle=7, epoch=1, sessions=sessions)
    state.answered(fleet.clock())
    fleet.machines_changed()

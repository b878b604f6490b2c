"""Machines, stamps and orders for those who execute them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from bigfleet.decision import ActionKind
from bigfleet.model import (
    CapacityType,
    HostRef,
    Machine,
    MachineState,
    PenaltyBucket,
    Profile,
    Requirement,
    Stamp,
)
from bigfleet.model.demand.requirements import RequirementOperator
from bigfleet.shard.machines.orders import Order
from bigfleet_api.v1alpha1 import provider_pb2 as pb

T = TypeVar("T")
S = MachineState
K = ActionKind
PROFILE = Profile.of(
    [Requirement("pool", RequirementOperator.IN, ("a",))],
    priority=100,
    interruption=PenaltyBucket(3),
)
_MOVES = {"Create": (2, 3), "Configure": (4, 5), "Drain": (6, 3), "Delete": (7, 1)}


def machine(
    name: str, state: MachineState = S.IDLE, cluster: str = "", zone: str = "z", **fields: Any
) -> Machine:
    """A machine of provider p."""
    host = None if state is S.SPECULATIVE else HostRef("p", f"h-{name}")
    if state in (S.CONFIGURING, S.CONFIGURED, S.DRAINING) and not cluster:
        cluster = "c-1"
    return Machine(
        name,
        state,
        host,
        "p",
        "",
        cluster,
        "t",
        zone,
        CapacityType.SPOT,
        labels={"pool": "a"},
        resources={"cpu": 4000},
        price_per_hour=0.5,
        **fields,
    )


def record_of(machine: Machine) -> pb.Machine:
    """A machine as its provider lists it."""
    record = pb.Machine(
        id=machine.id,
        state=int(machine.state),  # type: ignore[arg-type]
        instance_type=machine.instance_type,
        zone=machine.zone,
        capacity_type=int(machine.capacity_type),  # type: ignore[arg-type]
        price_per_hour=machine.price_per_hour,
        resources=pb.Resources(resources={"cpu": "4"}),
        labels=dict(machine.labels),
        cluster=machine.cluster,
    )
    if machine.host is not None:
        record.host.provider, record.host.ref = machine.host.provider, machine.host.ref
    return record


def stamp(cluster: str = "c-1", group: str = "", sequence: int = 1) -> Stamp:
    """For the need that PROFILE describes."""
    return Stamp(
        cluster=cluster,
        shape=PROFILE.shape_fingerprint,
        group=group,
        fingerprint=PROFILE.fingerprint,
        priority=PROFILE.priority,
        interruption=PROFILE.interruption,
        reclamation=PROFILE.reclamation,
        sequence=sequence,
    )


def order(
    kind: ActionKind, machine_id: str, cluster: str = "c-1", group: str = "", **fields: Any
) -> Order:
    """An order as a plan would make it."""
    whom: dict[str, Any] = {}
    if kind in (K.BOOTSTRAP, K.PROVISION):
        whom = {"stamp": stamp(cluster, group)}
    elif kind is K.PREEMPT:
        whom = {"stamp": stamp("c-2", group)}
    if whom:
        whom.update(profile=PROFILE, fingerprint=PROFILE.fingerprint, group=group, priority=100)
    defaults: dict[str, Any] = {
        "grace_seconds": {K.RECLAIM: 600, K.PREEMPT: 30}.get(kind, 0),
        "reason": "because",
        "dollars_per_hour": 0.5,
    }
    values = {"provider": "p", **defaults, **whom, **fields}
    return Order(kind=kind, machine=machine_id, cluster=cluster, **values)


def idle(count: int) -> list[Machine]:
    """So many machines to bootstrap."""
    return [machine(f"m-{number:05}") for number in range(count)]


def ids(machines: Iterable[Machine]) -> Sequence[str]:
    """Their names."""
    return [each.id for each in machines]

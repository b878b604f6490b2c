"""Domains by several label keys, assigned and unassigned in any order, by real tables and to real
shards: every machine is exactly one shard's, that of its domain by the key in use for the longest.
"""

from __future__ import annotations

import asyncio
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.coordinator.reports.assignments import AssignmentTable
from bigfleet.coordinator.state import (
    AddShard,
    AssignDomain,
    FleetState,
    RefusalError,
    RemoveShard,
    UnassignDomain,
    apply,
    state_of,
)
from bigfleet.coordinator.state.commands import Command
from bigfleet.coordinator.state.rows import all_rows
from bigfleet.model import Machine, MachineState
from bigfleet.shard.state.ownership import Domains, OwnershipFile
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from reconciling import MemoryDisk, at_once

SHARDS = ("a", "b", "c")
KEYS = ("rack", "room", "row")
VALUES = ("1", "2")
MACHINES = [
    Machine("-".join(values), MachineState.IDLE, labels=dict(zip(KEYS, values, strict=True)))
    for values in product(VALUES, repeat=len(KEYS))
]


@st.composite
def commands(draw: st.DrawFn) -> Command:
    key, value, shard = (draw(st.sampled_from(each)) for each in (KEYS, VALUES, SHARDS))
    kind = draw(st.integers(0, 9))
    if kind < 6:
        return AssignDomain(key, value, shard)
    return UnassignDomain(key, value) if kind < 9 else RemoveShard(shard)


class Model:
    """What the words say: domains, and since when each key has had any."""

    def __init__(self) -> None:
        self.domains: dict[tuple[str, str], str] = {}
        self.order: list[str] = []

    def follow(self, state: FleetState) -> None:
        self.domains = dict(state.domains)
        used = {key for key, _ in self.domains}
        self.order = [key for key in self.order if key in used]
        self.order += sorted(used - set(self.order))

    def owner(self, machine: Machine, default: str | None) -> str | None:
        for key in self.order:
            owner = self.domains.get((key, machine.labels[key]))
            if owner is not None:
                return owner
        return default


async def owners(state: FleetState) -> dict[str, list[str]]:
    """Per machine, the shards that say it is theirs."""
    found: dict[str, list[str]] = {machine.id: [] for machine in MACHINES}
    assignments = AssignmentTable(state)
    for shard in state.shards:
        said = pb.ShardAssignments.FromString(b"".join(assignments.of(shard)))
        ownership = OwnershipFile(MemoryDisk(), at_once)
        await ownership.assign(
            Domains(
                frozenset((one.topology_key, one.topology_value) for one in said.domains),
                frozenset((one.topology_key, one.topology_value) for one in said.foreign_domains),
                said.is_default,
                said.revision,
                tuple(said.topology_keys),
            )
        )
        for machine in MACHINES:
            if ownership.owns(machine):
                found[machine.id].append(shard)
    return found


@given(st.lists(commands(), max_size=25))
def test_every_machine_is_one_shards(asked: list[Command]) -> None:
    state, model, now = FleetState(), Model(), 1
    for command in (*(AddShard(name, f"{name}:1") for name in SHARDS), *asked):
        try:
            # Some at the same moment, as a clock that stands still would have it.
            now += isinstance(command, UnassignDomain)
            state.take(apply(state, command, now))
        except RefusalError:
            continue
        model.follow(state)
    # Also after a restart.
    state = state_of(all_rows(state))
    assert state.topology_keys() == model.order
    if not state.shards:
        return
    default = state.default_shard
    assert asyncio.run(owners(state)) == {
        machine.id: [model.owner(machine, default)] for machine in MACHINES
    }

"""A scenario as the engine sees it: inventory, demand, carry and policy, ready for a cycle.

Rows of a file with equal identity are one row of demand, as at a shard's ingest; `row_of` leads
from the file to the demand. Machines share their label and resource mappings per record and rack,
which is what makes half a million of them load in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Carry, Policy
from bigfleet.decision.policy import SECOND
from bigfleet.inventory import Inventory
from bigfleet.model import Departure, HostRef, Machine, MachineState, Need, Stamp, aggregate_rows
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.lifecycle import WITHOUT_HOST
from bigfleet.scenario.document import RACK_LABEL, MachineRecord, Scenario, machine_id, rack_name

I64 = npt.NDArray[np.int64]
S = MachineState

START: Final = 1_000_000 * SECOND
"""When a scenario begins. Idle machines became idle just then, so the first cycle releases none."""
PROVIDER: Final = "scenario"


def scenario_policy(workers: int = 1) -> Policy:
    """The policy of scenario files: what no need claims is reclaimed at once."""
    return Policy(reclaim_hold=0, workers=workers)


@dataclass
class ScenarioState:
    """A fleet, its demand, and what goes from cycle to cycle."""

    scenario: Scenario
    symbols: Symbols
    inventory: Inventory
    needs: list[Need]
    demand: Demand
    row_of: I64
    """Per need of the file: its row of the demand."""
    policy: Policy = field(default_factory=scenario_policy)
    carry: Carry = field(default_factory=Carry)
    now: int = START

    @classmethod
    def of(cls, scenario: Scenario, policy: Policy | None = None) -> ScenarioState:
        """The world of a scenario, before its first cycle."""
        symbols = Symbols()
        inventory = Inventory(symbols)
        inventory.load(machines_of(scenario))
        needs = aggregate_rows(scenario.needs)
        rows = {(need.cluster, need.key): row for row, need in enumerate(needs)}
        row_of = np.array([rows[need.cluster, need.key] for need in scenario.needs], np.int64)
        demand = Demand.of(needs, facts_of(scenario), symbols)
        world = cls(scenario, symbols, inventory, needs, demand, row_of)
        if policy is not None:
            world.policy = policy
        return world

    @property
    def file_row_of(self) -> I64:
        """Per row of the demand: the first need of the file it stands for."""
        first = np.zeros(len(self.needs), np.int64)
        first[self.row_of[::-1]] = np.arange(len(self.row_of))[::-1]
        return first


def facts_of(scenario: Scenario) -> dict[str, ClusterFacts]:
    """Every cluster counts as having reported, and as stating what its needs tolerate."""
    named = {need.cluster for need in scenario.needs}
    named |= {record.cluster for record in scenario.machines if record.cluster}
    return {cluster: ClusterFacts(tolerations_stated=True) for cluster in sorted(named)}


def machines_of(scenario: Scenario) -> Iterator[Machine]:
    """Every machine of a scenario."""
    for record in scenario.machines:
        yield from _machines(record, scenario.needs)


def _machines(record: MachineRecord, needs: tuple[Need, ...]) -> Iterator[Machine]:
    state = record.state
    stamp = None
    if record.assigned_need is not None:
        stamp = Stamp.for_need(needs[record.assigned_need], 0)
    leaving = Departure(None, START) if state is S.DRAINING else None
    labels_of: dict[int, dict[str, str]] = {}
    for index in record.indices:
        rack = index // record.rack_size
        labels = labels_of.get(rack)
        if labels is None:
            labels = labels_of[rack] = {**record.labels, RACK_LABEL: rack_name(rack)}
        name = machine_id(index)
        yield Machine(
            id=name,
            state=state,
            host=None if state in WITHOUT_HOST else HostRef(PROVIDER, name),
            provider=PROVIDER,
            cluster=record.cluster,
            instance_type=record.instance_type,
            zone=record.zone_of(rack),
            capacity_type=record.capacity_type,
            labels=labels,
            resources=record.allocatable,
            price_per_hour=record.price,
            interruption_probability=record.interruption_probability,
            stamp=stamp,
            leaving=leaving,
            taints=record.taints,
            idle_since_ns=START if state is S.IDLE else 0,
            last_error="Failed: so says the scenario" if state is S.FAILED else "",
        )

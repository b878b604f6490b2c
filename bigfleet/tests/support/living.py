"""Engines that live through many cycles as in a shard: one inventory, one carry, only changes put.

``Living`` drives the fast engine, ``Both`` drives it beside the oracle and stops at the first
cycle in which they disagree. Either can be the engine of a closed loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bigfleet.decision import Carry, Engine, Plan, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import Machine, Need
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from closedloop import Planned
from compare import differences, stamps_of
from oracle import Carry as OracleCarry
from oracle import decide as oracle_decide


@dataclass
class Living:
    """The fast engine with what a shard keeps for it."""

    policy: Policy = field(default_factory=Policy)
    facts: Mapping[str, ClusterFacts] = field(default_factory=dict)
    carry: Carry = field(default_factory=Carry)
    engine: Engine = field(default_factory=Engine)
    symbols: Symbols = field(default_factory=Symbols)
    _inventory: Inventory | None = None
    _known: dict[str, Machine] = field(default_factory=dict)

    def plan(self, machines: Iterable[Machine], needs: Iterable[Need], now: int) -> Plan:
        """One cycle; its carry is the next one's."""
        inventory = self._put(list(machines))
        demand = Demand.of(needs, self.facts, self.symbols)
        plan = self.engine.decide(inventory.snapshot(), demand, self.policy, self.carry, now)
        self.carry = plan.carry
        return plan

    def __call__(self, machines: list[Machine], needs: list[Need], now: int) -> Planned:
        return planned(self.plan(machines, needs, now))

    def _put(self, machines: list[Machine]) -> Inventory:
        if self._inventory is None:
            self._inventory = Inventory(self.symbols)
        there = {m.id: m for m in machines}
        self._inventory.put_many([m for m in machines if self._known.get(m.id) is not m])
        for gone in self._known.keys() - there.keys():
            self._inventory.remove(gone)
        self._known = there
        return self._inventory


@dataclass
class Both(Living):
    """The fast engine, with the oracle looking over its shoulder."""

    oracle: OracleCarry = field(default_factory=OracleCarry)

    def plan(self, machines: Iterable[Machine], needs: Iterable[Need], now: int) -> Plan:
        """One cycle of both; an assertion names every difference."""
        fleet, demand = list(machines), list(needs)
        oracle = OracleCarry(
            last_sequence=self.oracle.last_sequence,
            unclaimed=self.oracle.unclaimed,
            unmet_since=self.oracle.unmet_since,
            folds=self.oracle.folds,
            cooling=self.carry.cooling(now),
            drain_seconds=self.carry.drain_seconds,
        )
        expected = oracle_decide(fleet, demand, self.facts, self.policy, oracle, now)
        plan = super().plan(fleet, demand, now)
        different = differences(plan, expected)
        assert not different, "\n".join(different)
        self.oracle = expected.carry
        return plan


def planned(plan: Plan) -> Planned:
    """What a closed loop needs of a plan."""
    stamps, meant = stamps_of(plan)
    actions = [(a.kind, a.machine, a.cluster, a.need, a.grace_seconds) for a in plan]
    return Planned(actions, stamps, meant)  # type: ignore[arg-type]

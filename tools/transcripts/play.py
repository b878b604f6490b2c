"""Plays a scenario: decides, executes the plan as a shard does, applies events, decides again.

One inventory, one set of symbols and one carry live through all cycles, as in a shard. Executing a
plan only starts operations; the event `operations_end` finishes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bigfleet.decision import ActionKind, Engine, Plan
from bigfleet.decision.plan import Stamps
from bigfleet.decision.policy import SECOND
from bigfleet.inventory import Inventory
from bigfleet.model import Departure, MachineState, Stamp
from bigfleet.model.columns import Demand, Symbols
from transcripts.fleet import START, CycleInput, Scenario, Situation

S = MachineState
_STARTS = {
    ActionKind.PROVISION: S.CREATING,
    ActionKind.BOOTSTRAP: S.CONFIGURING,
    ActionKind.DELETE: S.DELETING,
}


@dataclass(frozen=True)
class PlayedCycle:
    """One decision, with the needs it was made for, by label."""

    given: CycleInput
    labels: tuple[str, ...]
    plan: Plan

    def row(self, label: str) -> int:
        """The plan's row that stands for a need."""
        verdicts = self.plan.verdicts
        place = self.labels.index(label)
        for row in range(len(verdicts)):
            if place in verdicts.members[verdicts.members_at[row] : verdicts.members_at[row + 1]]:
                return row
        raise LookupError(f"the plan has no row for need {label!r}")

    def machines(self, label: str) -> list[str]:
        """The machines that the plan counts for a need."""
        row = self.row(label)
        claimed = (self.plan.claimed == row).nonzero()[0].tolist()
        return sorted(self.plan.fleet.ids[place] for place in claimed)


def play(scenario: Scenario) -> Iterator[PlayedCycle]:
    """Every cycle of a scenario."""
    engine, symbols = Engine(), Symbols()
    inventory = Inventory(symbols)
    situation = scenario.situation()
    for cycle in scenario.cycles:
        situation.now = START + cycle.second * SECOND
        for event in cycle.events:
            event.apply(situation)
        inventory.put_many(list(situation.machines.values()))
        demand = Demand.of(situation.needs.values(), situation.facts, symbols)
        plan = engine.decide(
            inventory.snapshot(), demand, situation.policy, situation.carry, situation.now
        )
        situation.carry = plan.carry
        yield PlayedCycle(cycle, tuple(situation.needs), plan)
        _execute(situation, plan)


def _execute(situation: Situation, plan: Plan) -> None:
    stamps = _stamps(plan, plan.stamps)
    for name, stamp in stamps.items():
        situation.change(name, stamp=stamp)
    reserved_for = _stamps(plan, plan.preempted_for)
    for action in plan:
        match action.kind:
            case ActionKind.RECLAIM | ActionKind.PREEMPT:
                leaving = Departure(reserved_for.get(action.machine), situation.now)
                situation.change(action.machine, leaving=leaving)
            case ActionKind.KEEP:
                situation.change(action.machine, leaving=None)
            case kind:
                situation.change(action.machine, state=_STARTS[kind], cluster=action.cluster)
                if kind is not ActionKind.BOOTSTRAP:
                    situation.change(action.machine, cluster="")
                if kind is ActionKind.DELETE:
                    situation.change(action.machine, stamp=None)


def _stamps(plan: Plan, given: Stamps) -> dict[str, Stamp]:
    columns = zip(given.machine, given.identity, given.sequence, strict=True)
    symbols = plan.fleet.symbols
    return {plan.fleet.ids[int(m)]: symbols.stamp(int(i), int(s)) for m, i, s in columns}

"""A plan as a person would look at it: rows with what they hold, take and free, machines by id.

Statements about plans are checked on values, with the oracle's arithmetic (what a machine gives to
a row, what it costs there) and none of its decisions: who got what is read from the plan alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from bigfleet.decision import Action, ActionKind, Plan
from bigfleet.model import Machine, MachineState, Need
from bigfleet.model.amounts.resources import is_uniform_multiple
from compare import fast_plan
from fleets import NOW, Case, Shape
from fleets import case as case_of
from oracle.engine import phantoms
from oracle.world import Row, Vector, World
from variations import in_gangs, spread_out

S = MachineState
SHAPES = (
    Shape(),
    Shape(odd_states=False),
    Shape(machines=30, needs=10),
    Shape(machines=12, needs=10, gangs=False),
    Shape(machines=24, needs=4, clusters=2, limits=False),
    Shape(machines=24, needs=8, spread=False, bound=False),
    Shape(machines=40, needs=12, clusters=5, limits=False),
    Shape(machines=10, needs=12, clusters=1),
)
PLAIN = Shape(machines=20, needs=8, gangs=False, spread=False, limits=False)


@dataclass
class Seen:
    """One case, its plan, and the plan's rows with what became of them."""

    case: Case
    plan: Plan
    world: World
    rows: list[Row]
    actions: dict[str, Action] = field(default_factory=dict)

    @property
    def machines(self) -> dict[str, Machine]:
        return self.world.machines

    def taken(self, row: Row) -> list[Machine]:
        """Machines this row takes from the pool in this cycle."""
        return [self.machines[mid] for mid in row.taken]

    def held(self, row: Row) -> list[Machine]:
        """Machines it claims without having acquired them now."""
        return [self.machines[mid] for mid in row.claims if mid not in row.taken]

    def satisfied(self, row: Row) -> bool:
        return bool(self.plan.verdicts.satisfied[row.position])

    def deficit(self, row: Row) -> Vector:
        """What the plan says is missing; milli-units."""
        return self.plan.missing(row.position)

    def need_index(self, row: Row) -> int:
        return self.plan.need_of(row.position)

    def quiet(self) -> bool:
        """Phase 2 took nothing from anybody."""
        return not self.plan.verdicts.victims.any()


@lru_cache(maxsize=2048)
def seen(seed: int, plain: bool = False) -> Seen:
    """The case of a seed, decided; shapes take turns, or all needs are plain."""
    case = case_of(seed, PLAIN) if plain else mixed_case(seed)
    return see(case, fast_plan(case))


def seen_spread(seed: int) -> Seen:
    """A case in which every need is spread over one label or two."""
    case = spread_out(case_of(seed, PLAIN), Random(seed))
    return see(case, fast_plan(case))


def mixed_case(seed: int) -> Case:
    """The case of a seed; every third is about spread, some about gangs above all."""
    case = case_of(seed, SHAPES[seed % len(SHAPES)])
    if seed % 3 == 1:
        return spread_out(case, Random(seed))
    return in_gangs(case, Random(seed)) if seed % 7 == 6 else case


def see(case: Case, plan: Plan, now: int = NOW) -> Seen:
    """Rows and actions of a plan."""
    fleet = {m.id: m for m in sorted(case.machines, key=lambda m: m.id)}
    rows = [_row(case, plan, position) for position in range(len(plan.verdicts))]
    world = World(fleet, rows, case.facts, case.policy, now, set(case.cooling), case.drain_seconds)
    world.phantom = phantoms(world)
    for number, row in enumerate(plan.claimed):
        if row >= 0:
            rows[row].claims.append(plan.fleet.ids[number])
    actions: dict[str, Action] = {}
    ready = _ready(plan)
    for index, action in enumerate(plan):
        assert action.machine not in actions, f"two actions for {action.machine}"
        actions[action.machine] = action
        row = int(plan.actions.row[index])
        if action.machine in ready:
            rows[row].ready.append(action.machine)
        elif action.kind in (ActionKind.BOOTSTRAP, ActionKind.PROVISION):
            rows[row].taken.append(action.machine)
        elif action.kind is ActionKind.PREEMPT:
            rows[row].picks.append(action.machine)
    return Seen(case, plan, world, rows, actions)


def _ready(plan: Plan) -> set[str]:
    """Idle machines that were made for a row before: they are taken with the stamp they have."""
    fleet, given = plan.fleet, plan.stamps
    kept = given.machine[given.sequence == fleet.sequence[given.machine]]
    return {fleet.ids[m] for m in kept.tolist() if fleet.state[m] == S.IDLE}


def _row(case: Case, plan: Plan, position: int) -> Row:
    verdicts = plan.verdicts
    at = verdicts.members_at
    members = [case.needs[i] for i in verdicts.members[at[position] : at[position + 1]]]
    folded = verdicts.need[position] < 0
    need = _folded(members) if folded else members[0]
    row = Row(need, members, folded=bool(folded), shrunk_at=0, position=position)
    row.units = is_uniform_multiple(need.aggregate, need.min_unit)
    if not folded and row.is_gang and (domain := plan.domain(position)):
        row.domain = tuple(domain.split(","))
    return row


def _folded(members: list[Need]) -> Need:
    first = members[0]
    unit = {d: v for d, v in first.aggregate.items() if v}
    return Need(
        cluster=first.cluster,
        profile=first.profile.without_same(),
        aggregate={d: v * len(members) for d, v in unit.items()},
        min_unit=unit,
    )

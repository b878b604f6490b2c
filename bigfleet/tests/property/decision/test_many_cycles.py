"""Cycle after cycle the engine remembers what the oracle does: holds, folds, stamps, ages.

Fleets start anywhere and everything is allowed: limits, stock-outs that come and go, machines that
fail or vanish, demand that grows, shrinks and comes back.
"""

from dataclasses import replace
from random import Random

import pytest

from bigfleet.decision import BackOff, Carry
from bigfleet.model import Machine, MachineState, Need, aggregate_rows
from closedloop import Loop
from fleets import Case, Shape, need
from fleets import case as case_of
from living import Both
from sizes import chunks, label
from variations import in_gangs, spread_out

S = MachineState
SHAPES = (Shape(), Shape(machines=24, needs=8), Shape(machines=10, needs=10, clusters=2))


def changed(rng: Random, case: Case, needs: list[Need], now: int, cycle: int) -> list[Need]:
    """Demand of the next cycle: mostly the same, sometimes less, more, gone or new."""
    found = []
    for row in needs:
        what = rng.random()
        if what < 0.03:
            continue
        if what < 0.08:
            smaller = {d: max(1, v // 2) for d, v in row.aggregate.items()}
            row = replace(row, aggregate=smaller, shrunk_at=now)
        elif what < 0.12:
            row = replace(row, aggregate={d: 2 * v for d, v in row.aggregate.items()})
        found.append(row)
    if rng.random() < 0.1:
        cluster = rng.choice(sorted(case.facts))
        found.append(replace(need(rng, cluster, SHAPES[0], cycle), arrival_ns=now))
    return aggregate_rows(found) or needs


def disturbed(rng: Random, loop: Loop, case: Case) -> None:
    """A host fails, comes back, loses readiness or is about to end."""
    mid = rng.choice(sorted(loop.machines))
    m = loop.machines[mid]
    kind = rng.random()
    if kind < 0.3 and m.state in (S.CONFIGURED, S.IDLE):
        loop.machines[mid] = replace(
            m, state=S.FAILED, cluster="", leaving=None, last_error="HostLost: gone"
        )
        loop.due = [due for due in loop.due if due[1] != mid]
    elif kind < 0.5 and m.state is S.FAILED:
        loop.machines[mid] = replace(m, state=S.IDLE, stamp=None, idle_since_ns=loop.now)
    elif kind < 0.7 and m.state is S.CONFIGURED:
        since = 0 if m.not_ready_since_ns else loop.now - 950 * 10**9
        loop.machines[mid] = replace(m, not_ready_since_ns=since)
    elif kind < 0.8 and m.state is S.CONFIGURED:
        loop.machines[mid] = replace(m, interruption_at_ns=loop.now + 120 * 10**9)
    elif kind < 0.9 and not any(due[1] == mid for due in loop.due):
        del loop.machines[mid]


def consistent(m: Machine) -> Machine:
    """Draining machines of a generated case have a need to leave for, or none."""
    return replace(m, leaving=None) if m.state is S.DRAINING and m.leaving is None else m


@pytest.mark.parametrize("seeds", chunks(20, 1_500, 8, everything=40), ids=label)
def test_through_many_cycles_the_engine_and_the_oracle_stay_equal(seeds: range) -> None:
    for seed in seeds:
        rng = Random(seed)
        case = case_of(seed, SHAPES[seed % len(SHAPES)])
        if seed % 2:
            case = in_gangs(case, rng) if seed % 4 == 1 else spread_out(case, rng)
        loop = Loop({m.id: consistent(m) for m in case.machines}, rng, (0, 4))
        carry = Carry(stock_outs={o: BackOff(loop.now + 10**11, 1) for o in case.cooling})
        both = Both(case.policy, case.facts, carry)
        needs = case.needs
        for cycle in range(25):
            try:
                loop.cycle(both, needs)
            except AssertionError as error:
                raise AssertionError(f"seed {seed} cycle {cycle}: {error}") from error
            needs = changed(rng, case, needs, loop.now, cycle)
            if rng.random() < 0.4 and len(loop.machines) > 1:
                disturbed(rng, loop, case)
            if rng.random() < 0.1:
                m = rng.choice(sorted(loop.machines.values(), key=lambda m: m.id))
                offering = (m.provider, m.instance_type, m.zone, m.capacity_type)
                both.carry = both.carry.with_stock_out(offering, loop.now)
                both.carry = both.carry.with_drain(offering, rng.uniform(0.5, 400))

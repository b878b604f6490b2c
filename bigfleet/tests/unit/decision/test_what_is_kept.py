"""An engine that keeps what did not change decides like one that keeps nothing."""

from dataclasses import replace

import pytest

from bigfleet.decision import Carry, Engine, Plan, Policy
from bigfleet.inventory import Inventory
from bigfleet.model import LABEL_ZONE as ZONE
from bigfleet.model import CapacityType, Machine, Need, Requirement, RequirementOperator
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from worlds import NOW, RACK, A, B, S, machine, need

FLEET = [
    *(machine(f"m-{i}", S.IDLE, cpu=8, price=1 + i % 3, kind=CapacityType.SPOT) for i in range(6)),
    *(machine(f"n-{i}", S.SPECULATIVE, cpu=8, price=2) for i in range(6)),
]
ROWS = [need(cpu=16, unit=2), replace(need(cpu=8, unit=4, priority=7), cluster=B)]


class Shard:
    """One engine over several cycles; every plan is compared with that of a new engine."""

    def __init__(self) -> None:
        self.symbols = Symbols()
        self.inventory = Inventory(self.symbols)
        self.inventory.load(FLEET)
        self.facts = {A: ClusterFacts(), B: ClusterFacts()}
        self.demand = Demand.of(ROWS, self.facts, self.symbols)
        self.policy = Policy()
        self.carry = Carry()
        self.engine = Engine()
        self.decide()

    def decide(self, now: int = NOW) -> Plan:
        given = (self.inventory.snapshot(), self.demand, self.policy, self.carry, now)
        mine, fresh = self.engine.decide(*given), Engine().decide(*given)
        assert mine.digest() == fresh.digest()
        assert mine.verdicts.deficit.tolist() == fresh.verdicts.deficit.tolist()
        assert mine.verdicts.reason.tolist() == fresh.verdicts.reason.tolist()
        assert mine.stamps.identity.tolist() == fresh.stamps.identity.tolist()
        return mine

    def ask(self, rows: list[Need]) -> None:
        self.demand = Demand.of(rows, self.facts, self.symbols)


@pytest.fixture
def shard() -> Shard:
    return Shard()


def taken(plan: Plan) -> int:
    return len(plan.actions)


def test_other_amounts_are_seen(shard: Shard) -> None:
    d = shard.demand
    before = taken(shard.decide())
    shard.demand = d.with_amounts(3 * d.aggregate, d.aggregate_milli, d.shrunk_at)
    assert taken(shard.decide()) > before


def test_a_cluster_that_is_blocked_is_seen_also_when_the_same_mapping_says_so(shard: Shard) -> None:
    before = taken(shard.decide())
    shard.facts[B] = ClusterFacts(blocked=True)
    assert 0 < taken(shard.decide()) < before
    shard.facts[B] = ClusterFacts()
    assert taken(shard.decide()) == before


def test_overhead_is_seen(shard: Shard) -> None:
    before = taken(shard.decide())
    shard.facts[A] = ClusterFacts(overhead={"cpu": 6_000})
    assert taken(shard.decide()) > before


def test_another_unit_is_seen(shard: Shard) -> None:
    before = shard.decide()
    shard.ask([replace(ROWS[0], min_unit={"cpu": 16_000}), ROWS[1]])
    assert taken(shard.decide()) < taken(before)


def test_amounts_in_fractions_are_seen(shard: Shard) -> None:
    before = shard.decide()
    shard.ask([replace(ROWS[0], aggregate={"cpu": 16_500}), ROWS[1]])
    assert taken(shard.decide()) == taken(before) + 1
    shard.ask(ROWS)
    assert taken(shard.decide()) == taken(before)


def test_a_row_that_comes_and_goes_is_seen(shard: Shard) -> None:
    before = taken(shard.decide())
    shard.ask([*ROWS, replace(need(cpu=8, unit=8, priority=9), group="new")])
    assert taken(shard.decide()) == before + 1
    shard.ask(ROWS[:1])
    assert taken(shard.decide()) < before


def test_a_new_cluster_and_a_new_resource_are_seen(shard: Shard) -> None:
    shard.facts["c-new"] = ClusterFacts()
    shard.ask([*ROWS, replace(need(cpu=8, unit=8), cluster="c-new")])
    assert shard.decide().verdicts.satisfied.all()
    shard.ask([*ROWS, replace(ROWS[0], aggregate={"gpu": 1_000}, min_unit={}, group="g")])
    assert not shard.decide().verdicts.satisfied.all()


def test_a_stock_out_is_seen_and_ends(shard: Shard) -> None:
    shard.ask([replace(ROWS[0], aggregate={"cpu": 80_000})])
    before = shard.decide().counts()
    offerings = shard.inventory.snapshot().classes.offerings
    for offering in offerings:
        shard.carry = shard.carry.with_stock_out(offering, NOW)
    assert "Provision" in before
    assert "Provision" not in shard.decide().counts()
    assert shard.decide(NOW + 10**12).counts()["Provision"] == before["Provision"]


def test_a_hold_that_changes_is_seen(shard: Shard) -> None:
    shard.ask([])
    idle: list[Machine] = [replace(m, idle_since_ns=NOW) for m in FLEET[:6]]
    shard.inventory.put_many(idle)
    assert taken(shard.decide(NOW + 10)) == 0
    shard.policy = Policy(spot_release_hold=5)
    assert shard.decide(NOW + 10).counts() == {"Delete": 6}


def test_prices_that_change_are_seen(shard: Shard) -> None:
    before = {a.machine for a in shard.decide()}
    for m in FLEET[:6]:
        shard.inventory.put(replace(m, price_per_hour=5.0 - m.price_per_hour))
    assert {a.machine for a in shard.decide()} != before


def test_places_that_come_and_go_are_seen_by_rows_that_stay(shard: Shard) -> None:
    def racked(m: Machine, rack: str, zone: str = "z-a") -> Machine:
        return replace(m, labels={**m.labels, RACK: rack}, zone=zone)

    both = [
        Requirement.of(RACK, RequirementOperator.SAME),
        Requirement.of(ZONE, RequirementOperator.SAME),
    ]
    shun = [Requirement.of(RACK, RequirementOperator.NOT_IN, ["r-1"])]
    shard.ask([
        need(cpu=24, unit=8, spread=(ZONE, 1), group="spread"),
        need(cpu=24, unit=8, spread=(RACK, 1), group="racks"),
        need(cpu=8, unit=8, where=shun, group="shuns"),
        need(cpu=16, unit=8, where=both, group="pair"),
    ])  # fmt: skip
    met = [shard.decide().verdicts.satisfied.sum()]
    for i, m in enumerate(FLEET):
        shard.inventory.put(racked(m, f"r-{i % 3}"))
        met.append(shard.decide().verdicts.satisfied.sum())
    shard.inventory.put(racked(FLEET[0], "r-new", "z-b"))
    met.append(shard.decide().verdicts.satisfied.sum())
    shard.inventory.put(racked(FLEET[1], "r-1", "z-b"))
    met.append(shard.decide().verdicts.satisfied.sum())
    assert len(set(met)) > 2

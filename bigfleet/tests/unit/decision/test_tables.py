"""One scale per resource: whole units where no cluster asks for fractions, and no overflow."""

import numpy as np
import pytest

from bigfleet.decision import Carry, Policy
from bigfleet.decision.tables import ScaledAmounts, Tables
from bigfleet.inventory import Inventory
from bigfleet.model import CapacityType, Machine, Need, Profile
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from worlds import NOW, RACK, A, B, decide, machine, need, replace, serving

EXA = 10**18


def scaled(
    machines: list[Machine], needs: list[Need], facts: dict[str, ClusterFacts] | None = None
) -> ScaledAmounts:
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(machines)
    demand = Demand.of(needs, facts or {}, symbols)
    tables = Tables()
    return tables.amounts(inventory.snapshot(), demand, tables.clusters(demand))


def test_a_resource_without_fractions_is_counted_in_whole_units() -> None:
    amounts = scaled([machine("m-1")], [need(cpu=8, unit=2)])
    assert amounts.scale.tolist() == [1000]
    assert (amounts.aggregate.tolist(), amounts.unit.tolist()) == ([[8]], [[2]])
    assert amounts.offers.tolist() == [[4]]


@pytest.mark.parametrize("place", ["aggregate", "unit", "offer", "overhead"])
def test_a_fraction_anywhere_makes_it_thousandths(place: str) -> None:
    row, offering, facts = need(cpu=8, unit=2), machine("m-1"), {A: ClusterFacts()}
    if place == "aggregate":
        row = replace(row, aggregate={"cpu": 8500})
    elif place == "unit":
        row = replace(row, min_unit={"cpu": 1500})
    elif place == "offer":
        offering = replace(offering, resources={"cpu": 3920})
    else:
        facts = {A: ClusterFacts(overhead={"cpu": 100})}
    amounts = scaled([offering], [row], facts)
    assert amounts.scale.tolist() == [1]
    assert amounts.aggregate[0, 0] == row.aggregate["cpu"]
    assert amounts.unit[0, 0] == row.min_unit["cpu"]
    assert amounts.offers[0, 0] == offering.resources["cpu"]
    assert amounts.overhead.max() == facts[A].overhead.get("cpu", 0)


def test_where_thousandths_would_not_fit_demand_is_rounded_up_and_supply_down() -> None:
    row = replace(need(), aggregate={"cpu": 5 * EXA * 1000 + 1}, min_unit={"cpu": 1001})
    offering = replace(machine("m-1"), resources={"cpu": 2999})
    amounts = scaled([offering], [row], {A: ClusterFacts(overhead={"cpu": 1})})
    assert amounts.scale.tolist() == [1000]
    assert amounts.aggregate.tolist() == [[5 * EXA + 1]]
    assert amounts.unit.tolist() == [[2]]
    assert amounts.offers.tolist() == [[2]]
    assert amounts.overhead.max() == 1


def test_the_largest_amount_that_still_fits_in_thousandths_is_exact() -> None:
    most = (2**62) // 1000
    row = replace(need(), aggregate={"cpu": most * 1000 + 999}, min_unit={"cpu": 1000})
    amounts = scaled([machine("m-1")], [row])
    assert amounts.scale.tolist() == [1]
    assert amounts.aggregate.tolist() == [[most * 1000 + 999]]
    over = replace(row, aggregate={"cpu": (most + 1) * 1000 + 999})
    assert scaled([machine("m-1")], [over]).scale.tolist() == [1000]


def test_a_row_larger_than_any_counter_of_thousandths_is_served_unit_by_unit() -> None:
    # Three exabytes asked for in one row; milli-bytes of that do not fit 64 bits.
    row = replace(need(), aggregate={"memory": 3 * EXA * 1000}, min_unit={"memory": EXA * 1000})
    fleet = [replace(machine(f"m-{i}"), resources={"memory": EXA * 1000}) for i in range(4)]
    outcome = decide(fleet, [row])
    assert len(outcome.serves()) == 3
    assert outcome.satisfied()


def test_what_so_large_a_row_lacks_and_is_freed_for_it_is_told_exactly() -> None:
    row = replace(need(), aggregate={"memory": 30 * EXA}, min_unit={"memory": 10 * EXA})
    low = replace(row, cluster=B, profile=Profile.of(priority=1), aggregate={"memory": 10 * EXA})
    fleet = [
        replace(machine("m-1"), resources={"memory": 10 * EXA}),
        replace(serving("m-2", low), resources={"memory": 10 * EXA}),
    ]
    outcome = decide(fleet, [row, low])
    assert outcome.lacks() == {"memory": 20 * EXA}
    assert outcome.plan.freed(outcome.row()) == {"memory": 10 * EXA}


def test_what_a_place_offers_fits_although_a_need_asks_for_half_a_byte() -> None:
    # 80 machines of 140 TB each in one rack: in milli-bytes their sum would not fit 64 bits.
    fleet = [
        replace(machine(f"m-{i:02d}", rack="r-1" if i < 80 else "r-2"), resources={
            "cpu": 4_000, "memory": 2**47 * 1000,
        })
        for i in range(82)
    ]  # fmt: skip
    together = replace(need(cpu=12, unit=4, same=RACK), aggregate={"cpu": 12_000, "memory": 3_000})
    typo = replace(need(B), aggregate={"cpu": 4_000, "memory": 512})
    outcome = decide(fleet, [together, typo])
    assert (outcome.domain(0), outcome.satisfied(0)) == ("r-1", True)


def test_resources_that_only_one_side_names_are_columns_of_both() -> None:
    amounts = scaled([machine("m-1", gpu=2)], [need(cpu=4, fpga=1)])
    assert amounts.aggregate.shape == amounts.unit.shape
    assert amounts.aggregate.shape[1] == amounts.offers.shape[1] == amounts.overhead.shape[1] == 3


def test_classes_know_their_losses_their_holds_and_what_cools() -> None:
    inventory = Inventory(Symbols())
    inventory.load([
        machine("m-1", kind=CapacityType.SPOT, risk=0.25),
        machine("m-2", kind=CapacityType.ON_DEMAND),
        machine("m-3", kind=CapacityType.BARE_METAL),
    ])  # fmt: skip
    table = inventory.snapshot().classes
    spot = next(o for o in table.offerings if o[3] is CapacityType.SPOT)
    carry = Carry().with_stock_out(spot, NOW).with_drain(spot, 7.0)
    policy = Policy(spot_release_hold=11, on_demand_release_hold=22)
    columns = Tables().classes(table, np.zeros((len(table), 1), np.int64), policy, carry, NOW)
    rows = {CapacityType(int(k)): i for i, k in enumerate(table.capacity_type)}
    s, d, b = (
        rows[k] for k in (CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.BARE_METAL)
    )
    # Bucket 2 is half a dollar, 6 eight dollars, 27 pinned: infinite where there is a risk.
    assert columns.loss[s, [0, 1, 2, 6, 27]].tolist() == [0, 0, 125_000, 2_000_000, -1]
    assert columns.loss[d, [0, 6, 27]].tolist() == [0, 0, 0]
    assert columns.hold[[s, d, b]].tolist() == [11, 22, -1]
    assert columns.elastic[[s, d, b]].tolist() == [1, 1, 0]
    assert columns.risky[[s, d, b]].tolist() == [1, 0, 0]
    assert columns.cooling[[s, d, b]].tolist() == [1, 0, 0]
    assert columns.drain[[s, d, b]].tolist() == [7.0, -1.0, -1.0]

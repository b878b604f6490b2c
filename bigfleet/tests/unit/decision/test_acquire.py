"""Acquire: the cheapest allowed machine next, within quota, spend limit and stock."""

import pytest

from bigfleet.decision import ActionKind, Carry, Policy, Reason
from bigfleet.decision.policy import SECOND
from bigfleet.model import LABEL_HOSTNAME, CapacityType, Need
from bigfleet.model.facts import ClusterFacts
from worlds import NOW, ZONE, A, B, S, after, decide, label, machine, need, replace, serving, shard

K = ActionKind
SPOT, OWNED = CapacityType.SPOT, CapacityType.BARE_METAL


def test_idle_machines_are_taken_before_cheaper_ones_that_must_be_created() -> None:
    fleet = [machine("m-1", S.SPECULATIVE, price=0.1), machine("m-2", price=9.0)]
    assert decide(fleet, [need()]).does == {"m-2": K.BOOTSTRAP}
    both = decide(fleet, [need(cpu=8, unit=4)])
    assert both.does == {"m-1": K.PROVISION, "m-2": K.BOOTSTRAP}


def test_the_cheapest_for_the_need_is_price_plus_expected_interruption_loss() -> None:
    fleet = [machine("m-1", price=1.0, risk=0.25, kind=SPOT), machine("m-2", price=1.4)]
    # Bucket 3 is one dollar: 1.00 + 0.25 * 1 is less than 1.40; bucket 4, two dollars, is more.
    assert decide(fleet, [need(interruption=3)]).serves() == {"m-1"}
    assert decide(fleet, [need(interruption=4)]).serves() == {"m-2"}


def test_machines_of_different_size_are_compared_by_cost_per_useful_unit() -> None:
    fleet = [machine("m-1", cpu=4, price=1.0), machine("m-2", cpu=16, price=2.0)]
    assert decide(fleet, [need(cpu=16, unit=1)]).serves() == {"m-2"}
    assert decide(fleet, [need(cpu=4, unit=1)]).serves() == {"m-1"}


def test_one_large_machine_goes_before_small_ones_that_are_costlier_together() -> None:
    small = [machine(f"m-{i}", cpu=4, price=1.5) for i in range(2)]
    fleet = [*small, machine("m-large", cpu=8, price=2.0)]
    assert decide(fleet, [need(cpu=8, unit=1)]).serves() == {"m-large"}
    assert decide(fleet, [need(cpu=4, unit=1)]).serves() == {"m-0"}


def test_an_exact_tie_in_cost_is_seen_as_one() -> None:
    fleet = [machine("m-2", cpu=4, price=0.3), machine("m-1", cpu=12, price=0.9)]
    assert decide(fleet, [need(cpu=12, unit=1)]).serves() == {"m-1"}
    fleet = [machine("m-1", cpu=4, price=0.3), machine("m-2", cpu=12, price=0.9)]
    assert "m-1" in decide([*fleet, machine("m-3", cpu=8)], [need(cpu=24, unit=1)]).serves()


def test_a_specially_valuable_idle_machine_is_not_spent_on_anyone() -> None:
    valued = need(B, reclamation=9, group="gone")
    fleet = [machine("m-1", serves=valued), machine("m-2")]
    assert decide(fleet, [need()]).serves() == {"m-2"}


def test_speculative_machines_of_equal_cost_are_taken_by_id() -> None:
    fleet = [machine(name, S.SPECULATIVE) for name in ("m-3", "m-1", "m-2")]
    assert decide(fleet, [need()]).does == {"m-1": K.PROVISION}


def test_an_idle_machine_too_risky_for_the_need_goes_behind_speculative() -> None:
    row = need(interruption=6)  # eight dollars
    risky = machine("m-1", price=0.0, risk=0.5, kind=SPOT)
    assert decide([risky, machine("m-2", S.SPECULATIVE, price=3.9)], [row]).serves() == {"m-2"}
    # A loss of exactly the cheapest's cost does not count as more.
    assert decide([risky, machine("m-2", S.SPECULATIVE, price=4.0)], [row]).serves() == {"m-1"}
    assert decide([risky], [row]).serves() == {"m-1"}


def test_takes_that_turn_out_redundant_are_given_back_most_expensive_first() -> None:
    fleet = [machine("m-1", cpu=4, price=0.4), machine("m-2", cpu=16, price=2.0)]
    outcome = decide(fleet, [need(cpu=14, unit=2)])
    assert outcome.serves() == {"m-2"}


def test_a_demand_no_machine_can_serve_takes_none() -> None:
    fleet = [machine("m-1"), machine("m-2", S.SPECULATIVE)]
    assert decide(fleet, [need(cpu=8)]).does == {}
    assert decide(fleet, [need(cpu=4, gpu=1)]).does == {}
    part = decide([*fleet, machine("m-3", cpu=4, gpu=1)], [need(cpu=12, unit=1, gpu=1)])
    assert part.serves() == {"m-3"}


def test_pinned_demand_never_takes_a_machine_that_can_be_interrupted() -> None:
    fleet = [machine("m-1", risk=0.001), machine("m-2", S.SPECULATIVE, risk=0.001, kind=SPOT)]
    assert decide(fleet, [need(interruption=27)]).does == {}


def test_needs_are_served_in_the_total_order() -> None:
    rows = [
        need(B, priority=100),
        need(A, priority=100),
        replace(need(A, priority=100, group="late"), arrival_ns=9),
        need(A, priority=100, reclamation=5),
        need(A, priority=100, interruption=5),
        need(A, priority=200),
    ]
    for supply in range(1, 7):
        outcome = decide([machine(f"m-{i}") for i in range(supply)], rows)
        met = [i for i in range(6) if outcome.satisfied(i)]
        assert met == sorted([5, 4, 3, 1, 0, 2][:supply])


# -- limits ----------------------------------------------------------------------------------


def two(**how: object) -> list:  # type: ignore[type-arg]
    return [machine(f"m-{i}", S.SPECULATIVE, **how) for i in (1, 2)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("quota", "made"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_a_quota_bounds_slots_outside_speculative(quota: int, made: int) -> None:
    row = need(cpu=12, unit=4)
    fleet = [serving("m-0", row), *two()]
    outcome = decide(fleet, [row], Policy(quotas={("p", "r"): quota}))
    assert len(outcome.does) == made
    assert outcome.reason() is (Reason.NONE if made == 2 else Reason.QUOTA)


def test_a_quota_holds_for_its_provider_alone_and_not_for_idle_machines() -> None:
    row = need(cpu=12, unit=4)
    fleet = [machine("m-0"), machine("m-1", S.SPECULATIVE), machine("m-2", S.SPECULATIVE,
             provider="q")]  # fmt: skip
    outcome = decide(fleet, [row], Policy(quotas={("p", "r"): 1}))
    assert outcome.serves() == {"m-0", "m-2"}


@pytest.mark.parametrize(("limit", "made"), [(1.9, 0), (2.0, 1), (2.9, 1), (3.0, 2)])
def test_a_spend_limit_counts_what_elastic_capacity_costs_already(limit: float, made: int) -> None:
    row = need(cpu=16, unit=4)
    fleet = [serving("m-0", row), serving("m-9", row, kind=OWNED, price=50.0), *two()]
    outcome = decide(fleet, [row], Policy(spend_limit_micro=round(limit * 1e6)))
    assert len(outcome.does) == made
    assert outcome.reason() is (Reason.NONE if made == 2 else Reason.SPEND_LIMIT)


def test_a_spend_limit_holds_whatever_prices_add_up_to() -> None:
    row = need(cpu=16, unit=4)
    expensive = [serving(f"m-expensive-{i}", row, price=9e12) for i in range(2)]
    outcome = decide([*expensive, *two()], [row], Policy(spend_limit_micro=10_000_000))
    assert outcome.does == {}
    assert outcome.reason() is Reason.SPEND_LIMIT


def test_a_spend_limit_does_not_hold_back_what_is_owned_or_free() -> None:
    policy = Policy(spend_limit_micro=0)
    assert len(decide(two(kind=OWNED), [need(cpu=8, unit=4)], policy).does) == 2
    assert len(decide(two(price=0.0), [need(cpu=8, unit=4)], policy).does) == 2


def test_a_stock_out_sends_demand_to_another_offering_until_it_has_cooled() -> None:
    fleet = [machine("m-1", S.SPECULATIVE, price=0.1, cpu=8), machine("m-2", S.SPECULATIVE)]
    offering = ("p", "t8", "z-1", CapacityType.ON_DEMAND)
    carry = Carry().with_stock_out(offering, NOW)
    assert decide(fleet, [need()], carry=carry).serves() == {"m-2"}
    assert decide(fleet, [need()], carry=carry, now=NOW + 30 * SECOND).serves() == {"m-1"}
    idle = machine("m-1", price=0.1, cpu=8)
    assert decide([idle], [need()], carry=carry).serves() == {"m-1"}


def test_a_blocked_cluster_is_credited_only() -> None:
    row = need(A, cpu=8, unit=4)
    fleet = [serving("m-1", row), machine("m-2")]
    outcome = decide(fleet, [row, need(B)], facts={A: ClusterFacts(blocked=True)})
    assert outcome.serves(0) == {"m-1"}
    assert outcome.serves(1) == {"m-2"}
    assert outcome.reason(0) is Reason.BOOTSTRAP_ERROR


def test_a_blocked_cluster_preempts_no_machine() -> None:
    low = need(B, priority=1)
    outcome = decide(
        [serving("m-1", low)],
        [need(A, priority=10_000), low],
        facts={A: ClusterFacts(blocked=True)},
    )
    assert outcome.does == {}


# -- spread ----------------------------------------------------------------------------------


def zones(*names: str, **how: object) -> list:  # type: ignore[type-arg]
    return [
        machine(f"m-{i}-{name}", zone=name, **how)  # type: ignore[arg-type]
        for i, name in enumerate(names)
    ]


def spread(cpu: int, skew: int = 1) -> Need:
    return need(cpu=cpu, unit=4, spread=("topology.kubernetes.io/zone", skew))


def test_spread_machines_differ_by_at_most_the_skew() -> None:
    fleet = zones("z-1", "z-1", "z-1", "z-2")
    outcome = decide(fleet, [spread(12)])
    assert outcome.serves() == {"m-0-z-1", "m-1-z-1", "m-3-z-2"}


def test_what_cannot_be_spread_stays_unmet() -> None:
    fleet = [*zones("z-1", "z-1", "z-1"), machine("m-9", S.SPECULATIVE, zone="z-2")]
    outcome = decide(fleet, [spread(16)])
    assert len(outcome.serves()) == 3
    assert not outcome.satisfied()
    assert decide(fleet, [spread(16, skew=2)]).satisfied()


def test_a_machine_without_the_label_cannot_serve_a_spread_need() -> None:
    row = need(cpu=8, unit=4, spread=("row", 1))
    fleet = [
        machine("m-1", labels={"row": "a"}),
        machine("m-2"),
        machine("m-3", labels={"row": "b"}),
    ]
    assert decide(fleet, [row]).serves() == {"m-1", "m-3"}


def test_credit_ignores_the_skew() -> None:
    row = spread(12)
    fleet = [serving(f"m-{i}", row) for i in range(3)]
    assert decide([*fleet, *zones("z-2")], [row]).satisfied()


def test_a_wish_to_spread_that_may_be_ignored_does_not_constrain() -> None:
    from bigfleet.model import Profile, Spread, SpreadMode

    wish = Spread("topology.kubernetes.io/zone", 1, SpreadMode.SCHEDULE_ANYWAY)
    row = replace(need(cpu=12, unit=4), profile=Profile.of(spread=[wish], priority=100))
    assert decide(zones("z-1", "z-1", "z-1", price=1.0), [row]).satisfied()


def test_requirements_choose_among_free_machines() -> None:
    row = need(where=[label("pool", "In", "b")])
    fleet = [machine("m-1", labels={"pool": "a"}, price=0.1), machine("m-2", labels={"pool": "b"})]
    assert decide(fleet, [row]).serves() == {"m-2"}


def test_what_turns_out_redundant_is_given_back_though_the_skew_wanted_it_first() -> None:
    row = replace(spread(7), min_unit={"cpu": 1_000})
    fleet = [
        machine("m-large", cpu=6, zone="z-a", price=4),
        serving("m-held", row, cpu=1, zone="z-a"),
        machine("m-small", cpu=2, zone="z-b", price=1),
    ]
    # z-a may have no second before z-b has one. The large one then covers what the held one leaves,
    # and credit would find no use for the small one in the next cycle.
    assert decide(fleet, [row]).does == {"m-large": K.BOOTSTRAP}


def test_a_domain_waits_for_the_others_while_its_machines_are_the_cheapest() -> None:
    row = spread(12)
    cheap = [machine(f"m-{i}", zone="z-1", price=1) for i in range(3)]
    fleet = [*cheap, machine("m-expensive", zone="z-2", price=9)]
    assert decide(fleet, [row]).serves() == {"m-0", "m-1", "m-expensive"}


def test_of_idle_machines_alike_the_one_that_was_cheap_to_reclaim_is_spent_first() -> None:
    expensive, cheap = (
        need(A, group="expensive", reclamation=9),
        need(A, group="cheap", reclamation=2),
    )
    fleet = [
        machine("m-1", serves=expensive),
        machine("m-2", serves=cheap),
        machine("m-3", serves=replace(expensive, group="other")),
    ]
    row = need(B, cpu=8, unit=4)
    assert decide(fleet, [row]).serves() == {"m-1", "m-2"}
    assert decide(fleet, [need(B)]).serves() == {"m-2"}


def test_sequences_go_on_from_the_last_when_the_clock_stands_still() -> None:
    both, fleet = shard(), [machine("m-1"), machine("m-2", price=2.0)]
    stamps = [
        after(both, fleet, [need()]).stamp("m-1"),
        after(both, fleet, [need(cpu=8, unit=4)]).stamp("m-1"),
    ]
    assert [stamp and stamp.sequence for stamp in stamps] == [NOW, NOW + 1]


def test_a_place_where_nothing_may_be_created_does_not_count_for_the_skew() -> None:
    row = need(cpu=15, unit=1, spread=(ZONE, 1))
    fleet = [
        machine("m-small", cpu=2, zone="z-2", price=0.2),
        machine("m-1", cpu=4, zone="z-1", price=0.8),
        machine("m-2", cpu=4, zone="z-1", price=0.8),
        machine("m-large", cpu=8, zone="z-2", price=4.0),
        machine("m-new", S.SPECULATIVE, cpu=1, zone="z-3", provider="q"),
    ]
    outcome = decide(fleet, [row], Policy(quotas={("q", "r"): 0}))
    assert set(outcome.does) == {"m-1", "m-2", "m-large"}


@pytest.mark.parametrize("state", [S.IDLE, S.SPECULATIVE])
def test_pods_spread_over_hosts_are_served_by_machines_that_have_no_host_yet(state: S) -> None:
    row = need(cpu=12, unit=4, spread=(LABEL_HOSTNAME, 1))
    outcome = decide([machine(f"m-{i}", state) for i in range(5)], [row])
    assert outcome.serves() == {"m-0", "m-1", "m-2"}
    assert outcome.satisfied()

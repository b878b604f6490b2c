"""Views of needs: what the wire promises of each, made of a plan."""

from dataclasses import replace

import pytest

from bigfleet.decision import Carry, Policy
from bigfleet.decision.policy import SECOND, TICK
from bigfleet.model import Machine, Need
from bigfleet.model.facts import ClusterFacts
from bigfleet.shard.explain.ledger import Ledger
from bigfleet.shard.explain.views import NeedViews
from bigfleet.wire.needs import need_from_proto
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from living import Living
from worlds import NOW, RACK, A, B, S, label, machine, need, serving

Reason = pb.UnmetReason


class World:
    """A shard of one or more cycles, and what it would show."""

    def __init__(self, policy: Policy | None = None, carry: Carry | None = None) -> None:
        self.policy = policy or Policy()
        facts = {A: ClusterFacts(), B: ClusterFacts()}
        self.living = Living(policy=self.policy, carry=carry or Carry(), facts=facts)
        self.ledger = Ledger()
        self.cycle = 0

    def views(self, machines: list[Machine], needs: list[Need], now: int = NOW) -> NeedViews:
        self.cycle += 1
        plan = self.living.plan(machines, needs, now)
        self.ledger.update(plan, 10.0 * self.cycle)
        return NeedViews(self.cycle, now, plan, self.policy, self.ledger.ages)

    def only(self, machines: list[Machine], asked: Need, now: int = NOW) -> pb.NeedView:
        views = self.views(machines, [asked], now)
        (row,) = views.rows().tolist()
        return views.view(row)


def test_a_met_need_says_what_it_has_and_no_more() -> None:
    asked = need(cpu=12, unit=4)
    machines = [serving("m-1", asked), machine("m-2"), machine("m-3", S.SPECULATIVE)]
    view = World().only(machines, asked)
    assert view.satisfied
    assert (view.claimed_machine_count, view.bootstrap_count, view.provision_count) == (3, 1, 1)
    assert view.unmet_reason == Reason.UNMET_REASON_UNSPECIFIED
    assert not view.HasField("residual_deficit")
    assert not view.HasField("matching_supply")
    assert not view.HasField("preemption")
    assert view.cluster_id == A
    assert view.profile_fingerprint == asked.profile.fingerprint
    assert need_from_proto(view.need, A) == asked


def test_an_unmet_need_says_what_is_missing_and_what_would_match() -> None:
    asked, rival = need(cpu=12, unit=4), need(B, cpu=4, priority=500)
    world = World()
    for age in (1, 2):
        views = world.views([serving("m-1", rival), machine("m-2")], [asked, rival])
        view = views.view(views.rows(A).tolist()[0])
        assert not view.satisfied
        assert dict(view.residual_deficit.resources) == {"cpu": "8"}
        assert view.age_cycles_unmet == age
        assert view.unmet_reason == Reason.UNMET_REASON_PRIORITY_STARVED
        assert (view.matching_supply.idle, view.matching_supply.configured) == (1, 1)


def test_no_matching_machine_is_said() -> None:
    view = World().only([machine("m-1")], need(where=[label("pool", "In", "gpu")]))
    assert view.unmet_reason == Reason.UNMET_REASON_NO_MATCHING_SUPPLY


def test_a_gang_shows_its_domain_and_the_candidates_best_first() -> None:
    machines = [machine(f"a-{n}", rack="r-a") for n in range(3)] + [machine("b-1", rack="r-b")]
    view = World().only(machines, need(cpu=12, unit=4, same=RACK))
    assert (view.satisfied, view.same_domain, view.same_satisfiable) == (True, "r-a", True)
    assert [(c.domain, c.coverage_per_mille, c.satisfiable) for c in view.same_candidates] == [
        ("r-a", 1000, True),
        ("r-b", 333, False),
    ]


def test_a_gang_without_a_place_is_parked_after_eight_ticks() -> None:
    world, asked = World(), need(cpu=12, unit=4, same=RACK)
    machines = [machine("a-1", rack="r-a"), machine("b-1", rack="r-b")]
    first = world.only(machines, asked)
    assert first.unmet_reason == Reason.UNMET_REASON_TOPOLOGY_UNSATISFIABLE
    assert not first.acquisition_parked
    assert not world.only(machines, asked, NOW + 7 * TICK).acquisition_parked
    parked = world.only(machines, asked, NOW + 8 * TICK)
    assert (parked.acquisition_parked, parked.parked_age_cycles) == (True, 1)
    later = world.only(machines, asked, NOW + 10 * TICK)
    assert later.parked_age_cycles == 3


def test_preemption_that_is_not_enough_is_said() -> None:
    low, high = need(B, cpu=4, priority=1), need(cpu=12, unit=4, priority=900)
    views = World().views([serving("m-1", low)], [high, low])
    view = views.view(views.rows(A).tolist()[0])
    assert view.unmet_reason == Reason.UNMET_REASON_PREEMPTION_EXHAUSTED
    assert view.preemption.victims_found == 1
    assert dict(view.preemption.capacity_freed.resources) == {"cpu": "4"}


@pytest.mark.parametrize(
    ("policy", "carry", "reason"),
    [
        (Policy(quotas={("p", "r"): 0}), Carry(), Reason.UNMET_REASON_QUOTA),
        (Policy(spend_limit_micro=0), Carry(), Reason.UNMET_REASON_SPEND_LIMIT),
        (Policy(paused=True), Carry(), Reason.UNMET_REASON_PAUSED),
    ],
)
def test_limits_are_reasons_of_their_own(policy: Policy, carry: Carry, reason: int) -> None:
    machines = [] if policy.paused else [machine("m-1", S.SPECULATIVE)]
    assert World(policy, carry).only(machines, need()).unmet_reason == reason


def test_a_stock_out_and_a_broken_cluster_are_reasons_too() -> None:
    world = World()
    world.only([machine("m-1", S.SPECULATIVE)], need())
    sold_out = machine("m-1", S.SPECULATIVE)
    offering = (sold_out.provider, sold_out.instance_type, sold_out.zone, sold_out.capacity_type)
    world.living.carry = world.living.carry.with_stock_out(offering, NOW)
    assert world.only([sold_out], need()).unmet_reason == Reason.UNMET_REASON_STOCK_OUT
    world.living.facts = {A: ClusterFacts(blocked=True)}
    view = world.only([machine("m-2")], need())
    assert view.unmet_reason == Reason.UNMET_REASON_BOOTSTRAP_ERROR


def test_gangs_that_fit_on_one_machine_are_one_plain_row() -> None:
    gangs = [need(cpu=4, unit=2, same=RACK, group=f"g-{n}") for n in range(3)]
    views = World().views([machine(f"m-{n}", rack="r") for n in range(2)], gangs)
    (row,) = views.rows().tolist()
    view = views.view(row)
    assert dict(view.need.aggregate_resources) == {"cpu": "12"}
    assert dict(view.need.min_unit) == {"cpu": "4"}
    assert not view.need.requirements
    assert view.need.group == ""
    assert view.profile_fingerprint == gangs[0].profile.fingerprint
    assert dict(view.residual_deficit.resources) == {"cpu": "4"}
    assert view.age_cycles_unmet == 1


def test_rows_come_by_priority_then_arrival_then_cluster() -> None:
    rows = [
        replace(need(B, cpu=1, priority=5), arrival_ns=2),
        replace(need(A, cpu=1, priority=5), arrival_ns=2),
        replace(need(B, cpu=1, priority=5, interruption=9), arrival_ns=1),
        replace(need(B, cpu=1, priority=7), arrival_ns=9),
    ]
    views = World().views([], rows)
    seen = [
        (v.need.priority, v.arrival_unix_nanos, v.cluster_id) for v in map(views.view, views.rows())
    ]
    assert seen == [(7, 9, B), (5, 1, B), (5, 2, A), (5, 2, B)]
    assert [views.view(row).cluster_id for row in views.rows(A)] == [A]
    assert len(views.rows("unknown")) == 0


def test_a_header_counts_rows_before_any_limit() -> None:
    views = World().views([], [need(cpu=1, priority=n) for n in range(3)], NOW + SECOND)
    header = views.header(len(views.rows()))
    assert (header.cycle, header.computed_at_unix_nanos, header.total_needs) == (1, NOW + SECOND, 3)

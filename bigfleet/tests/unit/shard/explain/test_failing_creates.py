"""Needs whose Creates fail: shown as unmet, with the cause, and with what is really missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bigfleet.decision import Policy, Reason
from bigfleet.model import LABEL_ZONE, CapacityType, Machine, Need
from bigfleet.model.facts import ClusterFacts
from bigfleet.model.reasons import FAILING_CREATES as FAILING
from bigfleet.model.reasons import WHY as WORDS
from bigfleet.shard.explain.failing_creates import FailingCreates, ShownPlan
from bigfleet.shard.explain.ledger import Ledger
from bigfleet.shard.explain.verdicts import VerdictUpdates
from bigfleet.shard.explain.views import NeedViews
from bigfleet.shard.providers.create_failures import CreateFailure
from bigfleet.shard.providers.create_streaks import Run, Trouble
from bigfleet_api.v1alpha1 import shard_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from living import Living
from worlds import NOW, RACK, A, B, S, label, machine, need, serving

F = CreateFailure
OFFERING = ("p", "t4", "z-1", CapacityType.ON_DEMAND)
OTHER = ("p", "t4", "z-2", CapacityType.ON_DEMAND)


def failing(cause: CreateFailure = F.UNAVAILABLE, *retries: str, habit: bool = True) -> Trouble:
    """Creates of the machines of these tests fail."""
    return Trouble({OFFERING: Run(cause, "Word: said so", habit)}, retries=frozenset(retries))


def slots(count: int, **how: object) -> list[Machine]:
    return [machine(f"s-{n}", S.SPECULATIVE, **how) for n in range(count)]  # type: ignore[arg-type]


class World:
    """A shard of one or more cycles, and what it shows."""

    def __init__(self, policy: Policy | None = None, facts: ClusterFacts | None = None) -> None:
        self.policy = policy or Policy()
        self.living = Living(self.policy, {A: facts or ClusterFacts(), B: ClusterFacts()})
        self.unserved, self.ledger, self.verdicts = FailingCreates(), Ledger(), VerdictUpdates()
        self.cycle = 0

    def told(self, machines: list[Machine], needs: list[Need], trouble: Trouble) -> ShownPlan:
        plan = self.living.plan(machines, needs, NOW)
        ids = list(plan.fleet.ids)
        return self.unserved.shown(plan, trouble, lambda name: ids.index(name))

    def view(self, machines: list[Machine], asked: Need, trouble: Trouble) -> pb.NeedView:
        self.cycle += 1
        plan = self.told(machines, [asked], trouble).plan
        self.ledger.update(plan, 10.0 * self.cycle)
        views = NeedViews(self.cycle, NOW, plan, self.policy, self.ledger.ages)
        (row,) = views.rows().tolist()
        return views.view(row)

    def news(
        self, machines: list[Machine], asked: Need, trouble: Trouble
    ) -> list[shard_pb2.NeedVerdict]:
        told = self.told(machines, [asked], trouble)
        news = self.verdicts.changes(told, {A})
        return [verdict for each in news for verdict in each.message.need_verdicts.verdicts]


CLASSES = pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (F.OUT_OF_CAPACITY, pb.UNMET_REASON_STOCK_OUT),
        (F.QUOTA, pb.UNMET_REASON_QUOTA),
        (F.BAD_REQUEST, pb.UNMET_REASON_STOCK_OUT),
        (F.THROTTLED, pb.UNMET_REASON_STOCK_OUT),
        (F.UNAVAILABLE, pb.UNMET_REASON_STOCK_OUT),
    ],
)


@CLASSES
def test_creates_in_vain_meet_no_need(cause: CreateFailure, reason: int) -> None:
    world, asked = World(), need(cpu=8, unit=4)
    for age in (1, 2):
        view = world.view(slots(10), asked, failing(cause))
        assert (view.satisfied, view.unmet_reason) == (False, reason)
        assert dict(view.residual_deficit.resources) == {"cpu": "8"}
        assert view.age_cycles_unmet == age
        assert (view.claimed_machine_count, view.provision_count) == (2, 2)
        assert view.matching_supply.speculative == 10
    (shortfall,) = world.ledger.reported()
    assert (shortfall.deficit, shortfall.age_cycles) == ({"cpu": 8000}, 2)


@CLASSES
def test_a_cluster_is_told_which_failure_it_is(cause: CreateFailure, reason: int) -> None:
    (verdict,) = World().news(slots(3), need(cpu=8, unit=4), failing(cause))
    assert (verdict.satisfied, verdict.reason) == (False, reason)
    assert verdict.message == f"{FAILING[cause]} (Word: said so); missing cpu 8"


@CLASSES
def test_slots_that_wait_after_a_failure_are_not_a_lack_of_machines(
    cause: CreateFailure, reason: int
) -> None:
    waiting = [*slots(2, excluded=True), machine("f", S.FAILED)]
    for habit in (False, True):
        view = World().view(waiting, need(cpu=8, unit=4), failing(cause, habit=habit))
        assert (view.satisfied, view.unmet_reason) == (False, reason)
        assert view.matching_supply.speculative == 2


@CLASSES
def test_an_offering_that_cools_is_unmet_for_what_made_it_cool(
    cause: CreateFailure, reason: int
) -> None:
    world = World()
    world.living.carry = world.living.carry.with_stock_out(OFFERING, NOW)
    view = world.view(slots(2), need(), failing(cause, habit=False))
    assert (view.satisfied, view.unmet_reason) == (False, reason)


def test_no_two_failures_read_alike() -> None:
    assert len(set(FAILING.values())) == len(CreateFailure)
    assert FAILING.keys() == set(CreateFailure)


def test_where_nothing_fails_the_plan_is_shown_as_it_is() -> None:
    world = World()
    told = world.told(slots(1), [need()], Trouble())
    assert told.plan.verdicts.satisfied.all()
    assert told.run(0) is None


def test_what_is_tried_after_one_failure_counts() -> None:
    assert World().view(slots(3), need(), failing(habit=False)).satisfied


def test_other_offerings_count() -> None:
    elsewhere = [machine("s", S.SPECULATIVE, zone="z-2")]
    assert World().view(elsewhere, need(), failing()).satisfied


def test_a_provider_that_gets_no_creates_now_serves_no_cluster() -> None:
    held = Trouble(held={"p": Run(F.THROTTLED, "Throttled: slow")})
    world = World()
    assert world.view(slots(1), need(), held).unmet_reason == pb.UNMET_REASON_STOCK_OUT
    assert world.view([machine("i")], need(), held).satisfied


def test_retries_do_not_count_and_what_was_begun_before_does() -> None:
    asked = need(cpu=8, unit=4)
    creating = [machine(f"c-{n}", S.CREATING, serves=asked) for n in range(2)]
    world = World()
    assert world.view(creating, asked, failing()).satisfied
    view = world.view(creating, asked, failing(F.UNAVAILABLE, "c-1"))
    assert (view.satisfied, view.unmet_reason) == (False, pb.UNMET_REASON_STOCK_OUT)
    assert dict(view.residual_deficit.resources) == {"cpu": "4"}


def test_a_machine_that_came_counts_whatever_fails_now() -> None:
    asked = need(cpu=4)
    assert World().view([serving("m", asked)], asked, failing(F.QUOTA, "m")).satisfied


def test_what_is_missing_is_what_the_others_leave() -> None:
    asked = need(cpu=10, unit=3)
    machines = [serving("m-1", asked), serving("m-2", asked), *slots(3)]
    view = World().view(machines, asked, failing())
    assert dict(view.residual_deficit.resources) == {"cpu": "2"}


def test_whole_units_are_missing_where_a_need_asks_for_units() -> None:
    asked = need(cpu=9, unit=3)
    machines = [serving("m-1", asked), serving("m-2", asked), *slots(3)]
    view = World().view(machines, asked, failing())
    assert dict(view.residual_deficit.resources) == {"cpu": "3"}


def test_what_daemons_take_serves_no_need() -> None:
    facts = ClusterFacts(overhead={"cpu": 1000})
    asked = need(cpu=7, unit=2)
    machines = [serving("m-1", asked), *slots(3)]
    view = World(facts=facts).view(machines, asked, failing())
    assert dict(view.residual_deficit.resources) == {"cpu": "4"}


def test_gangs_that_fold_into_one_row_miss_whole_gangs() -> None:
    gangs = [need(cpu=4, unit=2, same=RACK, group=f"g-{n}") for n in range(3)]
    told = World().told([machine("m", rack="r"), *slots(2, rack="r")], gangs, failing())
    assert told.plan.missing(0) == {"cpu": 8000}
    assert told.plan.reason(0) is Reason.STOCK_OUT


def test_a_need_that_has_enough_without_them_stays_met() -> None:
    asked = need(cpu=3, unit=1)
    machines = [serving("m", asked, cpu=8), machine("c", S.CREATING, serves=asked)]
    assert World().view(machines, asked, failing(F.UNAVAILABLE, "c")).satisfied


@pytest.mark.parametrize(
    "asked",
    [need(cpu=8, unit=8), need(where=[label(LABEL_ZONE, "In", "z-2")]), need(gpu=1)],
    ids=["too large a unit", "another zone", "a resource it has not"],
)
def test_failures_of_what_could_not_serve_it_are_no_reason(asked: Need) -> None:
    view = World().view(slots(2, excluded=True), asked, failing(F.QUOTA))
    assert view.unmet_reason == pb.UNMET_REASON_NO_MATCHING_SUPPLY


def test_failures_of_what_has_no_slot_left_are_no_reason() -> None:
    rival = need(B, priority=900)
    views = World().told([serving("m", rival)], [need(), rival], failing())
    assert Reason.PRIORITY_STARVED in {views.plan.reason(row) for row in range(2)}


@pytest.mark.parametrize(
    ("policy", "facts", "reason"),
    [
        (Policy(spend_limit_micro=0), ClusterFacts(), pb.UNMET_REASON_SPEND_LIMIT),
        (Policy(quotas={("p", "r"): 0}), ClusterFacts(), pb.UNMET_REASON_QUOTA),
        (Policy(), ClusterFacts(blocked=True), pb.UNMET_REASON_BOOTSTRAP_ERROR),
    ],
)
def test_limits_and_broken_clusters_stay_the_reason(
    policy: Policy, facts: ClusterFacts, reason: int
) -> None:
    view = World(policy, facts).view(slots(2), need(), failing())
    assert view.unmet_reason == reason


def test_of_several_causes_the_one_a_person_can_repair_is_told() -> None:
    both = [machine("a", S.SPECULATIVE, excluded=True)]
    both.append(machine("b", S.SPECULATIVE, zone="z-2", excluded=True))
    trouble = Trouble({OFFERING: Run(F.THROTTLED, ""), OTHER: Run(F.BAD_REQUEST, "")})
    (verdict,) = World().news(both, need(), trouble)
    assert verdict.message == f"{FAILING[F.BAD_REQUEST]}; missing cpu 4"


def test_a_changed_cause_is_told_and_changed_words_are_not() -> None:
    world, asked = World(), need()
    (first,) = world.news(slots(2), asked, failing(F.THROTTLED))
    reworded = Trouble({OFFERING: replace(failing(F.THROTTLED).runs[OFFERING], text="request 7")})
    assert world.news(slots(2), asked, reworded) == []
    (second,) = world.news(slots(2), asked, failing(F.UNAVAILABLE))
    assert first.reason == second.reason
    assert first.message != second.message
    (third,) = world.news(slots(2), asked, Trouble())
    assert third.satisfied


def test_a_stock_out_that_is_not_remembered_keeps_its_words() -> None:
    world = World()
    world.living.carry = world.living.carry.with_stock_out(OFFERING, NOW)
    (verdict,) = world.news(slots(1), need(), Trouble())
    assert verdict.message == f"{WORDS[Reason.STOCK_OUT]}; missing cpu 4"


def test_a_resource_heard_of_since_the_plan_changes_nothing() -> None:
    world = World()
    plan = world.living.plan(slots(2), [need()], NOW)
    plan.fleet.symbols.resources.of("example.com/new")
    told = FailingCreates().shown(plan, failing(), list(plan.fleet.ids).index)
    assert told.plan.missing(0) == {"cpu": 4000}


def test_one_slot_that_fails_does_not_explain_a_fleet_that_is_full() -> None:
    holder, asked = need(B, cpu=12, unit=4, priority=200), need(cpu=40, unit=4)
    full = [serving(f"m-{n}", holder) for n in range(3)]
    plan = World().told([*full, *slots(1)], [asked, holder], failing(F.OUT_OF_CAPACITY)).plan
    assert [plan.reason(row) for row in range(2)] == [Reason.NONE, Reason.PRIORITY_STARVED]


def test_failing_slots_that_would_be_enough_explain_a_need_beside_machines_in_use() -> None:
    holder = need(B, priority=200)
    asked = need(cpu=8, unit=4)
    world = World()
    plan = world.told([serving("m-0", holder), *slots(2)], [holder, asked], failing()).plan
    reasons = {plan.need_of(row): plan.reason(row) for row in range(len(plan.verdicts))}
    assert reasons == {0: Reason.NONE, 1: Reason.STOCK_OUT}

"""Reclaim and release: what no need claims is given back, gently, and owned hardware never."""

import pytest

from bigfleet.decision import ActionKind, Policy
from bigfleet.decision.policy import SECOND
from bigfleet.model import CapacityType
from bigfleet.model.facts import ClusterFacts
from worlds import A, B, S, decide, machine, need, serving

K = ActionKind
GONE = need(group="gone")


def test_what_no_need_claims_is_reclaimed_unhurried() -> None:
    outcome = decide([serving("m-1", GONE)], [need(B, cpu=8)])
    assert outcome.does == {"m-1": K.RECLAIM}
    assert outcome.grace("m-1") == 600


def test_what_another_cluster_can_use_is_handed_over_instead() -> None:
    assert decide([serving("m-1", GONE)], [need(B)]).does == {"m-1": K.PREEMPT}


def test_a_cluster_that_has_not_reported_loses_nothing() -> None:
    silent = {A: ClusterFacts(reported=False)}
    assert decide([serving("m-1", GONE)], [need(B, cpu=8)], facts=silent).does == {}


def test_a_node_marked_do_not_disrupt_is_not_reclaimed() -> None:
    fleet = [serving("m-1", GONE, do_not_disrupt=True), serving("m-2", GONE)]
    assert decide(fleet, [need(B, cpu=8)]).does == {"m-2": K.RECLAIM}


def test_empty_nodes_go_first_then_the_fewest_pods_then_the_costliest() -> None:
    fleet = [
        serving("m-1", GONE, pods=3),
        serving("m-2", GONE),
        serving("m-3", GONE, pods=0),
        serving("m-4", GONE, pods=1, price=2.0),
        serving("m-5", GONE, pods=1, price=5.0),
    ]
    outcome = decide(fleet, [need(B, cpu=8)])
    assert [a.machine for a in outcome.plan] == ["m-3", "m-5", "m-4", "m-1", "m-2"]


@pytest.mark.parametrize(("kind", "hold"), [(CapacityType.SPOT, 60), (CapacityType.ON_DEMAND, 600)])
def test_an_idle_elastic_machine_is_released_when_its_hold_is_over(
    kind: CapacityType, hold: int
) -> None:
    far = need(cpu=64)
    assert decide([machine("m-1", kind=kind, idle_for=hold - 1)], [far]).does == {}
    assert decide([machine("m-1", kind=kind, idle_for=hold)], [far]).does == {"m-1": K.DELETE}


@pytest.mark.parametrize(
    "kind", [CapacityType.BARE_METAL, CapacityType.RESERVED, CapacityType.UNSPECIFIED]
)
def test_owned_and_unspecified_capacity_is_never_released(kind: CapacityType) -> None:
    policy = Policy(spot_release_hold=0, on_demand_release_hold=0)
    fleet = [machine("m-1", kind=kind, idle_for=10**6)]
    assert decide(fleet, [need(cpu=64)], policy).does == {}


def test_an_idle_machine_that_is_reserved_for_an_unmet_need_is_not_released() -> None:
    waiting = need(cpu=8)
    fleet = [machine("m-1", cpu=2, serves=waiting, idle_for=10_000)]
    assert decide(fleet, [waiting]).does == {}
    met = [serving("m-2", waiting, cpu=8), *fleet]
    assert decide(met, [waiting]).does == {"m-1": K.DELETE}


def test_an_idle_machine_made_for_a_cluster_that_has_not_reported_is_not_released() -> None:
    fleet = [machine("m-1", cpu=2, serves=GONE, idle_for=10_000)]
    silent = {A: ClusterFacts(reported=False)}
    assert decide(fleet, [need(B, cpu=8)], facts=silent).does == {}
    assert decide(fleet, [need(B, cpu=8)]).does == {"m-1": K.DELETE}


def test_an_idle_machine_that_is_taken_is_not_released() -> None:
    assert decide([machine("m-1", idle_for=10_000)], [need()]).does == {"m-1": K.BOOTSTRAP}


def test_a_machine_without_an_announced_end_or_need_waits_for_the_hold_like_any_other() -> None:
    policy = Policy(reclaim_hold=30 * SECOND)
    assert decide([serving("m-1", GONE)], [need(B, cpu=8)], policy).does == {}


def test_a_leaving_machine_is_not_reclaimed_twice() -> None:
    fleet = [serving("m-1", GONE, leaving=True), machine("m-2", S.DRAINING, serves=GONE)]
    assert decide(fleet, [need(B, cpu=8)]).does == {}


def test_a_phantom_of_a_need_that_is_gone_is_reclaimed_like_any_excess() -> None:
    fleet = [serving("m-1", GONE, not_ready_for=2000)]
    assert decide(fleet, [need(B, cpu=8)]).does == {"m-1": K.RECLAIM}

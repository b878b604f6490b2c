"""Orders of a plan: reclaims that their cluster may not lose now are counted and not made."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.decision import ActionKind, Engine, Plan, Policy
from bigfleet.decision.carry import Carry
from bigfleet.inventory import Inventory
from bigfleet.model import CapacityType, HostRef, Machine, MachineState
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.facts import ClusterFacts
from bigfleet.shard.act.rails import capped
from bigfleet.shard.decide.orders import beyond_budget, orders_of
from bigfleet.shard.machines.orders import FOR_A_PERSON, FOR_ANOTHER_SHARD, Order, ReclaimCause
from bigfleet_api.v1alpha1 import shard_pb2 as pb

CLUSTERS = ("c-1", "c-2", "c-3")


def surplus(of: list[str]) -> Plan:
    """A plan for machines of these clusters, none of which anybody wants."""
    symbols = Symbols()
    inventory = Inventory(symbols)
    inventory.load(
        Machine(
            f"m-{number}", MachineState.CONFIGURED, HostRef("p", f"h-{number}"), "p", "", cluster,
            "t", "z", CapacityType.ON_DEMAND, resources={"cpu": 4000},
        )
        for number, cluster in enumerate(of)
    )  # fmt: skip
    demand = Demand.of([], dict.fromkeys(CLUSTERS, ClusterFacts()), symbols)
    policy = Policy(reclaim_hold=0)
    return Engine().decide(inventory.snapshot(), demand, policy, Carry(), 1)


@given(
    st.lists(st.sampled_from(CLUSTERS), max_size=20),
    st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, 8)),
)
def test_what_is_left_out_is_what_the_cap_would_hold_back(
    of: list[str], budget: dict[str, int]
) -> None:
    plan = surplus(of)
    beyond = beyond_budget(plan, budget)
    cut = capped(orders_of(plan), budget)
    assert orders_of(plan, beyond) == cut.kept
    assert int(beyond.sum()) == len(cut.held)


def test_without_a_budget_nothing_is_left_out() -> None:
    plan = surplus(["c-1", "c-2"])
    assert not beyond_budget(plan, None).any()
    assert [order.kind for order in orders_of(plan)] == [ActionKind.RECLAIM] * 2


@pytest.mark.parametrize(
    ("kind", "more", "cause"),
    [
        (ActionKind.RECLAIM, {}, ReclaimCause.NOT_NEEDED),
        (ActionKind.PREEMPT, {"is_ending": True}, ReclaimCause.PREEMPTED),
        (ActionKind.RECLAIM, {"is_ending": True}, ReclaimCause.ENDING),
        (ActionKind.RECLAIM, {"final": True, "reason": FOR_A_PERSON}, ReclaimCause.ADMIN),
        (
            ActionKind.RECLAIM,
            {"final": True, "reason": f"{FOR_ANOTHER_SHARD} (priority 7)"},
            ReclaimCause.OTHER_SHARD,
        ),
    ],
)
def test_an_order_knows_why_its_machine_leaves(
    kind: ActionKind, more: dict[str, Any], cause: ReclaimCause
) -> None:
    assert Order(kind, "m-1", "p", "c-1", **more).reclaim_cause is cause


def test_the_wire_has_every_cause_under_the_same_number() -> None:
    for cause in ReclaimCause:
        assert pb.ReclaimReason.Name(cause) == f"RECLAIM_REASON_{cause.name}"  # type: ignore[arg-type]

"""Explanations of small written worlds: what is named, in which words, and what helps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from bigfleet.decision import Carry, Policy
from bigfleet.explanation import Explanation, Situation, explain
from bigfleet.explanation.phrases import change, effect, why
from bigfleet.explanation.supply import SupplyCounts
from bigfleet.model import CapacityType, Machine, Need, Taint
from bigfleet.model.blockers import BLOCKED_BY, REMOVAL, BlockerKind
from bigfleet.model.facts import ClusterFacts
from living import Living
from worlds import NOW, RACK, A, B, S, label, machine, need, serving

GPU = "nvidia.com/gpu"
ARCH = "kubernetes.io/arch"
K = BlockerKind


@dataclass
class World:
    """A decision and what is said about its first unmet need."""

    machines: list[Machine]
    needs: list[Need]
    policy: Policy = field(default_factory=Policy)
    carry: Carry = field(default_factory=Carry)
    blocked: bool = False
    facts: ClusterFacts | None = None
    decisions: int = 0
    most: int = 1_000

    def __post_init__(self) -> None:
        facts = {A: self.facts or ClusterFacts(blocked=self.blocked), B: ClusterFacts()}
        living = Living(policy=self.policy, facts=facts, carry=self.carry)
        self.plan = living.plan(self.machines, self.needs, NOW)
        self.situation = Situation(
            self.plan.fleet, self.plan.demand, self.policy, self.carry, NOW
        ).fork()
        self.engine = living.engine
        self.row = next(r for r in range(len(self.plan.verdicts)) if self.plan.short(r))

    def explain(self) -> Explanation:
        def decide(s: Situation) -> object:
            self.decisions += 1
            return self.engine.decide(s.fleet, s.demand, s.policy, s.carry, s.now)

        return explain(
            self.situation,
            self.plan,
            self.row,
            decide,  # type: ignore[arg-type]
            lambda: self.decisions < self.most,
        )

    def told(self) -> str:
        """Why it is unmet, in words."""
        wanted = self.situation.demand.need(self.plan.need_of(self.row))
        return why(self.explain(), wanted, SupplyCounts(self.situation).total(wanted))

    def remedies(self) -> list[tuple[str, str]]:
        """What would help, and how far it gets, in words."""
        found = self.explain().remedies
        return [(change(t.remedy, self.situation), effect(t)) for t in found]


def kinds(found: Explanation) -> list[BlockerKind]:
    return [blocker.kind for blocker in found.blockers]


def with_gpu(asked: Need) -> Need:
    return replace(asked, aggregate={**asked.aggregate, GPU: 1000})


def test_a_gpu_pod_in_a_fleet_without_gpus_is_told_of_the_gpu_and_not_of_its_arch() -> None:
    asked = with_gpu(need(cpu=4, where=[label(ARCH, "In", "amd64")]))
    world = World([machine(f"m-{i}", labels={ARCH: "amd64"}) for i in range(3)], [asked])
    (blocker,) = world.explain().blockers
    assert (blocker.kind, blocker.dimension) == (K.DIMENSION, GPU)
    assert world.told() == "what it asks of nvidia.com/gpu"
    assert world.remedies() == [("ask for no nvidia.com/gpu", "met")]


def test_a_piece_larger_than_any_machine_is_named_as_such() -> None:
    world = World([machine(f"m-{i}", cpu=8) for i in range(9)], [need(cpu=64)])
    assert kinds(world.explain()) == [K.SIZE]
    assert "(cpu 64)" in world.told()
    assert world.remedies()[0] == ("split it into pieces of at most cpu 8", "met")


def test_a_full_fleet_says_who_holds_it_and_what_would_free_or_add_how_many() -> None:
    rival = need(B, cpu=12, unit=4, priority=500)
    machines = [serving(f"m-{i}", rival) for i in range(3)]
    world = World([*machines], [rival, need(A, cpu=8, unit=4, priority=100)])
    assert kinds(world.explain()) == [K.PRIORITY]
    assert "3 serve priority 500" in world.told()
    assert B not in world.told()
    remedies = dict(world.remedies())
    assert remedies["add 2 machines of type t4 in z-1 (on-demand), with the labels that it asks "
                    "for"] == "met"  # fmt: skip
    assert remedies["raise its priority to 501"] == (
        "met, once 2 machines are drained for it; leaves unmet: 1 need of priority 500"
    )


def test_what_has_some_of_it_is_told_how_much_it_may_ask_for() -> None:
    world = World([machine("m-1"), machine("m-2")], [need(cpu=16, unit=4)])
    assert kinds(world.explain()) == [K.AMOUNT]
    assert "hold cpu 8 together" in world.told()
    assert world.remedies()[0] == ("ask for cpu 8 in all", "met")


def test_a_requirement_and_a_quota_that_only_help_together_are_named_together() -> None:
    asked = need(cpu=8, unit=4, where=[label("pool", "In", "b")])
    machines = [machine(f"m-{i}", S.SPECULATIVE, labels={"pool": "a"}) for i in range(4)]
    world = World(machines, [asked], Policy(quotas={("p", "r"): 1}))
    assert kinds(world.explain()) == [K.REQUIREMENT, K.QUOTA]
    first, effect_of_first = world.remedies()[0]
    assert first == (
        "drop the requirement pool In [b] and raise the shard's quota at p/r to 2 machines"
    )
    assert effect_of_first == "met"


def test_a_gang_in_scattered_racks_is_told_of_its_topology() -> None:
    machines = [machine(f"m-{i}", rack=f"r-{i}") for i in range(3)]
    world = World(machines, [need(cpu=12, unit=4, same=RACK)])
    assert kinds(world.explain()) == [K.TOPOLOGY]
    assert RACK in world.told()


def test_pinned_demand_beside_spot_machines_is_told_of_its_penalty() -> None:
    spot = [machine("m-1", S.SPECULATIVE, kind=CapacityType.SPOT, risk=0.1)]
    world = World(spot, [need(cpu=4, interruption=27)])
    assert kinds(world.explain()) == [K.INTERRUPTION]
    assert world.remedies()[0] == ("set an interruption penalty that is not pinned", "met")


def test_a_stock_out_a_spend_limit_and_a_silent_cluster_are_named() -> None:
    slot = machine("m-1", S.SPECULATIVE)
    offering = ("p", "t4", "z-1", CapacityType.ON_DEMAND)
    out = Carry().with_stock_out(offering, NOW)
    world = World([slot], [need(cpu=4)], carry=out)
    assert kinds(world.explain()) == [K.STOCK_OUT]
    assert world.remedies()[0] == ("wait until t4 in z-1 are in stock again", "met")
    spent = World([slot], [need(cpu=4)], Policy(spend_limit_micro=0))
    assert kinds(spent.explain()) == [K.SPEND_LIMIT]
    assert spent.remedies()[0] == ("raise the spend limit to $1.00 per hour", "met")
    assert kinds(World([slot], [need(cpu=4)], blocked=True).explain()) == [K.BOOTSTRAP]


def test_three_things_at_once_are_more_than_two() -> None:
    asked = with_gpu(need(cpu=64, where=[label("pool", "In", "b")]))
    world = World([machine("m-1", labels={"pool": "a"})] * 1, [asked])
    assert not world.explain().blockers
    assert "more than two" in world.told()


def test_what_there_was_no_time_for_is_counted_and_not_guessed() -> None:
    rival = need(B, cpu=12, unit=4, priority=500)
    needs = [rival, need(A, cpu=8, unit=4, priority=100)]
    machines = [serving(f"m-{i}", rival) for i in range(3)]
    none = World(machines, needs, most=0).explain()
    assert (none.found_in_time, none.blockers, none.remedies) == (False, (), ())
    assert none.not_tried > 0
    some = World(machines, needs, most=2).explain()
    assert kinds(some) == [K.PRIORITY]
    assert len(some.remedies) == 1
    assert some.not_tried > 0


def test_explaining_leaves_the_symbols_of_the_shard_alone() -> None:
    world = World([machine("m-1")], [need(cpu=8, unit=4)])
    before = world.plan.demand.symbols.identity_count
    assert world.explain().remedies
    assert world.plan.demand.symbols.identity_count == before


@pytest.mark.parametrize("kind", [kind for kind in K if kind])
def test_every_kind_has_words_and_a_removal(kind: BlockerKind) -> None:
    assert BLOCKED_BY[kind]
    assert REMOVAL[kind]


def test_a_taint_that_is_not_tolerated_is_named_and_may_be_tolerated() -> None:
    tainted = [replace(machine(f"m-{i}"), taints=(Taint.of(GPU, "present"),)) for i in range(2)]
    world = World(tainted, [need()], facts=ClusterFacts(tolerations_stated=True))
    assert kinds(world.explain()) == [K.TAINT]
    assert world.told() == (
        "machines that are tainted nvidia.com/gpu=present:NoSchedule, not tolerated"
    )
    assert world.remedies()[0] == ("tolerate the taint nvidia.com/gpu=present:NoSchedule", "met")


def test_two_taints_are_two_blockers() -> None:
    both = (Taint.of(GPU, "present"), Taint.of("team", "a", "NoExecute"))
    world = World(
        [replace(machine("m-1"), taints=both)],
        [need()],
        facts=ClusterFacts(tolerations_stated=True),
    )
    assert kinds(world.explain()) == [K.TAINT, K.TAINT]


def test_taints_block_nothing_where_the_cluster_does_not_state_tolerations() -> None:
    tainted = replace(machine("m-1"), taints=(Taint.of(GPU, "present"),))
    assert K.TAINT not in kinds(World([tainted], [need(cpu=64)]).explain())


def test_a_default_architecture_is_named_as_the_requirement_that_it_acts_as() -> None:
    arm = [machine("m-1", labels={ARCH: "arm64"})]
    world = World(arm, [need()], facts=ClusterFacts(default_arch="amd64"))
    assert kinds(world.explain()) == [K.REQUIREMENT]
    assert world.told() == "its requirement kubernetes.io/arch In [amd64]"
    assert world.remedies()[0] == ("drop the requirement kubernetes.io/arch In [amd64]", "met")


@pytest.mark.parametrize(
    "name", ["amd.com/gpu", "aws.amazon.com/neuron", "hugepages-2Mi", "ephemeral-storage"]
)
def test_a_fleet_without_a_resource_is_explained_by_its_name(name: str) -> None:
    wanted = need(cpu=4)
    world = World([machine("m-1")], [replace(wanted, aggregate={**wanted.aggregate, name: 1000})])
    (blocker,) = world.explain().blockers
    assert (blocker.kind, blocker.dimension) == (K.DIMENSION, name)
    assert world.told() == f"what it asks of {name}"

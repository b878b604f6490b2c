"""One fleet that tests of bigfleetctl look at: three shards, one of them away and one paused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shardread_pb2 as read
from ctlfleet import (
    NOW,
    SECOND,
    CannedCoordinator,
    CannedShard,
    deaf,
    entry,
    machine,
    serving,
    status,
)

ZONE = "topology.kubernetes.io/zone"
_Operator = capacity.NodeSelectorRequirement


@dataclass(frozen=True)
class World:
    """Everybody, and the words that make bigfleetctl ask them."""

    coordinator: CannedCoordinator
    one: CannedShard
    two: CannedShard
    at: tuple[str, str]
    one_at: tuple[str, str]


@contextmanager
def world() -> Iterator[World]:
    """The fleet, running."""
    with ExitStack() as stack:
        one, two = shard_one(), shard_two()
        coordinator = CannedCoordinator()
        one_at = stack.enter_context(serving(one))
        two_at = stack.enter_context(serving(two))
        coordinator.shards = [
            entry("s-1", one_at),
            entry("s-2", two_at),
            entry("s-3", stack.enter_context(deaf()), seconds_ago=240),
        ]
        fill(coordinator)
        address = stack.enter_context(serving(coordinator))
        yield World(coordinator, one, two, ("--coordinator", address), ("--shard-addr", one_at))


def resources(**amounts: str) -> provider.Resources:
    """A vector."""
    return provider.Resources(resources=amounts)


def wish(key: str, operator: str, *values: str) -> capacity.NodeSelectorRequirement:
    """A requirement."""
    number = _Operator.Operator.Value(f"OPERATOR_{operator}")
    return _Operator(key=key, operator=number, values=values)


def need(cluster: str, priority: int, cpu: str, *wishes: _Operator) -> read.NeedView:
    """A need that is met."""
    return read.NeedView(
        need=capacity.CapacityNeed(
            requirements=wishes,
            aggregate_resources={"cpu": cpu, "memory": "64Gi"},
            min_unit={"cpu": "2", "memory": "8Gi"},
            priority=priority,
        ),
        cluster_id=cluster,
        arrival_unix_nanos=NOW - 600 * SECOND,
        profile_fingerprint=f"fp-{cluster}-{priority}",
        satisfied=True,
        claimed_machine_count=4,
    )


def unmet(view: read.NeedView, reason: str, age: int, **missing: str) -> read.NeedView:
    """The same need, unmet."""
    view.satisfied = False
    view.unmet_reason = read.UnmetReason.Value(f"UNMET_REASON_{reason}")
    view.age_cycles_unmet = age
    view.residual_deficit.CopyFrom(resources(**missing))
    return view


def explained(view: read.NeedView, why: str, *remedies: tuple[str, str]) -> read.NeedView:
    """The same need with what its shard found; a remedy is a change and its effect."""
    view.explanation.why = why
    for change, effect in remedies:
        view.explanation.remedies.add(change=change, effect=effect, met=effect == "met")
    return view


def shard_one() -> CannedShard:
    """A shard at work that lacks some things."""
    zoned = unmet(
        need("shop", 1000, "16", wish(ZONE, "IN", "eu-1c"), wish("pool", "IN", "gpu", "big")),
        *("NO_MATCHING_SUPPLY", 14),
        cpu="8",
    )
    zoned.claimed_machine_count = 0
    explained(
        *(zoned, f"its requirement {ZONE} In [eu-1c]"),
        (f"drop the requirement {ZONE} In [eu-1c]", "met"),
        ("add 4 machines of type g.huge in eu-1c (on-demand), with the labels that it asks", "met"),
    )
    zoned.explanation.blockers.add(
        kind=read.BlockerKind.BLOCKER_KIND_REQUIREMENT, detail=f"{ZONE} In [eu-1c]"
    )
    zoned.explanation.not_tried = 2
    gang = unmet(
        need("lab", 500, "64", wish("rack", "SAME")), "TOPOLOGY_UNSATISFIABLE", 3, cpu="64"
    )
    gang.claimed_machine_count = 0
    gang.need.group = "train-1"
    gang.matching_supply.MergeFrom(read.MatchingSupply(idle=2, configured=9, speculative=5))
    gang.acquisition_parked, gang.parked_age_cycles = True, 2
    gang.same_candidates.add(domain="r-7", coverage_per_mille=666)
    gang.same_candidates.add(domain="r-2", coverage_per_mille=500)
    explained(gang, "not found in the time there is").explanation.incomplete = True
    starved = unmet(need("lab", 10, "32"), "PREEMPTION_EXHAUSTED", 8, cpu="4")
    starved.provision_count = 1
    starved.matching_supply.MergeFrom(read.MatchingSupply(configured=40, capped=True))
    starved.preemption.victims_found = 2
    starved.preemption.capacity_freed.CopyFrom(resources(cpu="8"))
    explained(
        *(starved, "its priority: the machines that match serve needs of equal or higher priority"),
        ("raise its priority to 101", "30 of 32 cpu; leaves unmet: 2 needs of priority 100"),
    )
    return CannedShard(
        status("s-1", ["lab", "shop"], rails=["spend limit: $100.00/h of elastic capacity"]),
        machines=[
            machine("m-1", "CONFIGURED", 1.25, cluster="shop", host="i-1"),
            machine("m-2", "CONFIGURED", 1.25, cluster="old", host="i-2"),
            machine("m-3", "IDLE", 0.5, host="i-3"),
            machine("m-4", "SPECULATIVE", 0.75, instance_type="g.huge"),
            machine("m-5", "FAILED", 2.0, error="bootstrap: node never joined", host="i-5"),
            machine("m-6", "FAILED", 2.0, error="quota: none left"),
        ],
        header=read.InspectNeedsHeader(cycle=412, computed_at_unix_nanos=NOW - 4 * SECOND),
        needs=[zoned, need("shop", 700, "8"), gang, starved],
        decisions=[decisions()],
    )


def shard_two() -> CannedShard:
    """A paused shard without its provider."""
    return CannedShard(
        status(
            *("s-2", ["mail"]),
            reachable=False,
            paused=True,
            pause_reason="network work",
            rails=["paused: network work"],
        ),
        machines=[machine("n-1", "CREATING", 3.0), machine("n-2", "DRAINING", 1.0, cluster="mail")],
        header=read.InspectNeedsHeader(cycle=412, computed_at_unix_nanos=NOW - 9 * SECOND),
        needs=[need("mail", 100, "4")],
    )


def decisions() -> list[read.Decision]:
    """Three of them."""
    return [
        read.Decision(
            cycle=412,
            unix_nanos=NOW - 5 * SECOND,
            kind="Bootstrap",
            machine_id="m-3",
            cluster_id="shop",
            profile_fingerprint="fp-shop-1000",
            reason="an idle machine fits",
            cost_per_hour=0.5,
        ),
        read.Decision(
            cycle=412,
            unix_nanos=NOW - 4 * SECOND,
            kind="Preempt",
            machine_id="m-2",
            cluster_id="lab",
            reason="a more important need",
        ),
        read.Decision(
            cycle=413,
            unix_nanos=NOW,
            kind="Bootstrap",
            machine_id="m-3",
            cluster_id="shop",
            cost_per_hour=0.5,
            outcome="success",
        ),
    ]


def fill(coordinator: CannedCoordinator) -> None:
    """What the coordinator knows besides its shards."""
    since = NOW - 2 * 3600 * SECOND
    coordinator.clusters = [
        pb.ClusterBinding(cluster_id="lab", shard_id="s-1", bound_at_unix_ns=since),
        pb.ClusterBinding(cluster_id="mail", shard_id="s-1", bound_at_unix_ns=since),
        pb.ClusterBinding(cluster_id="old", shard_id="s-1", bound_at_unix_ns=since),
        pb.ClusterBinding(cluster_id="shop", shard_id="s-1", bound_at_unix_ns=since),
    ]
    coordinator.domains = [
        pb.DomainAssignment(shard_id="s-1", topology_key=ZONE, topology_value="eu-1a"),
        pb.DomainAssignment(shard_id="s-2", topology_key=ZONE, topology_value="eu-1b"),
    ]
    coordinator.quotas = [
        pb.QuotaAllocation(provider="aws", region="eu-1", per_shard={"s-2": 300, "s-1": 1500})
    ]
    coordinator.providers = [
        pb.ProviderEntry(name="aws", address="aws:9001", region="eu-1"),
        pb.ProviderEntry(name="metal", address="metal:9001", shards=["s-1"]),
    ]
    coordinator.reports = [
        pb.ShardReportSnapshot(
            shard_id="s-1",
            cycle=77,
            received_at_unix_ns=NOW - 3 * SECOND,
            summary=pb.ShardSummary(
                total_machines=6,
                free_machines=2,
                per_instance_type_counts={"m.large": 5, "g.huge": 1},
                per_zone_counts={"eu-1a": 6},
                provider_address="aws:9001",
            ),
            shortfalls=[
                pb.Shortfall(
                    deficit=resources(cpu="8"),
                    priority=1000,
                    age_cycles=14,
                    cluster_ids=["shop"],
                    profile_fingerprint="fp-shop-1000",
                    interruption_penalty_bucket=capacity.PENALTY_BUCKET_4,
                ),
                pb.Shortfall(
                    deficit=resources(cpu="64"),
                    priority=500,
                    age_cycles=3,
                    cluster_ids=["lab"],
                    topology_constrained=True,
                ),
            ],
        ),
    ]
    coordinator.instructions = [
        pb.PendingInstruction(
            shard_id="s-2",
            instruction=pb.CoordinatorInstruction(
                coordinator_term=9,
                sequence_number=5,
                instruction_id="i-5",
                transfer_ownership=pb.TransferOwnership(
                    machine_ids=["n-1"], from_shard_id="s-2", to_shard_id="s-1"
                ),
            ),
            tries=2,
            last_outcome=pb.InstructAck.OUTCOME_FAILED,
            last_reason="the machine is not Idle",
            enqueued_at_unix_ns=NOW - 90 * SECOND,
        ),
        pb.PendingInstruction(
            shard_id="s-3",
            instruction=pb.CoordinatorInstruction(
                coordinator_term=9,
                sequence_number=6,
                instruction_id="i-6",
                assign_domain=pb.AssignDomain(topology_key=ZONE, topology_value="eu-1c"),
            ),
            enqueued_at_unix_ns=NOW - 10 * SECOND,
        ),
    ]
    coordinator.moves = [
        pb.Move(
            id="mv-1",
            tier=pb.Move.TIER_IDLE,
            donor="s-2",
            recipient="s-1",
            machine_ids=["n-1", "n-2", "n-3"],
            count=3,
            phase="donor_released",
            created_unix_ns=NOW - 60 * SECOND,
            updated_unix_ns=NOW - 20 * SECOND,
            reason="cpu 8 for shop",
        ),
        pb.Move(
            id="mv-0",
            tier=pb.Move.TIER_PREEMPT,
            donor="s-1",
            recipient="s-2",
            count=1,
            phase="abandoned",
            updated_unix_ns=NOW - 7200 * SECOND,
            reason="the donor had none",
        ),
    ]

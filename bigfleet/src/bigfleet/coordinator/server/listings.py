"""What a coordinator knows, as lists on the wire, in the orders the contract promises."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.reports.assignments import provider_to_proto
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet.coordinator.state import Move, Tier
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

_AT_ONCE: Final = 5_000
"""Entries made before others get their turn: a hundred thousand domains take half a second."""
_TIERS: Final = {
    Tier.IDLE: pb.Move.TIER_IDLE,
    Tier.QUOTA: pb.Move.TIER_QUOTA,
    Tier.PREEMPT: pb.Move.TIER_PREEMPT,
}


def shards(leader_state: LeaderState) -> pb.ListShardsResponse:
    """By id."""
    return pb.ListShardsResponse(
        shards=[
            pb.ShardRegistryEntry(
                shard_id=shard_id,
                address=shard.address,
                registered_at_unix_ns=shard.registered_at,
                last_heartbeat_unix_ns=leader_state.reports.heartbeat_at(shard_id),
            )
            for shard_id, shard in sorted(leader_state.state.shards.items())
        ]
    )


async def domains(leader_state: LeaderState) -> pb.ListDomainAssignmentsResponse:
    """By shard, then key, then value; as they were when it was asked."""
    of_shard = {
        shard: tuple(leader_state.state.domains_of(shard))
        for shard in sorted(leader_state.state.shards)
    }
    answer = pb.ListDomainAssignmentsResponse()
    for shard, unsorted in of_shard.items():
        ordered = sorted(unsorted)
        for begin in range(0, len(ordered), _AT_ONCE):
            answer.assignments.extend(
                pb.DomainAssignment(topology_key=key, topology_value=value, shard_id=shard)
                for key, value in ordered[begin : begin + _AT_ONCE]
            )
            await asyncio.sleep(0)
    return answer


def clusters(leader_state: LeaderState) -> pb.ListClustersResponse:
    """By cluster id."""
    return pb.ListClustersResponse(
        clusters=[
            pb.ClusterBinding(
                cluster_id=cluster, shard_id=binding.shard, bound_at_unix_ns=binding.bound_at
            )
            for cluster, binding in sorted(leader_state.state.clusters.items())
        ]
    )


def quotas(leader_state: LeaderState) -> pb.ListQuotasResponse:
    """By provider, then region."""
    return pb.ListQuotasResponse(
        allocations=[
            pb.QuotaAllocation(provider=provider, region=region, per_shard=slices)
            for (provider, region), slices in sorted(leader_state.state.quotas.items())
        ]
    )


def providers(leader_state: LeaderState) -> pb.ListProvidersResponse:
    """By name."""
    known = sorted(leader_state.state.providers.items())
    return pb.ListProvidersResponse(providers=[provider_to_proto(one) for _, one in known])


def reports(leader_state: LeaderState, shard_id: str) -> pb.ListShardReportsResponse:
    """By shard id; of one shard where it is named."""
    return pb.ListShardReportsResponse(
        reports=[_report(one) for one in leader_state.reports if shard_id in ("", one.shard_id)]
    )


def instructions(leader_state: LeaderState, shard_id: str) -> pb.ListInstructionsResponse:
    """By shard, then sequence number."""
    return pb.ListInstructionsResponse(
        instructions=[
            pb.PendingInstruction(
                shard_id=one.shard_id,
                instruction=one.instruction,
                tries=one.tries,
                last_outcome=one.last_outcome,
                last_reason=one.last_reason,
                enqueued_at_unix_ns=one.enqueued_at,
            )
            for one in leader_state.instructions
            if shard_id in ("", one.shard_id)
        ]
    )


def moves(known: Iterable[Move], include_done: bool) -> pb.ListMovesResponse:
    """In the order they are given; those that are over only where they are asked for."""
    return pb.ListMovesResponse(
        moves=[_move(move) for move in known if include_done or not move.phase.is_over]
    )


def _report(received: ReceivedReport) -> pb.ShardReportSnapshot:
    snapshot = pb.ShardReportSnapshot(
        shard_id=received.shard_id,
        cycle=received.cycle,
        received_at_unix_ns=received.summary_at,
        summary=received.summary,
        shortfalls=received.shortfalls,
    )
    for shortfall in snapshot.shortfalls:
        shortfall.ClearField("requirements")
    return snapshot


def _move(move: Move) -> pb.Move:
    return pb.Move(
        id=move.id,
        tier=_TIERS[move.tier],
        donor=move.donor,
        recipient=move.recipient,
        machine_ids=move.machine_ids,
        count=move.count,
        phase=move.phase.value,
        created_unix_ns=move.created_at,
        updated_unix_ns=move.updated_at,
        reason=move.reason,
    )

"""Asks everybody for `status`: coordinators, then all shards at once.

That a process does not answer is a fact like any other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bigfleet.cli.ctl.calls.fleet_client import Fleet, ShardLine, each
from bigfleet.cli.ctl.calls.refusals import PeerCallError
from bigfleet.cli.ctl.coordinators.rebalancing import instruction_words
from bigfleet.cli.ctl.render.formats import title
from bigfleet.cli.ctl.status.overview import (
    FailingInstruction,
    MachineCounts,
    MissingDemand,
    Overview,
    Provider,
    Replica,
    ReplicaRole,
    ShardLook,
)
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2 as read_pb

_STATES = provider_pb2.MachineState
_COSTING = [
    state
    for state in _STATES.values()
    if state not in (_STATES.MACHINE_STATE_UNSPECIFIED, _STATES.MACHINE_STATE_SPECULATIVE)
]
_SAME = capacity_pb2.NodeSelectorRequirement.OPERATOR_SAME


async def collect(fleet: Fleet, now: int) -> Overview:
    """The fleet as it is."""
    if not fleet.has_coordinator:
        return await _of_shards(fleet, now)
    coordinator = fleet.coordinator
    registered = await coordinator.call(lambda s: s.ListShards, pb.ListShardsRequest())
    clusters = await coordinator.call(lambda s: s.ListClusters, pb.ListClustersRequest())
    reports = await coordinator.call(lambda s: s.ListShardReports, pb.ListShardReportsRequest())
    orders = await coordinator.call(lambda s: s.ListInstructions, pb.ListInstructionsRequest())
    moves = await coordinator.call(lambda s: s.ListMoves, pb.ListMovesRequest())
    lines = [fleet.line(entry.address, entry.shard_id) for entry in registered.shards]
    looks, replicas = await asyncio.gather(
        _look_at_all(lines, {e.shard_id: e.last_heartbeat_unix_ns for e in registered.shards}),
        _replicas(fleet),
    )
    return Overview(
        now=now,
        replicas=replicas,
        shards=looks,
        shortfalls=_sorted(
            MissingDemand(
                report.shard_id,
                tuple(shortfall.cluster_ids),
                shortfall.priority,
                dict(shortfall.deficit.resources),
                shortfall.age_cycles,
                shortfall.topology_constrained,
            )
            for report in reports.reports
            for shortfall in report.shortfalls
        ),
        bindings={entry.cluster_id: entry.shard_id for entry in clusters.clusters},
        moves=len(moves.moves),
        waiting=tuple(
            FailingInstruction(
                entry.shard_id,
                instruction_words(entry.instruction),
                entry.tries,
                entry.last_reason,
            )
            for entry in orders.instructions
            if entry.tries
        ),
    )


async def _of_shards(fleet: Fleet, now: int) -> Overview:
    """Shards that were named by address, and no others."""
    lines = await fleet.shards()
    looks = await _look_at_all(lines, {})
    replies = await each(lines, _shortfalls)
    for one in replies:
        if one.trouble is not None and len(replies) == 1:
            raise one.trouble
    names = {line.peer.title: look.shard for line, look in zip(lines, looks, strict=True)}
    shortfalls = [
        replace(shortfall, shard=names[one.peer.title])
        for one in replies
        for shortfall in one.answer or ()
    ]
    return Overview(now=now, shards=looks, shortfalls=_sorted(shortfalls))


async def _replicas(fleet: Fleet) -> tuple[Replica, ...]:
    """What each coordinator that was named says of itself; the leader is among them."""
    coordinator = fleet.coordinator

    async def look(address: str) -> Replica:
        if address == coordinator.leader:
            return Replica(address, ReplicaRole.LEADS)
        try:
            await coordinator.ask(address, lambda s: s.ListShards, pb.ListShardsRequest())
        except PeerCallError as error:
            role = ReplicaRole.FOLLOWS if error.not_leader else ReplicaRole.SILENT
            return Replica(address, role, "" if error.not_leader else str(error))
        return Replica(address, ReplicaRole.LEADS)

    named = dict.fromkeys((coordinator.leader, *coordinator.addresses))
    return tuple(await asyncio.gather(*(look(address) for address in named)))


async def _look_at_all(
    lines: Sequence[ShardLine], last_report_ns: dict[str, int]
) -> tuple[ShardLook, ...]:
    replies = await each(lines, _look)
    looks: list[ShardLook] = []
    for one in replies:
        heard_ns = last_report_ns.get(one.peer.name) if last_report_ns else None
        if one.answer is not None:
            status, counted = one.answer
            looks.append(_shard(one.peer.address, heard_ns, status, counted))
        else:
            looks.append(ShardLook(one.peer.title, one.peer.address, heard_ns, str(one.trouble)))
    return tuple(looks)


async def _look(line: ShardLine) -> tuple[read_pb.ShardStatus, MachineCounts]:
    status = await line.call(line.admin.GetStatus, read_pb.GetStatusRequest())
    return status, await _count(line)


async def _count(line: ShardLine) -> MachineCounts:
    """Machines with a host, and their price."""
    states: Counter[str] = Counter()
    clusters: set[str] = set()
    dollars, trouble = 0.0, ""
    try:
        request = read_pb.ListMachinesRequest(states=_COSTING)
        async for batch in line.stream(line.read.ListMachines, request):
            for machine in batch.machines:
                states[title(_STATES.Name, machine.state, "MACHINE_STATE_")] += 1
                clusters.add(machine.cluster)
                # One that failed before it had a host costs nothing.
                if machine.state != _STATES.MACHINE_STATE_FAILED or machine.host.ref:
                    dollars += machine.price_per_hour
    except PeerCallError as error:
        trouble = str(error)
    return MachineCounts(dict(states), dollars, trouble, frozenset(clusters))


async def _shortfalls(line: ShardLine) -> list[MissingDemand]:
    """Unmet demand of a shard that has no coordinator to report it to."""
    return [
        MissingDemand(
            line.peer.title,
            (frame.need.cluster_id,),
            frame.need.need.priority,
            dict(frame.need.residual_deficit.resources),
            frame.need.age_cycles_unmet,
            any(r.operator == _SAME for r in frame.need.need.requirements),
        )
        async for frame in line.stream(line.read.InspectNeeds, read_pb.InspectNeedsRequest())
        if frame.HasField("need") and not frame.need.satisfied
    ]


def _sorted(shortfalls: Iterable[MissingDemand]) -> tuple[MissingDemand, ...]:
    return tuple(
        sorted(
            shortfalls,
            key=lambda shortfall: (-shortfall.priority, -shortfall.age_cycles, shortfall.shard),
        )
    )


def _shard(
    address: str, heard_ns: int | None, status: read_pb.ShardStatus, counted: MachineCounts
) -> ShardLook:
    return ShardLook(
        shard=status.shard_id,
        address=address,
        heard_ns=heard_ns,
        epoch=status.epoch,
        cycle=status.cycle,
        paused=status.paused,
        pause_reason=status.pause_reason,
        dry_run=status.dry_run,
        sessions=tuple(status.sessions),
        providers=tuple(
            Provider(p.name, p.reachable, p.machines, p.last_error) for p in status.providers
        ),
        rails=tuple(status.rails),
        counted=counted,
    )

"""Reads of the coordinator: finds the leader and reads from it; probes the other replicas.

A replica that does not lead names the leader and is followed, at most three times; without a name
the other addresses are tried.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import grpc
import grpc.aio

from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from bigfleet_dashboard.errors import SourceError
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.state.coordinator import CoordinatorView, Replica

MOST_HOPS: Final = 3
_SECONDS: Final = 4.0
_LOOK_SECONDS: Final = 1.0
"""For a replica that is only looked at: the answer of the leader waits for it."""


class CoordinatorReads:
    """The coordinators of a fleet."""

    def __init__(self, channels: Channels, addresses: Sequence[str]) -> None:
        self._channels, self._addresses = channels, tuple(addresses)
        self._leader = addresses[0]

    async def read(self, now: float) -> CoordinatorView:
        """Everything the leader says."""
        began = time.monotonic()
        leader, shards, replicas = await self._find()
        stub = rpc.CoordinatorStub(self._channels.to(leader))
        try:
            reports, domains, quotas, providers = await asyncio.gather(
                stub.ListShardReports(pb.ListShardReportsRequest(), timeout=_SECONDS),
                stub.ListDomainAssignments(pb.ListDomainAssignmentsRequest(), timeout=_SECONDS),
                stub.ListQuotas(pb.ListQuotasRequest(), timeout=_SECONDS),
                stub.ListProviders(pb.ListProvidersRequest(), timeout=_SECONDS),
            )
            clusters, waiting, moves = await asyncio.gather(
                stub.ListClusters(pb.ListClustersRequest(), timeout=_SECONDS),
                stub.ListInstructions(pb.ListInstructionsRequest(), timeout=_SECONDS),
                stub.ListMoves(pb.ListMovesRequest(include_done=True), timeout=_SECONDS),
            )
        except grpc.aio.AioRpcError as error:
            raise SourceError(error_text(error)) from error
        return CoordinatorView(
            at_seconds=now,
            leader=leader,
            replicas=replicas,
            shards=tuple(shards.shards),
            reports={report.shard_id: report for report in reports.reports},
            domains=tuple(domains.assignments),
            quotas=tuple(quotas.allocations),
            providers=tuple(providers.providers),
            bindings={binding.cluster_id: binding for binding in clusters.clusters},
            instructions=tuple(waiting.instructions),
            moves=tuple(moves.moves),
            call_ms=(time.monotonic() - began) * 1000,
        )

    async def _find(self) -> tuple[str, pb.ListShardsResponse, tuple[Replica, ...]]:
        """The leader, its shards, and how every replica was met on the way."""
        met: dict[str, Replica] = {}
        waiting = [self._leader, *(a for a in self._addresses if a != self._leader)]
        hops = 0
        while waiting:
            address = waiting.pop(0)
            if address in met:
                continue
            stub = rpc.CoordinatorStub(self._channels.to(address))
            try:
                shards = await stub.ListShards(pb.ListShardsRequest(), timeout=_SECONDS)
            except grpc.aio.AioRpcError as error:
                hint = _leader_named(error)
                met[address] = _refusing(address, error)
                if hint and hops < MOST_HOPS:
                    hops += 1
                    waiting.insert(0, hint)
                continue
            self._leader = address
            met[address] = Replica(address, "leader")
            others = [a for a in self._addresses if a not in met]
            looked_at = await asyncio.gather(*map(self._look, others))
            return address, shards, (*met.values(), *looked_at)
        silent = "; ".join(f"{r.address}: {r.text}" for r in met.values())
        raise SourceError(f"no coordinator leads: {silent}")

    async def _look(self, address: str) -> Replica:
        """How a replica is that is not needed for an answer."""
        stub = rpc.CoordinatorStub(self._channels.to(address))
        try:
            await stub.ListShards(pb.ListShardsRequest(), timeout=_LOOK_SECONDS)
        except grpc.aio.AioRpcError as error:
            return _refusing(address, error)
        return Replica(address, "leader")


def _refusing(address: str, error: grpc.aio.AioRpcError) -> Replica:
    follows = error.code() is grpc.StatusCode.FAILED_PRECONDITION
    return Replica(address, "follower" if follows else "silent", error_text(error))


def error_text(error: grpc.aio.AioRpcError) -> str:
    """A failed call in one line."""
    code = error.code()
    first = (error.details() or "").splitlines()
    return f"{code.name}: {first[0][:200]}" if first else code.name


def _leader_named(error: grpc.aio.AioRpcError) -> str:
    for key, value in error.trailing_metadata() or ():
        if key == "bigfleet-leader":
            return value.decode() if isinstance(value, bytes) else str(value)
    return ""

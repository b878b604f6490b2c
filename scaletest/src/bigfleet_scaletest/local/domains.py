"""Gives every shard the machines of its own provider, by the domain that is their label."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, Final

import bigfleet.wire.grpc_env  # noqa: F401 - before grpc

# isort: split
import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from bigfleet_scaletest.local.layout import LocalLayout
from bigfleet_scaletest.provider.offerings import SHARD_DOMAIN

PROBE_EVERY_SECONDS: Final = 10.0
_PROBE_KEY: Final = "scaletest.bigfleet/probe"
_CALL_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.2


async def assign_domains(layout: LocalLayout) -> None:
    """Try until a leader has taken every domain; shards register with their first report."""
    for shard in layout.shards:
        request = pb.AssignDomainRequest(
            topology_key=SHARD_DOMAIN, topology_value=shard.name, shard_id=shard.name
        )
        while not await assigned(layout, request, _CALL_SECONDS):  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE_SECONDS)


async def write_probes(layout: LocalLayout) -> None:
    """A write now and then until cancelled, so that the share of failed writes can be measured."""
    for number in itertools.count():
        await asyncio.sleep(PROBE_EVERY_SECONDS)
        await assigned(layout, probe(layout, f"load-{number}"), _CALL_SECONDS)


def probe(layout: LocalLayout, value: str) -> pb.AssignDomainRequest:
    """A domain that no machine has, for a shard that exists."""
    return pb.AssignDomainRequest(
        topology_key=_PROBE_KEY, topology_value=value, shard_id=layout.shards[0].name
    )


async def assigned(layout: LocalLayout, request: pb.AssignDomainRequest, seconds: float) -> bool:
    """Whether one of the replicas commits the write."""
    for replica in layout.coordinators:
        async with open_channel(replica.service, None) as channel:
            stub: Any = rpc.CoordinatorStub(channel)
            try:
                await stub.AssignDomain(request, timeout=seconds)
            except grpc.aio.AioRpcError:
                continue
            return True
    return False

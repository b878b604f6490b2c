"""Which processes answer: the coordinator, its shards, shards' providers, and named addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bigfleet.cli.doctor.findings import Finding, fine, note, wrong
from bigfleet.provider import ProviderSite
from bigfleet.wire.channel import open_channel
from bigfleet.wire.tls_diagnosis import shortly
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc, shardread_pb2, shardread_pb2_grpc
from bigfleet_base.addresses import AddressError, shard_address

_SECONDS: Final = 4.0


async def look_at_fleet(
    coordinators: Sequence[str],
    shards: Sequence[str],
    providers: Sequence[ProviderSite],
    credentials: grpc.ChannelCredentials | None,
) -> AsyncIterator[Finding]:
    """Everybody named, and whom they name."""
    known = dict.fromkeys(shards, "")
    led = False
    for address in coordinators:
        async with open_channel(address, credentials) as channel:
            stub = coordinator_pb2_grpc.CoordinatorStub(channel)
            try:
                answer = await stub.ListShards(pb.ListShardsRequest(), timeout=_SECONDS)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
                    yield fine("Coordinator", f"{address} follows")
                else:
                    yield wrong(
                        "Coordinator", f"{address}: {failure_text(error)}", remedy_of(error)
                    )
                continue
        led = True
        count = len(answer.shards)
        shards = "1 shard" if count == 1 else f"{count} shards"
        yield fine("Coordinator", f"{address} leads {shards}")
        if not answer.shards:
            remedy = "start one with `bigfleet shard --coordinator-addr ...`"
            yield wrong("Shards", "none has registered, so nothing is decided", remedy)
        for entry in answer.shards:
            try:
                address = shard_address(entry.shard_id, entry.address, "--shard")
            except AddressError as error:
                what, _, remedy = str(error).partition(": ")
                yield wrong(f"Shard {entry.shard_id}", what, remedy)
            else:
                known.setdefault(address, entry.shard_id)
    if coordinators and not led:
        remedy = "start one that can reach its store; shards keep deciding meanwhile"
        yield wrong("Leader", "no coordinator leads", remedy)
    for address in known:
        async for finding in look_at_shard(address, credentials):
            yield finding
    for site in providers:
        yield await look_at_provider(site, credentials)


async def look_at_shard(
    address: str, credentials: grpc.ChannelCredentials | None
) -> AsyncIterator[Finding]:
    """How one shard is, and its providers."""
    async with open_channel(address, credentials) as channel:
        stub = shardread_pb2_grpc.ShardAdminStub(channel)
        try:
            status = await stub.GetStatus(shardread_pb2.GetStatusRequest(), timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            yield wrong("Shard", f"{address}: {failure_text(error)}", remedy_of(error))
            return
    name = f"Shard {status.shard_id}"
    if status.paused:
        yield note(
            name, f"paused: {status.pause_reason or 'no reason given'}", "bigfleetctl resume"
        )
    elif not status.cycle:
        yield note(name, "has not decided yet: it waits for providers and operators")
    else:
        sessions = len(status.sessions)
        yield fine(name, f"cycle {status.cycle:,}, {sessions} clusters connected")
    if not status.providers:
        remedy = "bigfleetctl register-provider NAME HOST:PORT, or --provider-addr of the shard"
        yield wrong(name, "has no provider: it can create no machine", remedy)
    for provider in status.providers:
        about = f"Provider {provider.name}"
        if provider.reachable:
            yield fine(about, f"{provider.machines:,} machines at {provider.address}")
        else:
            why = shortly(*provider.last_error.partition(": ")[::2]) or "no detail"
            text = f"not reachable by {status.shard_id}: {why}"
            yield wrong(about, text, f"check that it runs at {provider.address}")


async def look_at_provider(
    site: ProviderSite, credentials: grpc.ChannelCredentials | None
) -> Finding:
    """Whether a provider that is named answers."""
    about = "Provider" if site.name == site.address else f"Provider {site.name}"
    async with open_channel(site.address, credentials) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            return wrong(about, f"{site.address}: {failure_text(error)}", remedy_of(error))
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return fine(about, f"{site.address} serves")
    return wrong(about, f"{site.address} does not serve yet", "see its /readyz, and its log")


def failure_text(error: grpc.aio.AioRpcError) -> str:
    """A failed call in one line."""
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"no answer within {_SECONDS:g} s"
    return shortly(error.code().name, error.details() or "")


def remedy_of(error: grpc.aio.AioRpcError) -> str:
    """What is usually the matter."""
    match error.code():
        case grpc.StatusCode.PERMISSION_DENIED:
            return "use a certificate whose identity is bigfleet://readonly or bigfleet://admin"
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
            return "check that it runs, its address, and whether both sides use TLS or neither"
        case grpc.StatusCode.UNIMPLEMENTED:
            return "check the address: another program listens there, or an older version"
        case _:
            return "read its log"

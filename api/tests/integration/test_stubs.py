"""The generated stubs work over a real connection, asynchronous and synchronous, and are typed.

Nothing here is about behaviour. It is a small user of the package, so that `mypy --strict` sees the
stubs as the rest of the product uses them.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

import grpc
import grpc.aio
import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import provider_pb2_grpc as provider_grpc
from bigfleet_api.v1alpha1 import shard_pb2 as shard
from bigfleet_api.v1alpha1 import shard_pb2_grpc as shard_grpc

DEADLINE = 10.0

ReadContext: TypeAlias = grpc.aio.ServicerContext[provider.MachineRef, provider.Machine]
ListContext: TypeAlias = grpc.aio.ServicerContext[provider.ListFilter, provider.MachineList]
Mutation: TypeAlias = (
    provider.CreateRequest
    | provider.ConfigureRequest
    | provider.DrainRequest
    | provider.DeleteRequest
)
MutationContext: TypeAlias = grpc.aio.ServicerContext[Mutation, provider.TransitionAck]
SessionContext: TypeAlias = grpc.aio.ServicerContext[shard.OperatorMessage, shard.ShardMessage]


class EchoingProvider(provider_grpc.CapacityProviderServicer):
    """Accepts every mutation, and knows every machine it is asked about."""

    async def Create(  # noqa: N802 - the contract's name
        self, request: provider.CreateRequest, context: MutationContext
    ) -> provider.TransitionAck:
        return accepted("create", request)

    async def Configure(  # noqa: N802
        self, request: provider.ConfigureRequest, context: MutationContext
    ) -> provider.TransitionAck:
        return accepted("configure", request)

    async def Drain(  # noqa: N802
        self, request: provider.DrainRequest, context: MutationContext
    ) -> provider.TransitionAck:
        return accepted("drain", request)

    async def Delete(  # noqa: N802
        self, request: provider.DeleteRequest, context: MutationContext
    ) -> provider.TransitionAck:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "bare metal stays")

    async def Get(  # noqa: N802
        self, request: provider.MachineRef, context: ReadContext
    ) -> provider.Machine:
        return provider.Machine(id=request.id, state=provider.MACHINE_STATE_IDLE)

    async def List(  # noqa: N802
        self, request: provider.ListFilter, context: ListContext
    ) -> provider.MachineList:
        return provider.MachineList(machines=[provider.Machine(state=s) for s in request.states])


def accepted(kind: str, request: Mutation) -> provider.TransitionAck:
    machine = provider.Machine(id=request.machine_id)
    return provider.TransitionAck(operation_id=f"{kind}-{request.machine_id}", machine=machine)


class GreetingShard(shard_grpc.ShardServicer):
    """Acknowledges whatever arrives by the name of its payload."""

    async def Session(  # noqa: N802
        self, request_iterator: AsyncIterator[shard.OperatorMessage], context: SessionContext
    ) -> AsyncIterator[shard.ShardMessage]:
        async for frame in request_iterator:
            echo = frame.WhichOneof("payload") or "nothing"
            yield shard.ShardMessage(ack=shard.Acknowledgement(echo=echo))


@pytest.fixture
async def address() -> AsyncIterator[str]:
    server = grpc.aio.server()
    provider_grpc.add_CapacityProviderServicer_to_server(EchoingProvider(), server)
    shard_grpc.add_ShardServicer_to_server(GreetingShard(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


async def test_the_asynchronous_stub_calls_and_streams(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = provider_grpc.CapacityProviderStub(channel)
        machine = await stub.Get(provider.MachineRef(id="m1"), timeout=DEADLINE)
        assert (machine.id, machine.state) == ("m1", provider.MACHINE_STATE_IDLE)
        ack = await stub.Create(provider.CreateRequest(machine_id="m1"), timeout=DEADLINE)
        assert ack.operation_id == "create-m1"

        session = shard_grpc.ShardStub(channel).Session(timeout=DEADLINE)
        await session.write(shard.OperatorMessage(hello=shard.Hello(cluster_id="c1")))
        await session.write(shard.OperatorMessage(node_observations=shard.NodeObservations()))
        await session.done_writing()
        assert [frame.ack.echo async for frame in session] == ["hello", "node_observations"]


async def test_the_synchronous_stub_calls_and_streams(address: str) -> None:
    def talk() -> tuple[list[provider.MachineState.ValueType], list[str]]:
        with grpc.insecure_channel(address) as channel:
            listed = provider_grpc.CapacityProviderStub(channel).List(
                provider.ListFilter(states=[provider.MACHINE_STATE_FAILED]), timeout=DEADLINE
            )
            frames = shard_grpc.ShardStub(channel).Session(
                iter([shard.OperatorMessage()]), timeout=DEADLINE
            )
            return [one.state for one in listed.machines], [frame.ack.echo for frame in frames]

    states, echoes = await asyncio.to_thread(talk)
    assert states == [provider.MACHINE_STATE_FAILED]
    assert echoes == ["nothing"]


async def test_a_refusal_arrives_with_its_code(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = provider_grpc.CapacityProviderStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stub.Delete(provider.DeleteRequest(machine_id="m1"), timeout=DEADLINE)
    assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED

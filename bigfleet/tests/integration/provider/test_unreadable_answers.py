"""Answers that are OK and no message: of a provider of another make, or a proxy before it."""

import contextlib
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from bigfleet.provider import ProviderClient, ProviderSite, UnusableAnswerError
from bigfleet.wire.fencing import FencingStamps

SERVICE = "bigfleet.v1alpha1.CapacityProvider"
METHODS = ("Create", "Configure", "Drain", "Delete", "Get", "List")
Context = grpc.aio.ServicerContext[bytes, bytes]
Calls = list[tuple[str, str]]


async def _gibberish(request: bytes, context: Context) -> bytes:
    return b"\xff" * 20


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[tuple[ProviderClient, Calls]]:
    """A client of a server that answers everything alike, and what it counted."""
    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(_gibberish)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, dict.fromkeys(METHODS, handler)),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    calls: Calls = []
    client = ProviderClient.dial(
        ProviderSite("odd", f"127.0.0.1:{port}"),
        FencingStamps("shard-a", 1),
        watch=lambda provider, method, code, seconds: calls.append((method, code)),
    )
    try:
        yield client, calls
    finally:
        await client.close()
        await server.stop(None)


async def test_an_answer_that_cannot_be_decoded_is_an_error_of_the_provider() -> None:
    async with served() as (client, calls):
        for call in (
            client.create("m-1"),
            client.configure("m-1", "c-1", b"", {}),
            client.drain("m-1", 0),
            client.delete("m-1"),
            client.get("m-1"),
            client.list(),
        ):
            with pytest.raises(UnusableAnswerError, match=r"provider odd: .* cannot be decoded"):
                await call
        # What gRPC calls it wherever its libraries say so themselves, and no success.
        assert calls == [(method, "INTERNAL") for method in METHODS]

"""The reference provider on the network: gRPC, health, reflection, TLS with reload."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reference.provider import Provider
from reference.reads import Code, RefusedError

SERVICE = "bigfleet.v1alpha1.CapacityProvider"
OPTIONS = [
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", 256 << 20),
    ("grpc.so_reuseport", 0),
]
Context = grpc.aio.ServicerContext[object, object]


class TlsFiles:
    """Leaf, key and CA, read again when a file changed; broken files leave the last good set."""

    def __init__(self, files: tuple[Path, Path, Path]) -> None:
        self.files = files
        self.seen: tuple[int, ...] = ()
        self.configuration = self.read()

    def stamps(self) -> tuple[int, ...]:
        """When the files changed last."""
        return tuple(file.stat().st_mtime_ns for file in self.files)

    def requires_client(self) -> bool:
        """A client shows a certificate."""
        return True

    def read(self) -> grpc.ServerCertificateConfiguration:
        """The present files, if they can be used."""
        self.seen = self.stamps()
        leaf, key, ca = (file.read_bytes() for file in self.files)
        certificate = x509.load_pem_x509_certificate(leaf)
        x509.load_pem_x509_certificate(ca)
        private = serialization.load_pem_private_key(key, None)
        encoding = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        if private.public_key().public_bytes(*encoding) != certificate.public_key().public_bytes(
            *encoding
        ):
            raise ValueError("certificate and key do not match")
        return grpc.ssl_server_certificate_configuration([(key, leaf)], ca)

    def current(self) -> grpc.ServerCertificateConfiguration | None:
        """Another set for the next handshake, or None to go on with the last one.

        gRPC frees the set it has when it is handed one, also when a handshake beside this one is
        about to use it; so each is handed over once.
        """
        with contextlib.suppress(OSError, ValueError):
            if self.stamps() != self.seen:
                self.configuration = self.read()
                return self.configuration
        return None

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that look at the files on every handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self.configuration,
            self.current,  # type: ignore[arg-type]  # None, which the stubs forget, keeps the set
            require_client_authentication=self.requires_client(),
        )


class Server:
    """One provider behind one port."""

    tls_type = TlsFiles
    serves_health = True

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.address = ""
        self._server = grpc.aio.server(options=OPTIONS)
        self._health = health_aio.HealthServicer()

    async def start(self) -> None:
        """Listen, and say so."""
        handlers = {
            "Create": _handler(self._mutation("create"), pb.CreateRequest),
            "Configure": _handler(self._mutation("configure"), pb.ConfigureRequest),
            "Drain": _handler(self._mutation("drain"), pb.DrainRequest),
            "Delete": _handler(self._mutation("delete"), pb.DeleteRequest),
            "Get": _handler(self._get, pb.MachineRef),
            "List": grpc.unary_unary_rpc_method_handler(
                self._list, pb.ListFilter.FromString, lambda raw: raw
            ),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        if self.serves_health:
            health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), self._server)
        config = self.provider.config
        if config.tls is None:
            port = self._server.add_insecure_port(config.addr)
        else:
            port = self._server.add_secure_port(
                config.addr, self.tls_type(config.tls).credentials()
            )
        self.address = f"{config.addr.rpartition(':')[0]}:{port}"
        await self._server.start()
        self.provider.start()
        serving = health_pb2.HealthCheckResponse.SERVING
        await self._health.set("", serving)
        await self._health.set(SERVICE, serving)

    async def stop(self) -> None:
        """An end as by SIGKILL: calls are cut, nothing more is written."""
        await self.provider.stop()
        await self._server.stop(0)

    async def wait(self) -> None:
        """Serve until stopped."""
        await self._server.wait_for_termination()

    def _mutation(self, kind: str) -> Callable[[Any, Context], Awaitable[pb.TransitionAck]]:
        async def handle(request: Any, context: Context) -> pb.TransitionAck:
            async with refusals(context):
                identity = self.identity(context)
                return await self.provider.mutate(kind, request, identity)

        return handle

    async def _get(self, request: pb.MachineRef, context: Context) -> pb.Machine:
        async with refusals(context):
            self._reader(context)
            return await self.provider.get(request.id)

    async def _list(self, request: pb.ListFilter, context: Context) -> bytes:
        async with refusals(context):
            self._reader(context)
            return await self.provider.listing(request)

    def identity(self, context: Context) -> str | None:
        """shard/x, or None in plaintext; refused without exactly one of our SANs."""
        if self.provider.config.tls is None:
            return None
        names: list[str] = [
            name.decode()
            for name in context.auth_context().get("x509_subject_alternative_name", [])
        ]
        ours = {name for name in names if name.startswith("bigfleet://")}
        if len(ours) != 1:
            raise RefusedError(Code.PERMISSION_DENIED, "the certificate has no single identity")
        return ours.pop().removeprefix("bigfleet://")

    def _reader(self, context: Context) -> None:
        """Any shard may read."""
        identity = self.identity(context)
        if identity is not None and identity.partition("/")[0] == "cluster":
            raise RefusedError(Code.PERMISSION_DENIED, "clusters do not talk to providers")


@contextlib.asynccontextmanager
async def refusals(context: Context) -> AsyncIterator[None]:
    """A refusal becomes the status of the call."""
    try:
        yield
    except RefusedError as refusal:
        await context.abort(refusal.code, str(refusal))


def _handler(behaviour: object, request: type) -> grpc.RpcMethodHandler:  # type: ignore[type-arg]
    return grpc.unary_unary_rpc_method_handler(
        behaviour,  # type: ignore[arg-type]
        request.FromString,  # type: ignore[attr-defined]
        lambda message: message.SerializeToString(),
    )


def run_forever(make: Callable[[], Server]) -> None:
    """Run a provider as a process of its own, until it is told to end."""

    async def main() -> None:
        server = make()
        await server.start()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        await stopped.wait()
        await server.stop()

    asyncio.run(main())

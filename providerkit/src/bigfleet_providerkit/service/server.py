"""The gRPC server around the service: handlers, health, reflection, limits, plaintext or mTLS.

Around every call, from outside in: log and metrics, identity, panic guard. A bug in a handler is
answered with INTERNAL and counted; the process lives on.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from structlog.typing import FilteringBoundLogger

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_base.addresses import AddressError, Endpoint, bind_endpoint
from bigfleet_providerkit.errors import Code, Refusal, StartError
from bigfleet_providerkit.http.metrics import METHODS, Metrics
from bigfleet_providerkit.service.identity import PLAINTEXT, Peer, peer_of
from bigfleet_providerkit.service.service import ProviderService
from bigfleet_providerkit.tracing.traces import Traces

SERVICE = "bigfleet.v1alpha1.CapacityProvider"
LARGEST_MESSAGE = 256 * 1024 * 1024
OPTIONS = (
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Two processes on one port would share its calls instead of one of them being told.
    ("grpc.so_reuseport", 0),
)
_STATUS = {code.value[0]: code for code in grpc.StatusCode}
_MUTATIONS = frozenset({"Create", "Configure", "Drain", "Delete"})
Context = grpc.aio.ServicerContext[object, object]
R = TypeVar("R", contravariant=True)
Handler = Callable[[R, Peer], Awaitable[bytes]]


class Credentials(Protocol):
    """Where the server's TLS comes from."""

    def server_credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files."""
        ...


class GrpcServer:
    """Serves one provider on one port."""

    def __init__(
        self,
        service: ProviderService,
        metrics: Metrics,
        log: FilteringBoundLogger,
        credentials: Credentials | None = None,
        *,
        reflection: bool = True,
        traces: Traces | None = None,
    ) -> None:
        self._service = service
        self._metrics = metrics
        self._log = log
        self._credentials = credentials
        self._traces = traces if traces is not None and traces.on else None
        self._server = grpc.aio.server(options=OPTIONS)
        self._health = health.aio.HealthServicer()
        # In the order in which a call looks for its handler.
        self._server.add_generic_rpc_handlers((self._handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if reflection:
            _add_reflection(self._server)

    async def start(self, addr: str) -> str:
        """Listen; the address of the socket."""
        await self._health.set(SERVICE, health_pb2.HealthCheckResponse.NOT_SERVING)
        try:
            target = bind_endpoint(Endpoint.parse(addr, "--addr host:port or :port"))
        except AddressError as error:
            raise StartError(str(error)) from error
        try:
            if self._credentials is None:
                bound = self._server.add_insecure_port(str(target))
            else:
                bound = self._server.add_secure_port(
                    str(target), self._credentials.server_credentials()
                )
        except RuntimeError as error:
            raise StartError(
                f"cannot listen on {target}: the port is taken or not allowed; change --addr"
            ) from error
        await self._server.start()
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        return str(Endpoint(target.host, bound))

    async def ready(self) -> None:
        """The inventory is loaded."""
        await self._health.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace: float) -> None:
        """No new calls; those under way get some time."""
        await self._health.set(SERVICE, health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._server.stop(grace)

    def _handlers(self) -> grpc.GenericRpcHandler:
        service = self._service

        async def get(request: pb.MachineRef, peer: Peer) -> bytes:
            return service.read_one(request, peer)

        async def many(request: pb.ListFilter, peer: Peer) -> bytes:
            return service.read_many(request, peer)

        calls: dict[str, tuple[Handler[Any], Callable[[bytes], Any]]] = {
            "Create": (service.mutate, pb.CreateRequest.FromString),
            "Configure": (service.mutate, pb.ConfigureRequest.FromString),
            "Drain": (service.mutate, pb.DrainRequest.FromString),
            "Delete": (service.mutate, pb.DeleteRequest.FromString),
            "Get": (get, pb.MachineRef.FromString),
            "List": (many, pb.ListFilter.FromString),
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                method: grpc.unary_unary_rpc_method_handler(
                    self._guarded(method, call),
                    request_deserializer=deserialize,
                    response_serializer=None,
                )
                for method, (call, deserialize) in calls.items()
            },
        )

    def _guarded(self, method: str, call: Handler[R]) -> Callable[[R, Context], Awaitable[bytes]]:
        counted = {code: self._metrics.rpc.labels(method, code.name) for code in (Code.OK,)}
        seconds = self._metrics.rpc_seconds.labels(method)
        log, metrics, secure = self._log, self._metrics, self._credentials is not None
        say = log.info if method in _MUTATIONS else log.debug

        async def handler(request: R, context: Context) -> bytes:
            began = time.perf_counter()
            code, text = Code.OK, ""
            answer = b""
            try:
                answer = await call(request, _peer(context) if secure else PLAINTEXT)
            except Refusal as refusal:
                code, text = refusal.code, refusal.text
            except Exception:
                metrics.panics.inc()
                log.exception("panic in a handler", method=method)
                code, text = Code.INTERNAL, f"{method} met a bug; the log has the details"
            took = time.perf_counter() - began
            seconds.observe(took)
            if code not in counted:
                counted[code] = metrics.rpc.labels(method, code.name)
            counted[code].inc()
            if code is Code.OK:
                say("rpc", method=method, code=code.name, dur_ms=round(took * 1000, 2))
                return answer
            level = log.error if code is Code.PERMISSION_DENIED else log.warning
            level("rpc", method=method, code=code.name, dur_ms=round(took * 1000, 2), error=text)
            await context.abort(_STATUS[int(code)], text)
            raise AssertionError("abort does not return")

        return handler if self._traces is None else _traced(self._traces, method, handler)


def _status_name(code: object) -> str:
    """The name of a status; gRPC gives a number here and a value there, or nothing at all."""
    if isinstance(code, grpc.StatusCode):
        return code.name
    known = _STATUS.get(code) if isinstance(code, int) and code else None
    return grpc.StatusCode.CANCELLED.name if known is None else known.name


def _traced(
    traces: Traces, method: str, handler: Callable[[R, Context], Awaitable[bytes]]
) -> Callable[[R, Context], Awaitable[bytes]]:
    """The same, with a span for calls that are part of a trace."""
    if method not in _MUTATIONS:
        return handler

    async def recorded(request: R, context: Context) -> bytes:
        machine = str(getattr(request, "machine_id", ""))
        call = traces.came(tuple(context.invocation_metadata() or ()), machine)
        if call is None:
            return await handler(request, context)
        try:
            answer = await handler(request, context)
        except BaseException:
            name = _status_name(context.code())
            traces.answered(call, method, machine, name, name)
            raise
        traces.answered(call, method, machine, Code.OK.name, "")
        return answer

    return recorded


def _peer(context: Context) -> Peer:
    for certificate in context.auth_context().get("x509_pem_cert", ()):
        return peer_of(bytes(certificate))
    return Peer("")


def _add_reflection(server: grpc.aio.Server) -> None:
    from grpc_reflection.v1alpha import reflection

    names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)


assert set(METHODS) >= _MUTATIONS

"""A collector of traces on loopback: the OTLP service itself, which keeps what it is sent."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc


@dataclass(frozen=True, slots=True)
class Seen:
    """A span as it arrived."""

    trace: str
    span: str
    parent: str
    name: str
    process: str
    start: int
    end: int
    attributes: dict[str, str]
    error: str


class Collector(rpc.TraceServiceServicer):
    """Keeps every span."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: list[Seen] = []
        self.address = ""

    @property
    def spans(self) -> list[Seen]:
        """What has come so far."""
        with self._lock:
            return [*self._spans]

    def trace_of(self, name: str) -> dict[str, list[Seen]]:
        """The spans by name of the first trace that has a span of this name."""
        spans = self.spans
        trace = next((one.trace for one in spans if one.name == name), "")
        found: dict[str, list[Seen]] = {}
        for one in spans:
            if one.trace == trace:
                found.setdefault(one.name, []).append(one)
        return found

    def Export(  # noqa: N802 - the service's own name
        self, request: service.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> service.ExportTraceServiceResponse:
        """Spans of one process."""
        for resource in request.resource_spans:
            keys = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    seen = Seen(
                        span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
                        span.name, keys["service.name"],
                        span.start_time_unix_nano, span.end_time_unix_nano,
                        {one.key: one.value.string_value for one in span.attributes},
                        span.status.message,
                    )  # fmt: skip
                    with self._lock:
                        self._spans.append(seen)
        return service.ExportTraceServiceResponse()


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    made = Collector()
    server = grpc.server(ThreadPoolExecutor(4))
    rpc.add_TraceServiceServicer_to_server(made, server)  # type: ignore[no-untyped-call]
    made.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield made
    finally:
        server.stop(1).wait()

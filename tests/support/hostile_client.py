"""A client that means harm: run inside a test's machine, it prints what it was answered as JSON.

    python hostile_client.py ids            ids that break the rules, at every port that takes ids
    python hostile_client.py idle PORT...   a thousand connections that send nothing, then one call

It speaks plain gRPC and HTTP and knows the contract alone.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bigfleet_api.v1alpha1 import (
    coordinator_pb2,
    coordinator_pb2_grpc,
    provider_pb2,
    provider_pb2_grpc,
    shard_pb2,
    shard_pb2_grpc,
)

IDS: Final = {
    "60 MB": "c" * 60_000_000,
    "NUL": "c\0",
    "CR LF": "c\r\nforged log line",
    "path": "../../etc/passwd",
}
IDLE: Final = 1_000
PROBES: Final = 3
GRPC_PORTS: Final = frozenset({7780, 7790, 9001})
_SIZE: Final = [("grpc.max_send_message_length", 256 << 20)]


def calls(bad: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every call that takes an id from a client, with this one."""
    shard = shard_pb2_grpc.ShardStub(_channel(7780))
    coordinator = coordinator_pb2_grpc.CoordinatorStub(_channel(7790))
    provider = provider_pb2_grpc.CapacityProviderStub(_channel(9001))
    hello = shard_pb2.OperatorMessage(
        hello=shard_pb2.Hello(cluster_id=bad, protocol_version="v1alpha1")
    )
    yield "shard Hello", lambda: next(shard.Session(iter([hello]), timeout=60))
    report = coordinator_pb2.ShardReport(shard_id=bad, shard_epoch=1, cycle=1)
    yield "coordinator ReportShard", lambda: coordinator.ReportShard(report, timeout=60)
    binding = coordinator_pb2.BindClusterRequest(cluster_id=bad, shard_id="s-1")
    yield "coordinator BindCluster", lambda: coordinator.BindCluster(binding, timeout=60)
    create = provider_pb2.CreateRequest(
        machine_id="m", shard_id=bad, shard_epoch=1, sequence_number=1
    )
    yield "provider Create", lambda: provider.Create(create, timeout=60)
    configure = provider_pb2.ConfigureRequest(
        machine_id="m", shard_id="s-1", cluster_id=bad, shard_epoch=1, sequence_number=1
    )
    yield "provider Configure", lambda: provider.Configure(configure, timeout=60)


def send_ids() -> list[dict[str, object]]:
    """The status of each call, and how long its words are."""
    found: list[dict[str, object]] = []
    for name, bad in IDS.items():
        for call, send in calls(bad):
            try:
                send()
                code, details = "OK", ""
            except grpc.RpcError as error:
                code, details = error.code().name, error.details() or ""
            found.append({"call": call, "id": name, "code": code, "length": len(details)})
    return found


def sit_idle(ports: list[int]) -> dict[int, float]:
    """Seconds until a probe was answered beside a thousand connections that send nothing."""
    found = {}
    for port in ports:
        with ExitStack() as stack:
            for _ in range(IDLE):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            # The fastest of a few: a busy machine delays one of them, a blocked server all.
            found[port] = min(_probe_seconds(port) for _ in range(PROBES))
    return found


def _probe_seconds(port: int) -> float:
    begun = time.monotonic()
    _probe(port)
    return time.monotonic() - begun


def _probe(port: int) -> None:
    if port in GRPC_PORTS:
        with _channel(port) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            stub.Check(health_pb2.HealthCheckRequest(), timeout=30, wait_for_ready=True)
        return
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as reply:
        reply.read()


def _channel(port: int) -> grpc.Channel:
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=_SIZE)


if __name__ == "__main__":
    ports = [int(port) for port in sys.argv[2:]]
    made: object = send_ids() if sys.argv[1] == "ids" else sit_idle(ports)
    sys.stdout.write(f"{json.dumps(made)}\n")

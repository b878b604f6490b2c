"""Rows of bench/results.json for the operator and the pod controller, as JSON on stdout.

python tools/bench_operator.py [NAME...]     such as operator.list.50000, or nothing for all

All but the roll-up runs against a real control plane on this machine, and is left out where the
binaries of `make kube-tools` are not there; progress goes to stderr. The process that is measured
is the one that is shipped. Pods that come to run are measured by `bench_e2e`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

import bench_e2e
from bigfleet.kube import AlreadyExistsError, KubeClient, load
from bigfleet.kube.fleet import CAPACITY_REQUESTS
from bigfleet.kube.objects import PODS, Object
from bigfleet.operator.demand.requests import CapacityRequest
from bigfleet.operator.demand.rollup import RollUpBuilder
from bigfleet.wire.server import WireServer
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shard_pb2_grpc
from bigfleet_lab.bench.rows import Bar, BarMeasurement, expect, print_rows
from kube import binaries
from kube.plane import control_plane

ROOT: Final = Path(__file__).parent.parent
COMMAND: Final = "make bench ONLY=operator"
REQUESTS: Final = 50_000
PODS_AT_ONCE: Final = 5_000
RUNS: Final = 10
PATIENCE: Final = 300.0
Row = dict[str, Any]


def request(number: int, chance: random.Random) -> Row:
    """One of many requests: few profiles, many sizes."""
    zone = {
        "key": "topology.kubernetes.io/zone",
        "operator": "In",
        "values": [chance.choice("abc")],
    }
    return {
        "apiVersion": "bigfleet.lucy.sh/v1alpha1",
        "kind": "CapacityRequest",
        "metadata": {
            "name": f"cr-pod-web-{number}-{number:010x}",
            "namespace": "default",
            "labels": {"bigfleet.lucy.sh/owned-by-pod": f"{number:032x}"},
        },
        "spec": {
            "requirements": [zone],
            "resources": {
                "cpu": f"{chance.randrange(100, 8000)}m",
                "memory": f"{chance.randrange(1, 64)}Gi",
                "pods": "1",
            },
            "priority": chance.choice([0, 100, 1000]),
        },
    }


def pod(number: int) -> Row:
    """A Pod that has nowhere to run."""
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}}
    container = {"name": "main", "image": "example.com/none", "resources": resources}
    return {
        "metadata": {"name": f"web-{number}", "namespace": "default"},
        "spec": {"containers": [container]},
    }


class AckingShard:
    """A shard as far as a roll-up needs one: it says that it took it."""

    def __init__(self) -> None:
        self.rows = 0
        self.taken = asyncio.Event()

    async def Session(  # noqa: N802 - the name on the wire
        self, frames: AsyncIterator[pb.OperatorMessage], context: object
    ) -> AsyncIterator[pb.ShardMessage]:
        """One session."""
        async for frame in frames:
            kind = frame.WhichOneof("payload")
            if kind == "hello":
                yield pb.ShardMessage(ack=pb.Acknowledgement(echo="hello"))
            elif kind == "rollup":
                stamp = frame.rollup.timestamp_unix_nanos
                self.rows = len(frame.rollup.needs)
                self.taken.set()
                ack = pb.Acknowledgement(echo="rollup", rollup_timestamp_unix_nanos=stamp)
                yield pb.ShardMessage(ack=ack)


# -- measurements ---------------------------------------------------------------------------------


def rollup_times() -> BarMeasurement:
    """A whole roll-up of 50,000 requests, every row of it new."""
    chance = random.Random(1)
    decoder = msgspec.json.Decoder(CapacityRequest)
    texts = [msgspec.json.encode(request(number, chance)) for number in range(REQUESTS)]
    times: list[float] = []
    for stamp in range(1, RUNS + 1):
        rollups = RollUpBuilder()
        for text in texts:
            rollups.put(decoder.decode(text))
        began = time.perf_counter()
        built = rollups.build("c-1", stamp, {})
        times.append((time.perf_counter() - began) * 1000)
        rows_sent = pb.OperatorMessage.FromString(built.frame).rollup.needs
        added = sum(int(row.aggregate_resources["pods"]) for row in rows_sent)
        expect(added == REQUESTS, "the roll-up does not add up")
    return BarMeasurement(samples=times)


def first_list() -> BarMeasurement:
    """From the start of an operator until it knows every request."""
    return BarMeasurement(value=round(operator_at_size()["list"], 3))


def memory() -> BarMeasurement:
    """The most it ever held."""
    return BarMeasurement(value=operator_at_size()["memory"])


@lru_cache(maxsize=1)
def operator_at_size() -> dict[str, float]:
    """An operator process and 50,000 requests: how long its list takes, and what it holds."""
    with bench_e2e.in_time():
        return asyncio.run(_operator_at_size())


async def _operator_at_size() -> dict[str, float]:
    with control_plane() as plane:
        plane.install(ROOT / "api" / "crd")
        async with _client(plane.kubeconfig) as client:
            _say(f"making {REQUESTS} CapacityRequests")
            chance = random.Random(1)
            bodies = [request(number, chance) for number in range(REQUESTS)]
            began = time.monotonic()
            await _all_at_once(
                bodies, lambda body: client.create(CREATED, body, "default", deadline=PATIENCE)
            )
        _say(f"made in {time.monotonic() - began:.0f} s")
        shard = AckingShard()
        server = WireServer(("bigfleet.v1alpha1.Shard",), None)
        shard_pb2_grpc.add_ShardServicer_to_server(shard, server.grpc)  # type: ignore[arg-type]
        address = await server.start("127.0.0.1:0")
        try:
            _say("starting the operator")
            return await _measured(
                ["operator", str(plane.kubeconfig), address], lambda: shard.rows > 0
            )
        finally:
            await server.stop(0)


async def _measured(arguments: list[str], holds: Callable[[], bool]) -> dict[str, float]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--child", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE):
            assert process.stdout is not None
            found: dict[str, float] = json.loads(await process.stdout.readline())
            await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    expect(holds(), "no roll-up arrived")
    return found


async def operator_child(kubeconfig: str, address: str) -> None:
    """The operator, as `bigfleet operator` runs it, looked at from inside."""
    from measured_informer import at_most  # where bench_e2e looks

    from bigfleet.observe.logs import configure_logs
    from bigfleet.operator.server import RunningOperator, serve
    from bigfleet.operator.settings import OperatorSettings

    configure_logs()
    settings = OperatorSettings.load(
        {
            "cluster_id": "c-1", "shard_addr": address, "kubeconfig": kubeconfig,
            "allow_stub_bootstrap": True, "metrics_addr": "0",
        }
    )  # fmt: skip
    stop = asyncio.Event()
    running: asyncio.Future[RunningOperator] = asyncio.get_running_loop().create_future()
    began = time.monotonic()
    life = asyncio.ensure_future(serve(settings, stop, "bench", running.set_result))
    operator = (await running).operator
    await _until(lambda: len(operator.rollups) >= REQUESTS)
    seconds = time.monotonic() - began
    await _until(lambda: operator.rollups.acknowledged >= REQUESTS // 50)
    print(json.dumps({"list": seconds, "memory": at_most()}), flush=True)
    stop.set()
    await life


def controller_at_size() -> BarMeasurement:
    """A pod controller process, and 5,000 Pods at once."""
    with bench_e2e.in_time():
        return BarMeasurement(value=round(asyncio.run(_controller_at_size()), 2))


async def _controller_at_size() -> float:
    with control_plane() as plane:
        plane.install(ROOT / "api" / "crd")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bigfleet.cli.main", "pod-controller",
            "--kubeconfig", str(plane.kubeconfig), "--metrics-addr", "0",
        )  # fmt: skip
        try:
            async with _client(plane.kubeconfig) as client:
                await _first_request(client)
                _say(f"making {PODS_AT_ONCE} Pods")
                began = time.monotonic()
                bodies = [pod(number) for number in range(PODS_AT_ONCE)]
                await _all_at_once(
                    bodies, lambda body: client.create(PODS, body, "default", deadline=PATIENCE)
                )
                found = await _owners_of(client, PODS_AT_ONCE + 1)
                seconds = time.monotonic() - began
                await asyncio.sleep(2)
                again = await _owners(client)
        finally:
            process.terminate()
            await process.wait()
    once_each = len(set(again)) == len(again) and sorted(again) == sorted(found)
    expect(once_each, f"{len(again)} requests for {len(set(again))} Pods")
    return seconds


async def _first_request(client: KubeClient) -> None:
    """The controller is up once a first Pod has its request."""
    await client.create(PODS, pod(-1) | {"metadata": {"name": "first"}}, "default")
    await _owners_of(client, 1)


async def _owners_of(client: KubeClient, count: int) -> list[str]:
    """The owners of requests, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await _owners(client)
            if len(found) >= count:
                return found
            await asyncio.sleep(0.3)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.02)


async def _owners(client: KubeClient) -> list[str]:
    found = await client.list_all(CAPACITY_REQUESTS.read_as(Object))
    return [one.metadata.owner_references[0].uid for one in found]


CREATED: Final = CAPACITY_REQUESTS.read_as(Object)


@contextlib.asynccontextmanager
async def _client(kubeconfig: Path) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(load(kubeconfig), qps=5_000, burst=5_000) as client:
        yield client


async def _all_at_once(bodies: list[Row], make: Callable[[Row], Awaitable[object]]) -> None:
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:
            # A machine that stood still for a while has not done anything wrong.
            with contextlib.suppress(AlreadyExistsError):
                await make(body)

    async with asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(work())


# -- rows -----------------------------------------------------------------------------------------

ROWS: Final = {
    "operator.rollup.50000": Bar(rollup_times, 250, "ms"),
    "operator.list.50000": Bar(first_list, 10, "s"),
    "operator.memory.50000": Bar(memory, 300e6, "bytes"),
    "podcontroller.requests.5000": Bar(controller_at_size, 60, "s"),
    **bench_e2e.ROWS,
}


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> None:
    """Measure these rows, or all that can be measured here."""
    if arguments[:2] == ["--child", "operator"]:
        asyncio.run(operator_child(*arguments[2:]))
        return
    if not arguments and binaries.missing():
        _say("no Kubernetes here (make kube-tools): only what needs none is measured")
        arguments = ["operator.rollup.50000"]
    print_rows(ROWS, arguments, COMMAND)


if __name__ == "__main__":
    main(sys.argv[1:])

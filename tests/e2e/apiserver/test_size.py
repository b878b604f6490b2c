"""Fifty thousand CapacityRequests: how long the first list takes, what a copy keeps, and that it
misses nothing when watches end, wires are cut and versions are forgotten. Five thousand Pods."""

import asyncio
import json
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import measured_informer
import pytest
from measured_informer import Counts, digest

import bench_operator
from bigfleet.kube import AlreadyExistsError, Change, Informer, KubeClient, from_kubeconfig
from bigfleet.kube.fleet import CAPACITY_REQUESTS
from bigfleet.kube.objects import Object
from kube.plane import ControlPlane, control_plane
from tcp_proxy import Proxy

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]
CRDS = Path(__file__).parents[3] / "api" / "crd"
SMALL = CAPACITY_REQUESTS.read_as(Object)
REQUESTS = 50_000
WRITERS = 64
LIST_SECONDS = 10
BYTES = 200 * 2**20
PAGE = 1000
PATIENCE = 300.0
LAST = "the-last-one"
PLACE = "/apis/bigfleet.lucy.sh/v1alpha1/namespaces/default/capacityrequests"
Facts = dict[str, float | str]


def request(name: str, number: int = 0) -> dict[str, object]:
    """As the pod controller writes them, one in a hundred of a shape of its own."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"z{number % 3}"]}
    labels = {"bigfleet.lucy.sh/owned-by-pod": f"{number:08}-0000-4000-8000-000000000000"}
    resources = {"cpu": f"{100 + number % 100}m", "memory": "512Mi", "pods": "1"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"requirements": [zone], "resources": resources, "priority": number % 10},
    }


def name_of(number: int) -> str:
    """The name of one of many."""
    return f"cr-pod-web-{number:05}-0123456789"


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client in no hurry to save the API server work."""
    config = from_kubeconfig(plane.kubeconfig)
    async with KubeClient.connect(config, qps=100_000, burst=1000) as client:
        yield client


async def at_once(works: Sequence[Callable[[], Coroutine[None, None, object]]]) -> None:
    """Many writes, some at a time."""
    waiting = iter(works)

    async def work() -> None:
        for one in waiting:
            await one()

    await asyncio.gather(*(work() for _ in range(WRITERS)))


async def make(client: KubeClient, names: Sequence[str]) -> None:
    """Requests of these names."""

    async def create(number: int) -> None:
        with suppress(AlreadyExistsError):
            await client.create(SMALL, request(names[number], number), "default", deadline=300)

    await at_once([partial(create, number) for number in range(len(names))])


@pytest.fixture(scope="module")
def crowded() -> Iterator[ControlPlane]:
    """A control plane of our own, because it is broken now and then, with many requests."""

    async def fill(plane: ControlPlane) -> None:
        async with connected(plane) as client:
            await make(client, [name_of(number) for number in range(REQUESTS)])

    with control_plane(name="crowded") as plane:
        plane.install(CRDS)
        asyncio.run(fill(plane))
        yield plane


async def started(kubeconfig: Path, *marker: str) -> asyncio.subprocess.Process:
    """A process that follows."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(measured_informer.__file__)),
        str(kubeconfig),
        *marker,
        stdout=asyncio.subprocess.PIPE,
    )


async def told(process: asyncio.subprocess.Process) -> Facts:
    """The next thing that it says."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        found: Facts = json.loads(await process.stdout.readline())
    return found


async def versions(client: KubeClient) -> dict[str, str]:
    """All requests as the API server has them, by key."""
    pages = client.list_pages(SMALL, deadline=300)
    found = [one.metadata async for page in pages for one in page.items]
    return {f"default/{one.name}": one.resource_version for one in found}


async def churn(client: KubeClient, lot: int) -> None:
    """Some requests go, some change, some come."""
    first = lot * 300
    costlier = {"spec": {"priority": 77}}
    gone, changed = range(first, first + 100), range(first + 100, first + 200)
    await make(client, [f"new-{lot}-{number}" for number in range(100)])
    await at_once(
        [partial(client.delete, SMALL, name_of(number), "default") for number in gone]
        + [
            partial(client.merge_patch, SMALL, name_of(number), costlier, "default")
            for number in changed
        ]
    )


def forget_versions(plane: ControlPlane) -> None:
    """etcd drops every version but the newest, and the API server what it remembered of them."""
    newest = _etcd(plane, "range", {"key": "AA=="})["header"]["revision"]
    _etcd(plane, "compaction", {"revision": newest, "physical": True})
    plane.processes["kube-apiserver"].kill()
    plane.restart_api_server()


def _etcd(plane: ControlPlane, call: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
    asked = urllib.request.Request(f"{plane.etcd}/v3/kv/{call}", json.dumps(body).encode())
    with urllib.request.urlopen(asked, timeout=60) as answer:
        found: dict[str, dict[str, str]] = json.load(answer)
    return found


async def test_the_first_list_of_50000_takes_at_most_ten_seconds(crowded: ControlPlane) -> None:
    process = await started(crowded.kubeconfig)
    cost = await told(process)
    await process.wait()
    assert cost["objects"] == REQUESTS
    assert cost["pages"] == REQUESTS / PAGE
    assert float(cost["seconds"]) <= LIST_SECONDS, cost
    assert float(cost["bytes_at_most"]) <= BYTES, cost


async def test_a_copy_of_50000_misses_nothing_whatever_happens_to_its_watch(
    crowded: ControlPlane, tmp_path: Path
) -> None:
    async with (
        connected(crowded) as client,
        Proxy(crowded.server.removeprefix("https://")) as wire,
    ):
        kubeconfig = tmp_path / "kubeconfig"
        text = crowded.kubeconfig.read_text(encoding="utf-8")
        kubeconfig.write_text(text.replace(crowded.server, f"https://{wire.address}"))
        process = await started(kubeconfig, LAST)
        try:
            first = await told(process)
            # Watches end every second or two by themselves.
            await churn(client, 0)
            wire.cut()
            await churn(client, 1)
            wire.repair()
            await churn(client, 2)
            wire.cut()
            await churn(client, 3)
            await asyncio.to_thread(forget_versions, crowded)
            wire.repair()
            await churn(client, 4)
            await client.create(SMALL, request(LAST), "default")
            last = await told(process)
        finally:
            process.terminate()
            await process.wait()
        there = await versions(client)
    assert (last["objects"], last["digest"]) == (len(there), digest(there))
    assert last["expired"] == 1
    assert float(last["pages"]) - float(first["pages"]) in (REQUESTS / PAGE, REQUESTS / PAGE + 1)
    assert float(last["bytes_at_most"]) <= BYTES, last


async def test_a_list_of_50000_whose_versions_are_forgotten_between_pages_is_complete(
    crowded: ControlPlane,
) -> None:
    counts = Counts()
    config = from_kubeconfig(crowded.kubeconfig)
    async with (
        connected(crowded) as client,
        KubeClient.connect(config, observer=counts) as followed,
    ):
        await client.create(SMALL, request("made-before"), "default")
        informer = Informer(followed, SMALL)

        def forget(_: Change[Object]) -> None:
            # While this runs nothing else does: the next page, if it was asked for, is lost.
            if len(informer) == 3 * PAGE and not counts.seen["list 410"]:
                crowded.api.delete(f"{PLACE}/made-before")
                forget_versions(crowded)

        informer.on_change(forget)
        following = asyncio.create_task(informer.run())
        try:
            async with asyncio.timeout(PATIENCE):
                await informer.wait_synced()
        finally:
            following.cancel()
        there = await versions(client)
    assert {key: one.metadata.resource_version for key, one in informer.objects.items()} == there
    assert counts.seen["list 410"] == 1


def test_5000_pods_at_once_have_one_request_each_within_a_minute() -> None:
    seconds = bench_operator.controller_at_size().value
    assert seconds is not None
    assert seconds <= 60

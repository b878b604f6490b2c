"""The client against a real API server: what a scripted one cannot vouch for."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from capacity_requests import FULL_REQUESTS, CapacityRequest

from bigfleet.kube import (
    AlreadyExistsError,
    Change,
    ConflictError,
    EventRecorder,
    Eviction,
    ForbiddenError,
    GoneError,
    Informer,
    KubeClient,
    LeaderElection,
    NotFoundError,
    ObjectRef,
    UnreachableError,
    from_kubeconfig,
)
from bigfleet.kube.objects import CONFIG_MAPS, DISRUPTION_BUDGETS, EVENTS, NODES, PODS
from kube.plane import ControlPlane, control_plane

CRDS = Path(__file__).parents[3] / "api" / "crd"


def request(name: str, cpu: str = "1") -> dict[str, object]:
    return {
        "metadata": {"name": name, "labels": {"app": "test"}},
        "spec": {"resources": {"cpu": cpu}, "priority": 0},
    }


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the world outside rings no bell
            await asyncio.sleep(0.02)


@asynccontextmanager
async def following(
    client: KubeClient, namespace: str, **options: int
) -> AsyncIterator[Informer[CapacityRequest]]:
    informer = Informer(client, FULL_REQUESTS, namespace=namespace, **options)  # type: ignore[arg-type]
    running = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_the_server_says_its_version(client: KubeClient) -> None:
    assert b'"gitVersion": "v1.35.' in await client.read_path("/version")


async def test_an_informer_sees_pages_changes_and_deletions(
    client: KubeClient, namespace: str
) -> None:
    for number in range(25):
        await client.create(FULL_REQUESTS, request(f"r{number:02}"), namespace)
    seen: list[str] = []

    def tell(change: Change[CapacityRequest]) -> None:
        seen.append(f"{change.kind.value} {change.key.split('/')[1]}")

    async with following(client, namespace, page=10) as informer:
        informer.on_change(tell)
        await informer.wait_synced()
        assert len(informer) == 25
        assert informer.trouble is None
        seen.clear()
        await client.create(FULL_REQUESTS, request("new"), namespace)
        resized = {"spec": {"resources": {"cpu": "2"}}}
        await client.merge_patch(FULL_REQUESTS, "new", resized, namespace)
        await client.delete(FULL_REQUESTS, "r00", namespace)
        await until(lambda: len(seen) >= 3)
        assert seen == ["added new", "changed new", "deleted r00"]
        assert all(item.status.phase == "Pending" for item in informer)


async def test_a_watch_that_ends_by_its_time_misses_nothing(
    client: KubeClient, namespace: str
) -> None:
    async with following(client, namespace, watch_seconds=1) as informer:
        await informer.wait_synced()
        for number in range(12):
            await client.create(FULL_REQUESTS, request(f"r{number}"), namespace)
            await asyncio.sleep(0.3)
        await until(lambda: len(informer) == 12)


async def test_an_old_version_is_gone(client: KubeClient, namespace: str) -> None:
    watch = client.watch(FULL_REQUESTS, namespace, version="1", seconds=5)
    with pytest.raises(GoneError, match="too old"):
        async with watch as events:
            _ = [event async for event in events]


async def test_apply_makes_changes_and_removes_only_its_own(
    client: KubeClient, namespace: str
) -> None:
    async def apply(manager: str, data: dict[str, str]) -> dict[str, str]:
        maps = CONFIG_MAPS.read_as(dict)
        found = await client.apply(maps, "m", {"data": data}, namespace, manager=manager)
        kept = found["data"]
        assert isinstance(kept, dict)
        return kept

    assert await apply("one", {"a": "1", "b": "1"}) == {"a": "1", "b": "1"}
    assert await apply("two", {"c": "2"}) == {"a": "1", "b": "1", "c": "2"}
    assert await apply("one", {"a": "3"}) == {"a": "3", "c": "2"}


async def test_names_conflicts_and_absences_are_told_apart(
    client: KubeClient, namespace: str
) -> None:
    made = await client.create(FULL_REQUESTS, request("one"), namespace)
    with pytest.raises(AlreadyExistsError):
        await client.create(FULL_REQUESTS, request("one"), namespace)
    version = {"resourceVersion": made.metadata.resource_version}
    stale = {"metadata": version, "spec": {"priority": 1}}
    await client.merge_patch(FULL_REQUESTS, "one", stale, namespace)
    with pytest.raises(ConflictError, match="has been modified"):
        await client.merge_patch(FULL_REQUESTS, "one", stale, namespace)
    with pytest.raises(NotFoundError):
        await client.get(FULL_REQUESTS, "two", namespace)
    with pytest.raises(ConflictError, match="UID"):
        await client.delete(FULL_REQUESTS, "one", namespace, uid="another")
    assert await client.delete(FULL_REQUESTS, "one", namespace, uid=made.metadata.uid)


async def test_many_writers_of_one_object_all_succeed(client: KubeClient, namespace: str) -> None:
    await client.create(FULL_REQUESTS, request("one"), namespace)

    def count_up(seen: CapacityRequest) -> dict[str, object]:
        return {"spec": {"priority": seen.spec.priority + 1}}

    await asyncio.gather(
        *(client.change(FULL_REQUESTS, "one", count_up, namespace, tries=100) for _ in range(20))
    )
    assert (await client.get(FULL_REQUESTS, "one", namespace)).spec.priority == 20


async def test_a_missing_right_is_named(kubernetes: ControlPlane, namespace: str) -> None:
    config = from_kubeconfig(kubernetes.user("stranger"))
    async with KubeClient.connect(config) as stranger:
        with pytest.raises(ForbiddenError, match='"stranger" cannot list resource "pods"'):
            await stranger.list_all(PODS, namespace)


async def test_pods_run_and_budgets_decide_evictions(client: KubeClient, namespace: str) -> None:
    shape = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    node = f"node-{namespace}"
    body = {"metadata": {"name": node}, "status": {"allocatable": shape, "capacity": shape}}
    await client.create(NODES, body)
    pods = PODS.read_as(dict)
    for name in ("a", "b"):
        spec = {"containers": [{"name": "c", "image": "none"}]}
        metadata = {"name": name, "labels": {"app": "web"}}
        await client.create(PODS, {"metadata": metadata, "spec": spec}, namespace)

    async def phases() -> list[str]:
        found = await client.list_all(pods, namespace)
        return [item["status"]["phase"] for item in found]

    async with asyncio.timeout(60):
        while await phases() != ["Running", "Running"]:  # noqa: ASYNC110 - no bell rings
            await asyncio.sleep(0.1)
    budget = {
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await client.create(DISRUPTION_BUDGETS, budget, namespace)
    async with asyncio.timeout(60):
        while True:
            found = await client.get(DISRUPTION_BUDGETS.read_as(dict), "web", namespace)
            if found.get("status", {}).get("disruptionsAllowed") == 1:
                break
            await asyncio.sleep(0.1)
    assert await client.evict("a", namespace) is Eviction.EVICTED
    assert await client.evict("b", namespace) is Eviction.BLOCKED
    assert await client.evict("c", namespace) is Eviction.GONE
    assert await client.evict("b", namespace, uid="another") in (Eviction.GONE, Eviction.BLOCKED)
    await client.delete(NODES, node)


async def test_events_are_written_and_counted(client: KubeClient, namespace: str) -> None:
    made = await client.create(FULL_REQUESTS, request("one"), namespace)
    recorder = EventRecorder(client, "bigfleet-test")
    ref = ObjectRef.to(FULL_REQUESTS, made)
    recorder.warn(ref, "Unmet", "no machine of that shape")
    recorder.warn(ref, "Unmet", "no machine of that shape")
    running = asyncio.create_task(recorder.run())
    fields = f"involvedObject.uid={made.metadata.uid}"
    events = EVENTS.read_as(dict)
    async with asyncio.timeout(30):
        while not (found := await client.list_all(events, namespace, fields=fields)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert [(event["reason"], event["count"]) for event in found] == [("Unmet", 2)]
    running.cancel()


async def test_leadership_goes_to_the_next_within_five_seconds_of_a_crash(
    client: KubeClient,
    kubernetes: ControlPlane,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lead() -> None:
        await asyncio.Event().wait()

    async def refuse(*_: object) -> bytes:
        raise UnreachableError("crashed")

    async with KubeClient.connect(from_kubeconfig(kubernetes.kubeconfig)) as other:
        first = LeaderElection(other, "lock", "first", namespace=namespace)
        second = LeaderElection(client, "lock", "second", namespace=namespace)
        crashing = asyncio.create_task(first.run(lead))
        await first.wait_leading()
        waiting = asyncio.create_task(second.run(lead))
        await until(lambda: second.holder == "first")
        # A crash: nothing of the first reaches the server again, not even that it ends.
        monkeypatch.setattr(other.transport, "call", refuse)
        crashing.cancel()
        started = time.monotonic()
        await second.wait_leading()
        assert time.monotonic() - started < 5
        waiting.cancel()
        await asyncio.gather(crashing, waiting, return_exceptions=True)


async def test_an_api_server_that_was_away_is_followed_again_without_a_gap() -> None:
    with control_plane(name="fragile") as plane:
        plane.install(CRDS)
        async with KubeClient.connect(from_kubeconfig(plane.kubeconfig)) as client:
            await client.create(FULL_REQUESTS, request("before"), "default")
            async with following(client, "default") as informer:
                await informer.wait_synced()
                plane.processes["kube-apiserver"].kill()
                await until(lambda: informer.trouble is not None)
                assert list(informer.objects) == ["default/before"], "what was known stays"
                await asyncio.to_thread(plane.restart_api_server)
                await client.create(FULL_REQUESTS, request("after"), "default")
                await until(lambda: len(informer) == 2)
                assert informer.trouble is None


def test_nothing_is_left_of_a_control_plane_that_ended() -> None:
    with control_plane(name="short") as plane:
        pids = [process.pid for process in plane.processes.values()]
        assert all(pid is not None and Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not plane.folder.exists()

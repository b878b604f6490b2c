"""The real substrate against an imitated API server: nodes appear, become Ready and go."""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from bigfleet_fakecloud import Effect, Moment, Rule, serving
from bigfleet_provider_kwok.errors import ApiError
from bigfleet_provider_kwok.servers import Place, Servers
from bigfleet_provider_kwok.spec import SPEC
from bigfleet_providerkit import RunningProvider, State, start
from bigfleet_providerkit.testing import Shard, eventually
from kwok_cloud import ApiServer

CLUSTER = "cluster-a"
JOIN = b"kind: KwokJoin\n"


@contextlib.contextmanager
def a_server() -> Iterator[tuple[ApiServer, str]]:
    server = ApiServer()
    with serving(server.cloud) as url:
        yield server, url


@contextlib.asynccontextmanager
async def a_provider(
    folder: Path, **options: Any
) -> AsyncIterator[tuple[RunningProvider[Any], Shard]]:
    chosen = {"seed_count": 7, "poll_interval": 0.02, "state": str(folder / "state.db"), **options}
    running = await start(SPEC, SPEC.options(**chosen), listen=False)
    try:
        yield running, Shard(running.service)
    finally:
        await running.stop()


def with_kubeconfig(folder: Path, url: str, token: str) -> Path:
    clusters = folder / "clusters"
    clusters.mkdir(exist_ok=True)
    (clusters / f"{CLUSTER}.yaml").write_text(
        f"clusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n"
        f"users: [{{name: u, user: {{token: {token}}}}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    return clusters


def inline(url: str, token: str = "") -> bytes:
    return JOIN + f"server: {url}\ntoken: '{token}'\n".encode()


async def bound(shard: Shard, machine: str, blob: bytes = JOIN) -> None:
    await shard.create(machine)
    await shard.until(machine, State.IDLE)
    await shard.configure(machine, CLUSTER, blob=blob)
    await shard.until(machine, State.CONFIGURED)


async def test_configure_brings_a_node_and_drain_takes_it_away(tmp_path: Path) -> None:
    with a_server() as (server, url):
        async with a_provider(tmp_path) as (_, shard):
            machine = (await shard.machines())[0]
            await bound(shard, machine.id, inline(url))
            (node,) = server.shown()
            machine_now = await shard.get(machine.id)
            assert node["spec"]["providerID"].rpartition("/")[2] == machine_now.host.ref
            assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "kwok-4x16"
            assert node["status"]["allocatable"] == dict(machine_now.allocatable.resources)
            await shard.drain(machine.id, grace=5)
            await shard.until(machine.id, State.IDLE)
            assert server.shown() == []
            await shard.configure(machine.id, CLUSTER, blob=inline(url))
            await shard.until(machine.id, State.CONFIGURED)
            assert len(server.shown()) == 1
        assert server.cloud.refused == []


async def test_the_cluster_decides_which_api_server_a_node_joins(tmp_path: Path) -> None:
    with a_server() as (one, first), a_server() as (other, second):
        async with a_provider(tmp_path) as (_, shard):
            a, b = (machine.id for machine in (await shard.machines())[:2])
            await bound(shard, a, inline(first))
            await bound(shard, b, inline(second))
        assert (len(one.shown()), len(other.shown())) == (1, 1)


async def test_one_api_server_for_all_needs_no_bootstrap_data(tmp_path: Path) -> None:
    with a_server() as (server, url):
        async with a_provider(tmp_path, endpoint_url=url) as (_, shard):
            await bound(shard, (await shard.machines())[0].id, b"#!/bin/sh\n")
        assert len(server.shown()) == 1


async def test_a_drain_evicts_and_waits_until_the_pods_are_gone(tmp_path: Path) -> None:
    with a_server() as (server, url):
        async with a_provider(tmp_path) as (_, shard):
            machine = (await shard.machines())[0].id
            await bound(shard, machine, inline(url))
            (node,) = server.shown()
            server.put_pod("web", node["metadata"]["name"])
            server.put_pod("log", node["metadata"]["name"], owner="DaemonSet")
            await shard.drain(machine, grace=30)
            await shard.until(machine, State.IDLE)
        assert server.cloud.counts["EvictPod"] == 1
        left = [pod.ref for pod in server.pods.everything() if pod.state != "gone"]
        assert left == ["default/log"]


async def test_a_pod_that_a_budget_keeps_fails_the_drain_and_is_named(tmp_path: Path) -> None:
    with a_server() as (server, url):
        async with a_provider(tmp_path, drain_timeout=3.0) as (_, shard):
            machine = (await shard.machines())[0].id
            await bound(shard, machine, inline(url))
            (node,) = server.shown()
            server.put_pod("db", node["metadata"]["name"], kept=True)
            await shard.drain(machine)
            failed = await shard.until(machine, State.FAILED)
            assert "pods are left over: default/db" in failed.last_error
        (node,) = server.shown()
        assert node["spec"]["unschedulable"] is True


async def test_delete_removes_the_node_that_a_failed_machine_left(tmp_path: Path) -> None:
    with a_server() as (server, url):
        options = {"fail_rate": {"configure": 1.0}, "failed_cleanup_after": 0.1}
        async with a_provider(tmp_path, **options) as (running, shard):
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            await shard.until(machine, State.IDLE)
            await shard.configure(machine, CLUSTER, blob=inline(url))
            await shard.until(machine, State.FAILED)
            assert len(server.shown()) == 1

            async def healed() -> bool:
                await running.heal()
                return await shard.state(machine) is State.SPECULATIVE

            await eventually(healed, what="the slot is free again")
        assert server.shown() == []


async def test_bad_bootstrap_data_fails_the_machine_with_the_reason(tmp_path: Path) -> None:
    async with a_provider(tmp_path) as (_, shard):
        machine = (await shard.machines())[0].id
        await shard.create(machine)
        await shard.until(machine, State.IDLE)
        await shard.configure(machine, CLUSTER, blob=b"#!/bin/sh\n")
        failed = await shard.until(machine, State.FAILED)
        assert failed.last_error.startswith("InvalidRequest:")
        assert "no KwokJoin document" in failed.last_error


async def test_a_refused_token_fails_the_machine_as_such(tmp_path: Path) -> None:
    with a_server() as (server, url):
        server.tokens.add("right")
        async with a_provider(tmp_path) as (_, shard):
            right, wrong = (machine.id for machine in (await shard.machines())[:2])
            await bound(shard, right, inline(url, "right"))
            await shard.create(wrong)
            await shard.until(wrong, State.IDLE)
            await shard.configure(wrong, CLUSTER, blob=inline(url, "wrong"))
            failed = await shard.until(wrong, State.FAILED)
            assert failed.last_error.startswith("Unauthorized:")


async def test_a_kubeconfig_by_the_clusters_name_serves_and_is_read_again(tmp_path: Path) -> None:
    with a_server() as (server, url):
        server.tokens.add("old")
        servers = Servers(with_kubeconfig(tmp_path, url, "old"), None)
        place = Place(kubeconfig=CLUSTER)
        assert await (await servers.of(place)).list_nodes("a=b") == []
        server.tokens = {"new"}
        known = await servers.of(place)
        assert await servers.of(place) is known
        with pytest.raises(ApiError, match="401"):
            await known.list_nodes("a=b")
        os.utime(with_kubeconfig(tmp_path, url, "new") / f"{CLUSTER}.yaml", (1, 1))
        assert await (await servers.of(place)).list_nodes("a=b") == []
        await servers.aclose()


@pytest.mark.parametrize("stop", ["stop", "crash"])
async def test_a_restarted_provider_still_knows_how_its_hosts_leave(
    tmp_path: Path, stop: str
) -> None:
    with a_server() as (server, url):
        options = SPEC.options(seed_count=7, poll_interval=0.02, state=str(tmp_path / "state.db"))
        running = await start(SPEC, options, listen=False)
        shard = Shard(running.service)
        machine = (await shard.machines())[0].id
        await bound(shard, machine, inline(url))
        await getattr(running, stop)()
        async with a_provider(tmp_path) as (_, again):
            again.sequence = shard.sequence
            await again.drain(machine)
            await again.until(machine, State.IDLE)
        assert server.shown() == []


async def test_an_api_server_that_is_away_is_waited_for(tmp_path: Path) -> None:
    with a_server() as (server, url):
        async with a_provider(tmp_path) as (_, shard):
            machine = (await shard.machines())[0].id
            await bound(shard, machine, inline(url))
            server.cloud.faults.add(Rule("PatchNode", Moment.BEFORE, Effect.DROP, times=2))
            await shard.drain(machine, grace=30)
            await shard.until(machine, State.IDLE)
        assert server.shown() == []


async def test_a_lost_answer_makes_no_second_node(tmp_path: Path) -> None:
    with a_server() as (server, url):
        server.cloud.faults.add(Rule("CreateNode", Moment.AFTER, Effect.DROP, times=1))
        async with a_provider(tmp_path) as (_, shard):
            await bound(shard, (await shard.machines())[0].id, inline(url))
        assert len(server.shown()) == 1

"""A provider that was written when the interface was frozen goes on working, in all it uses."""

import asyncio
import importlib.util
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bigfleet_providerkit import NoticeKind, OptionError, State, start
from bigfleet_providerkit.testing import Shard, eventually, free_port

PROGRAM = Path(__file__).parents[1] / "compat" / "frozen_provider" / "frozen_provider.py"
OFFERED = """
- {kind: frozen-small, place: frozen-zone, capacity_type: on_demand, count: 2, network: n-7}
- {kind: frozen-small, place: frozen-zone, capacity_type: spot, count: 1}
- {kind: sold-out, place: frozen-zone, count: 1, price_usd_per_hour: 1.0,
   allocatable: {cpu: 1, memory: 1Gi}}
"""


@pytest.fixture
def provider() -> ModuleType:
    """The frozen module with a cloud of its own."""
    found = importlib.util.spec_from_file_location("frozen_provider", PROGRAM)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.ACCOUNT.__init__()
    return module


@asynccontextmanager
async def a_provider(module: ModuleType, **given: Any) -> AsyncIterator[tuple[Any, Shard]]:
    values: dict[str, Any] = {
        "account": "a-1", "state": "memory", "addr": "127.0.0.1:0", "metrics_addr": "0",
        "reconcile_interval": 0.0, "offerings": OFFERED, **given,
    }  # fmt: skip
    running = await start(
        module.SPEC, module.FrozenOptions(**values), listen="metrics_addr" in given
    )
    try:
        yield running, Shard(running.service)
    finally:
        await running.stop()
    substrate: Any = running.substrate
    assert substrate.closed


async def slot(shard: Shard, word: str) -> str:
    machines = await shard.machines(State.SPECULATIVE)
    return next(machine.id for machine in machines if f"/{word}/" in machine.id)


async def test_a_machine_goes_through_its_life(provider: ModuleType) -> None:
    async with a_provider(provider) as (running, shard):
        assert running.substrate.served
        assert running.substrate.accepted == ["frozen-small", "frozen-small", "sold-out"]
        machine = await slot(shard, "OnDemand")
        assert (await shard.get(machine)).price_per_hour == 0.25
        await shard.create(machine)
        idle = await shard.until(machine, State.IDLE)
        await shard.configure(machine, "cluster-a", {"key": "value"}, blob=b"secret")
        await shard.until(machine, State.CONFIGURED)
        host = provider.ACCOUNT.hosts[idle.host.ref]
        assert host.tags["bigfleet:cluster"] == "cluster-a"
        assert provider.ACCOUNT.done[host.ref][1] == len(b"secret")
        await shard.drain(machine)
        await shard.until(machine, State.IDLE)
        await shard.delete(machine)
        await shard.until(machine, State.SPECULATIVE)
        assert provider.ACCOUNT.hosts == {}


async def test_a_lost_answer_makes_no_second_host_and_leftovers_go(provider: ModuleType) -> None:
    async with a_provider(provider, orphan_grace=0.0) as (running, shard):
        provider.ACCOUNT.lose_next = "create"
        machine = await slot(shard, "OnDemand")
        await shard.create(machine)
        await shard.until(machine, State.IDLE)
        assert len(provider.ACCOUNT.hosts) == 1
        await shard.delete(machine)
        await shard.until(machine, State.SPECULATIVE)

        async def swept() -> bool:
            await running.reconcile()
            return not provider.ACCOUNT.disks

        await eventually(swept, what="the disk to go")


async def test_errors_stops_and_notices_are_understood(provider: ModuleType) -> None:
    async with a_provider(provider) as (running, shard):
        machine = next(m.id for m in await shard.machines() if "sold-out" in m.id)
        await shard.create(machine)
        failed = await shard.until(machine, State.FAILED)
        assert failed.last_error == "OutOfCapacity: none left"
        spot = await slot(shard, "Spot")
        await shard.create(spot)
        ref = (await shard.until(spot, State.IDLE)).host.ref
        provider.ACCOUNT.hosts[ref].state = "stopped"

        async def started() -> bool:
            await running.reconcile()
            return bool(provider.ACCOUNT.hosts[ref].state == "running")

        await eventually(started, what="the host to start")
        notice = provider.Notice(
            ref, NoticeKind.WARNING, 0.9, running.substrate._kit.clock.now(), 2e9
        )
        await running.substrate.notices.put(notice)

        async def seen() -> bool:
            return bool((await shard.get(spot)).interruption_unix_nanos == int(2e18))

        await eventually(seen, what="the announced end")


async def test_bad_input_is_refused_with_its_own_words(provider: ModuleType) -> None:
    for given, text in (
        ({"account": "closed"}, "the account is closed"),
        ({"account": None}, "missing option: --account"),
        (
            {"offerings": "- {kind: frozen-small, place: z, count: 1, disk_gb: 2000}"},
            "disks have at most 1000 GB",
        ),
    ):
        with pytest.raises(OptionError, match=text):
            async with a_provider(provider, **given):
                pass


async def test_its_own_route_is_answered(provider: ModuleType) -> None:
    with free_port() as port:
        pass
    address = f"127.0.0.1:{port}"
    async with a_provider(provider, metrics_addr=address, secret_key="s" * 20) as (running, _):
        request = urllib.request.Request(
            f"http://{address}/internal/notice", b'{"ref": "h-1"}', method="POST",
            headers={"Authorization": "Bearer " + "s" * 20},
        )  # fmt: skip

        def send() -> bytes:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return bytes(answer.read())

        assert b"taken" in await asyncio.to_thread(send)
        assert running.substrate.notices.qsize() <= 1


def test_its_command_line_is_the_kits() -> None:
    for arguments, text in (
        (["--version"], "frozen 1.0.0"),
        (["--help"], "FROZEN_ACCOUNT"),
        (["check", "--use-fake-backend"], "frozen: options, credentials and offerings are fine"),
    ):
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *arguments],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert text in done.stdout


def test_it_passes_the_checks_of_a_quick_certification(tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("bigfleet-conformance")), "run", "--quick", "--port=0",
        "--exec", f"{sys.executable} {PROGRAM}", "--out", str(tmp_path),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]

"""The real substrate against the imitation of its cloud, both as processes of their own."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bigfleet_providerkit import State
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard, eventually, free_port

COMMAND = ProviderProcess.module("bigfleet_provider_template")
PAGE = Path(__file__).parents[1] / "support" / "template_cloud.py"


@dataclass(frozen=True)
class CloudProcess:
    """The imitation, and the levers that its control API has."""

    endpoint: str

    def control(self, method: str, path: str, body: object = None) -> dict[str, object]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/_control/{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
        return dict(json.loads(text)) if text else {}

    def hosts(self) -> list[dict[str, object]]:
        shown = self.control("GET", "resources/hosts")["resources"]
        assert isinstance(shown, list)
        return [host for host in shown if host["state"] not in ("ended", "reclaimed")]

    def boot(self, folder: Path, *arguments: str) -> ProviderProcess:
        return ProviderProcess(
            COMMAND, f"--endpoint-url={self.endpoint}", f"--state={folder / 'state.db'}",
            "--poll-interval=20ms", "--seed-count=6", *arguments,
            environment={"EXAMPLE_TOKEN": "test"}, log=folder / "log",
        )  # fmt: skip


@contextlib.contextmanager
def a_cloud(*arguments: str) -> Iterator[CloudProcess]:
    with free_port() as port:
        command = [sys.executable, str(PAGE), f"--addr=127.0.0.1:{port}", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            assert process.poll() is None, "the imitation did not start"
            assert time.monotonic() < ends, "the imitation did not open its port"
            time.sleep(0.01)
        yield CloudProcess(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


async def test_one_machine_through_its_life(tmp_path: Path) -> None:
    with a_cloud() as cloud, cloud.boot(tmp_path).wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            idle = await shard.until(machine, State.IDLE)
            (host,) = cloud.hosts()
            assert idle.host.ref == host["ref"]
            await shard.configure(machine, "cluster-a", {"key": "value"}, blob=b"x" * 200_000)
            await shard.until(machine, State.CONFIGURED)
            (host,) = cloud.hosts()
            tags = host["tags"]
            assert isinstance(tags, dict)
            assert tags["bigfleet:cluster"] == "cluster-a"
            assert tags["bigfleet:machine-id"] == machine
            await shard.drain(machine)
            await shard.until(machine, State.IDLE)
            await shard.delete(machine)
            await shard.until(machine, State.SPECULATIVE)
        assert cloud.hosts() == []
        assert cloud.control("GET", "state")["refused"] == []
        assert provider.stop() == 0


async def test_an_answer_that_was_lost_makes_no_second_host(tmp_path: Path) -> None:
    with a_cloud() as cloud, cloud.boot(tmp_path).wait_open() as provider:
        cloud.control("POST", "faults", {"op": "CreateHost", "moment": "after", "effect": "drop"})
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            await shard.until(machine, State.IDLE)
        assert len(cloud.hosts()) == 1


async def test_a_provider_that_was_killed_finds_its_host_again(tmp_path: Path) -> None:
    with a_cloud("--latency-ms=300") as cloud:
        with cloud.boot(tmp_path).wait_open() as provider:
            async with provider.channel() as channel:
                shard = Shard(Remote(channel))
                machine = (await shard.machines())[0].id
                await shard.create(machine)

                async def launched() -> bool:
                    return len(await asyncio.to_thread(cloud.hosts)) == 1

                await eventually(launched)
            provider.kill()
        with cloud.boot(tmp_path).wait_open() as again:
            async with again.channel() as channel:
                await Shard(Remote(channel)).until(machine, State.IDLE)
        assert len(cloud.hosts()) == 1


async def test_a_stock_out_and_a_lost_host_are_told_by_their_words(tmp_path: Path) -> None:
    with a_cloud() as cloud, cloud.boot(tmp_path, "--reconcile-interval=200ms").wait_open() as it:
        async with it.channel() as channel:
            shard = Shard(Remote(channel))
            first, second = (machine.id for machine in (await shard.machines())[:2])
            await shard.create(first)
            lost = await shard.until(first, State.IDLE)
            cloud.control("POST", f"resources/hosts/{lost.host.ref}/delete")
            failed = await shard.until(first, State.FAILED)
            assert failed.last_error.startswith("HostLost:")
            none = {"key": ["example-standard-4", "example-zone-a"], "limit": 0}
            cloud.control("PUT", "stock", none)
            await shard.create(second)
            failed = await shard.until(second, State.FAILED)
            assert failed.last_error.startswith("OutOfCapacity:")


async def test_an_announced_end_is_shown(tmp_path: Path) -> None:
    with a_cloud() as cloud, cloud.boot(tmp_path).wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            host = (await shard.until(machine, State.IDLE)).host.ref
            cloud.control("POST", f"resources/hosts/{host}/reclaim")

            async def announced() -> bool:
                return (await shard.get(machine)).interruption_unix_nanos > 0

            await eventually(announced, what="the announced end")
            assert (await shard.get(machine)).interruption_probability > 0.9


def test_without_an_address_it_does_not_start(tmp_path: Path) -> None:
    command = [*COMMAND, "--addr=127.0.0.1:0", "--token=x", f"--state={tmp_path / 's.db'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--endpoint-url is required" in done.stderr


def test_the_fake_backend_imports_no_sdk() -> None:
    program = (
        "import asyncio, sys\n"
        "from bigfleet_provider_template.spec import SPEC\n"
        "from bigfleet_providerkit import start\n"
        "async def main():\n"
        "    running = await start(SPEC, SPEC.options(use_fake_backend=True, addr='127.0.0.1:0',"
        " metrics_addr='127.0.0.1:0'))\n"
        "    await running.stop()\n"
        "asyncio.run(main())\n"
        "print([name for name in ('aiohttp', 'asyncssh', 'bigfleet_provider_template.client')"
        " if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr

"""The executable on its fake backend, and what it says when something is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bigfleet_providerkit import State
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard

COMMAND = ProviderProcess.module("bigfleet_provider_digitalocean")


async def test_one_machine_through_its_life(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state.db'}"
    process = ProviderProcess(COMMAND, "--use-fake-backend", "--seed-count=6", state)
    with process.wait_open() as provider:
        async with provider.channel() as channel:
            shard = Shard(Remote(channel))
            machine = (await shard.machines())[0].id
            await shard.create(machine)
            await shard.until(machine, State.IDLE)
            await shard.configure(machine, "cluster-a", {"key": "value"})
            bound = await shard.until(machine, State.CONFIGURED)
            assert (bound.cluster, dict(bound.shard_metadata)) == ("cluster-a", {"key": "value"})
            await shard.drain(machine)
            await shard.until(machine, State.IDLE)
            await shard.delete(machine)
            await shard.until(machine, State.SPECULATIVE)
        assert provider.stop() == 0


def ended(*arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code and last words of a start that cannot go on."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIGITALOCEAN_", "BIGFLEET_"))}
    done = subprocess.run(
        [*COMMAND, "--addr=127.0.0.1:0", "--metrics-addr=0", *arguments],
        capture_output=True, text=True, timeout=60, check=False, env={**kept, **variables},
    )  # fmt: skip
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


def test_everything_that_is_missing_is_named_at_once() -> None:
    code, text = ended()
    assert code == 2
    for part in (
        "digitalocean: no credentials found (option, file, environment); set DIGITALOCEAN_TOKEN, "
        "or run with --use-fake-backend",
        "missing options: --bootstrap-endpoint, --bootstrap-tls-cert, --bootstrap-tls-key, "
        "--bootstrap-secret",
        "--state is required",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("offering", "text"),
    [
        (
            "{size: r9z.large, region: nyc3, count: 1}",
            "the shape of r9z.large is not known; check the type",
        ),
        ("{size: c-4, region: nyc3, capacity_type: spot, count: 1}", "spot"),
        (
            "{size: c-4, region: nyc3, count: 1}\n- {size: c-4, region: nyc3, count: 1}",
            "offering 2: same type",
        ),
    ],
)
def test_offerings_that_cannot_be_are_refused(offering: str, text: str) -> None:
    code, message = ended("--use-fake-backend", f"--offerings=- {offering}")
    assert code == 2
    assert text in message


def test_the_fake_backend_imports_no_sdk() -> None:
    program = (
        "import asyncio, sys\n"
        "from bigfleet_provider_digitalocean.spec import SPEC\n"
        "from bigfleet_providerkit import start\n"
        "async def main():\n"
        "    running = await start(SPEC, SPEC.options(use_fake_backend=True, addr='127.0.0.1:0',"
        " metrics_addr='127.0.0.1:0'))\n"
        "    await running.stop()\n"
        "asyncio.run(main())\n"
        "print([name for name in ('pydo', 'azure', 'bigfleet_provider_digitalocean.client')"
        " if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr

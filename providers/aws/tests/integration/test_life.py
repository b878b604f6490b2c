"""The executable on its fake backend, and what it says when something is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bigfleet_providerkit import State
from bigfleet_providerkit.testing import ProviderProcess, Remote, Shard

COMMAND = ProviderProcess.module("bigfleet_provider_aws")


async def test_one_machine_through_its_life(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state.db'}"
    process = ProviderProcess(COMMAND, "--use-fake-backend", "--seed-count=8", state)
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
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environment = {
        **kept, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull, **variables,
    }  # fmt: skip
    done = subprocess.run(
        [*COMMAND, "--addr=127.0.0.1:0", "--metrics-addr=0", *arguments],
        capture_output=True, text=True, timeout=60, check=False, env=environment,
    )  # fmt: skip
    assert done.stderr.count("\n") == 1, done.stderr
    return done.returncode, done.stderr


def test_everything_that_is_missing_is_named_at_once() -> None:
    pytest.importorskip("boto3")
    code, text = ended()
    assert code == 2
    for part in (
        "aws: no credentials found (environment, shared file, instance role); set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with --use-fake-backend",
        "no region: give --region or set AWS_REGION",
        "missing options: --image, --iam-instance-profile",
        "--state is required",
    ):
        assert part in text


def test_an_endpoint_of_an_unknown_service_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    code, text = ended(
        "--region=us-east-1", "--image=ami-1", "--iam-instance-profile=x",
        "--endpoint-url=ec3=http://127.0.0.1:1", f"--state={tmp_path / 's.db'}",
        AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y",
    )  # fmt: skip
    assert code == 2
    assert "'ec3' is not a service; choose from ec2, ssm" in text


def test_the_fake_backend_imports_no_sdk() -> None:
    program = (
        "import asyncio, sys\n"
        "from bigfleet_provider_aws.spec import SPEC\n"
        "from bigfleet_providerkit import start\n"
        "async def main():\n"
        "    running = await start(SPEC, SPEC.options(use_fake_backend=True, addr='127.0.0.1:0',"
        " metrics_addr='127.0.0.1:0'))\n"
        "    await running.stop()\n"
        "asyncio.run(main())\n"
        "print([name for name in ('boto3', 'botocore', 'bigfleet_provider_aws.sessions')"
        " if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr

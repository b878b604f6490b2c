"""The real substrate with the real SDK on the imitated AWS, in one process: what most tests need.

    async with aws_world() as world:
        machine = await world.idle()

The cloud serves in a thread, so its levers are at hand; the provider runs on the test's loop.
`a_cloud_process` has both as processes, for tests that kill the provider.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from aws_cloud import AwsCloud
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_fakecloud import Resource, serving
from bigfleet_lab.battery import Boot, KillSubject, Subject
from bigfleet_provider_aws.options import AwsOptions
from bigfleet_provider_aws.spec import SPEC
from bigfleet_providerkit import RunningProvider, State, start
from bigfleet_providerkit.testing import ProviderProcess, Shard

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
NO_OTHERS = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
PAGE = Path(__file__).with_name("aws_cloud.py")
ENDED = ("terminated", "reclaimed", "shutting-down")
USUAL: Mapping[str, object] = {
    "region": "us-east-1",
    "image": {"amd64": "ami-0amd64", "arm64": "ami-0arm64"},
    "iam_instance_profile": "bigfleet-node",
    "poll_interval": 0.02,
    "reconcile_interval": 0.0,
    "seed_count": 8,
    "state": "memory",
    "addr": "127.0.0.1:0",
    "metrics_addr": "0",
}


@contextlib.contextmanager
def credentials(**variables: str) -> Iterator[None]:
    """The environment of a provider: these credentials and none of this machine."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    with mock.patch.dict(os.environ, {**kept, **NO_OTHERS, **(variables or KEYS)}, clear=True):
        yield


@dataclass
class AwsWorld:
    """A provider and its cloud."""

    aws: AwsCloud
    endpoint: str
    running: RunningProvider[AwsOptions]
    shard: Shard

    def hosts(self) -> list[Resource]:
        """Instances that are not on their way out."""
        return present(self.aws)

    def subject(self) -> Subject:
        """What the tests of every provider look at."""
        return Subject(
            self.running, self.shard, self.aws.cloud, self.hosts,
            lambda host: host.tags.get("bigfleet:machine-id", host.ref),
        )  # fmt: skip

    async def slots(self, word: str = "OnDemand") -> list[str]:
        """Free slots of a capacity type."""
        machines = await self.shard.machines(State.SPECULATIVE)
        return [machine.id for machine in machines if f"/{word}/" in machine.id]

    async def idle(self, word: str = "OnDemand") -> pb.Machine:
        """A machine with a host."""
        machine = (await self.slots(word))[0]
        await self.shard.create(machine)
        return await self.shard.until(machine, State.IDLE)

    async def failed(self, word: str = "OnDemand") -> str:
        """What a Create says that fails."""
        machine = (await self.slots(word))[0]
        await self.shard.create(machine)
        return (await self.shard.until(machine, State.FAILED)).last_error


def present(aws: AwsCloud) -> list[Resource]:
    """Instances that are not on their way out."""
    return [host for host in aws.ec2.instances.everything() if host.state not in ENDED]


def booted(endpoint: str, slots: int = 4, *more: str) -> Boot:
    """Starts the executable on a cloud, with its state in a folder."""
    rates = ("RunInstances", "TerminateInstances", "CreateTags", "DescribeInstances", "SendCommand")

    def boot(folder: Path) -> ProviderProcess:
        return ProviderProcess(
            ProviderProcess.module("bigfleet_provider_aws"), f"--endpoint-url={endpoint}",
            f"--spot-advisor-url={endpoint}/spot-advisor-data.json", "--region=us-east-1",
            "--image=amd64=ami-0amd64,arm64=ami-0arm64", "--iam-instance-profile=bigfleet-node",
            f"--state={folder / 'state.db'}", "--poll-interval=50ms", f"--seed-count={slots}",
            f"--api-rate={','.join(f'{op}=500' for op in rates)}",
            *more, environment={**KEYS, **NO_OTHERS}, log=folder / "log",
        )  # fmt: skip

    return boot


@contextlib.contextmanager
def kill_subject() -> Iterator[KillSubject]:
    """A new cloud for a provider that is killed. A Configure that was cut off before its script
    arrived ends with its time, which is short here."""
    aws = AwsCloud(1)
    with serving(aws.cloud) as endpoint:
        boot = booted(endpoint, 4, "--configure-timeout=30s")
        yield KillSubject(boot, aws.cloud, lambda: present(aws))


def options_for(endpoint: str, **changed: object) -> AwsOptions:
    """Options of a provider on the imitated cloud."""
    return AwsOptions.model_validate(
        {
            **USUAL,
            "endpoint_url": endpoint,
            "spot_advisor_url": f"{endpoint}/spot-advisor-data.json",
            **changed,
        }
    )


@contextlib.asynccontextmanager
async def aws_world(
    *, queue: bool = False, listen: bool = False, **changed: Any
) -> AsyncIterator[AwsWorld]:
    """A provider on a cloud of its own, with a queue of notices and a gRPC port where wanted."""
    aws = AwsCloud(1)
    with credentials(), serving(aws.cloud) as endpoint:
        if queue:
            changed["spot_interruption_queue"] = f"{endpoint}/1/bigfleet"
        running = await start(SPEC, options_for(endpoint, **changed), listen=listen)
        try:
            yield AwsWorld(aws, endpoint, running, Shard(running.service))
            assert aws.cloud.refused == []
        finally:
            await running.stop()

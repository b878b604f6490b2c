"""The real substrate with the real SDK on the imitated Hetzner Cloud, in one process.

    async with hetzner_world() as world:
        machine = await world.idle()

The cloud serves in a thread, so its levers are at hand; the provider runs on the test's loop.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_fakecloud import Resource, serving
from bigfleet_lab.battery import Boot, FastClock, KillSubject, Subject
from bigfleet_provider_hetzner.options import HetznerOptions
from bigfleet_provider_hetzner.spec import CALLS, SPEC
from bigfleet_providerkit import RunningProvider, Runtime, State, start
from bigfleet_providerkit.codec.tags import MACHINE
from bigfleet_providerkit.testing import ProviderProcess, Shard
from hetzner_cloud import HetznerCloud

PAGE = Path(__file__).with_name("hetzner_cloud.py")
MUTATIONS = ("CreateServer", "DeleteServer", "UpdateLabels")
USUAL: Mapping[str, object] = {
    "token": "test",
    "poll_interval": 0.02,
    "reconcile_interval": 0.0,
    "seed_count": 8,
    "state": "memory",
    "addr": "127.0.0.1:0",
    "metrics_addr": "0",
}


@dataclass
class HetznerWorld:
    """A provider and its cloud."""

    hetzner: HetznerCloud
    endpoint: str
    running: RunningProvider[HetznerOptions]
    shard: Shard

    def hosts(self) -> Sequence[Resource]:
        """Servers that are not on their way out."""
        return self.hetzner.present()

    def subject(self) -> Subject:
        """What the tests of every provider look at."""
        codec = self.running.backend.kit.codec
        return Subject(
            self.running, self.shard, self.hetzner.cloud, self.hetzner.present,
            lambda host: host.tags.get(codec.key(MACHINE), host.ref),
        )  # fmt: skip

    async def idle(self) -> pb.Machine:
        """A machine with a host."""
        machine = (await self.shard.machines(State.SPECULATIVE))[0].id
        await self.shard.create(machine)
        return await self.shard.until(machine, State.IDLE)

    async def failed(self) -> str:
        """What a Create says that fails."""
        machine = (await self.shard.machines(State.SPECULATIVE))[0].id
        await self.shard.create(machine)
        return (await self.shard.until(machine, State.FAILED)).last_error


def options_for(hetzner: HetznerCloud, endpoint: str, **changed: object) -> HetznerOptions:
    """Options of a provider on the imitated cloud."""
    ssh = hetzner.guests.ssh
    assert ssh is not None
    return HetznerOptions.model_validate(
        {
            **USUAL,
            "endpoint_url": endpoint,
            "ssh_key": str(ssh.client_key),
            "ssh_port": ssh.port,
            "api_rate": dict.fromkeys(CALLS, 500.0),
            **changed,
        }
    )


def booted(hetzner: HetznerCloud, endpoint: str, slots: int = 4) -> Boot:
    """Starts the executable on a cloud, with its state in a folder."""
    ssh = hetzner.guests.ssh
    assert ssh is not None
    key, port = ssh.client_key, ssh.port

    def boot(folder: Path) -> ProviderProcess:
        return ProviderProcess(
            ProviderProcess.module("bigfleet_provider_hetzner"), f"--endpoint-url={endpoint}",
            f"--ssh-key={key}", f"--ssh-port={port}", f"--state={folder / 'state.db'}",
            "--poll-interval=50ms", f"--seed-count={slots}", "--api-rate=CreateServer=500",
            environment={"HCLOUD_TOKEN": "test"}, log=folder / "log",
        )  # fmt: skip

    return boot


@contextlib.contextmanager
def kill_subject() -> Iterator[KillSubject]:
    """A new cloud for a provider that is killed."""
    hetzner = HetznerCloud(1)
    with serving(hetzner.cloud) as endpoint:
        yield KillSubject(booted(hetzner, endpoint), hetzner.cloud, hetzner.present)


@contextlib.asynccontextmanager
async def hetzner_world(
    clock: FastClock | None = None, **changed: Any
) -> AsyncIterator[HetznerWorld]:
    """A provider on a cloud of its own, both on the same clock."""
    hetzner = HetznerCloud(1, clock)
    runtime = Runtime(clock) if clock else None
    with serving(hetzner.cloud) as endpoint:
        options = options_for(hetzner, endpoint, **changed)
        running = await start(SPEC, options, listen=False, runtime=runtime)
        try:
            yield HetznerWorld(hetzner, endpoint, running, Shard(running.service))
            assert hetzner.cloud.refused == []
        finally:
            await running.stop()

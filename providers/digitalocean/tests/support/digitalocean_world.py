"""The real substrate with the real SDK on the imitated DigitalOcean, in one process.

    async with digitalocean_world() as world:
        machine = await world.idle()

The cloud serves over TLS in a thread, so its levers are at hand; the provider and the server of its
agents run on the test's loop.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_fakecloud import Resource, TestAuthority, serving
from bigfleet_lab.battery import Boot, FastClock, KillSubject, Subject
from bigfleet_provider_digitalocean.options import DigitaloceanOptions
from bigfleet_provider_digitalocean.spec import SPEC
from bigfleet_providerkit import RunningProvider, Runtime, State, start
from bigfleet_providerkit.codec.flat import FlatTags
from bigfleet_providerkit.codec.tags import MACHINE
from bigfleet_providerkit.testing import ProviderProcess, Shard, free_port
from digitalocean_cloud import DigitaloceanCloud

TOKEN = "the token of a test"
SECRET = "the agents of a test have this secret"
PAGE = Path(__file__).with_name("digitalocean_cloud.py")
USUAL: Mapping[str, object] = {
    "token": TOKEN,
    "region": "nyc3",
    "bootstrap_secret": SECRET,
    "poll_interval": 0.02,
    "reconcile_interval": 0.0,
    "seed_count": 8,
    "state": "memory",
    "addr": "127.0.0.1:0",
    "metrics_addr": "0",
    # At the rate of a real account a test would take minutes.
    "api_rate": {"CreateDroplet": 1000.0},
}


@dataclass
class DigitaloceanWorld:
    """A provider and its cloud."""

    page: DigitaloceanCloud
    endpoint: str
    running: RunningProvider[DigitaloceanOptions]
    shard: Shard

    def hosts(self) -> list[Resource]:
        """Droplets that are not on their way out."""
        return self.page.present()

    def subject(self) -> Subject:
        """What the tests of every provider look at."""
        codec = self.running.backend.kit.codec
        flat = FlatTags(codec)
        return Subject(
            self.running, self.shard, self.page.cloud, self.hosts,
            lambda host: flat.read(host.tags).get(codec.key(MACHINE), host.ref),
        )  # fmt: skip

    def ever(self) -> int:
        """How many Droplets were ordered."""
        return self.page._numbers - 400_000_000

    async def slots(self) -> list[str]:
        """Free slots."""
        return [machine.id for machine in await self.shard.machines(State.SPECULATIVE)]

    async def idle(self) -> pb.Machine:
        """A machine with a host."""
        machine = (await self.slots())[0]
        await self.shard.create(machine)
        return await self.shard.until(machine, State.IDLE)

    async def failed(self) -> str:
        """What a Create says that fails."""
        machine = (await self.slots())[0]
        await self.shard.create(machine)
        return (await self.shard.until(machine, State.FAILED)).last_error


def options_for(page: DigitaloceanCloud, endpoint: str, **changed: object) -> DigitaloceanOptions:
    """Options of a provider on the imitated cloud, with a port for its agents."""
    with free_port() as port:
        pass
    facts = page.cloud.facts
    return DigitaloceanOptions.model_validate(
        {
            **USUAL,
            "endpoint_url": endpoint,
            "bootstrap_addr": f"127.0.0.1:{port}",
            "bootstrap_endpoint": f"https://127.0.0.1:{port}",
            "bootstrap_tls_cert": facts["agent_cert"],
            "bootstrap_tls_key": facts["agent_key"],
            "bootstrap_ca": facts["agent_ca"],
            **changed,
        }
    )


def booted(
    page: DigitaloceanCloud, endpoint: str, authority: TestAuthority, slots: int = 4
) -> Boot:
    """Starts the executable on a cloud, with its state in a folder and one port for its agents."""
    with free_port() as port:
        pass
    facts = page.cloud.facts
    variables = {
        "DIGITALOCEAN_TOKEN": TOKEN,
        "BIGFLEET_BOOTSTRAP_SECRET": SECRET,
        "SSL_CERT_FILE": str(authority.ca),
    }

    def boot(folder: Path) -> ProviderProcess:
        return ProviderProcess(
            ProviderProcess.module("bigfleet_provider_digitalocean"), f"--endpoint-url={endpoint}",
            f"--bootstrap-addr=127.0.0.1:{port}", f"--bootstrap-endpoint=https://127.0.0.1:{port}",
            f"--bootstrap-tls-cert={facts['agent_cert']}",
            f"--bootstrap-tls-key={facts['agent_key']}", f"--bootstrap-ca={facts['agent_ca']}",
            f"--state={folder / 'state.db'}", "--region=nyc3", "--poll-interval=50ms",
            f"--seed-count={slots}", "--api-rate=CreateDroplet=500",
            environment=variables, log=folder / "log",
        )  # fmt: skip

    return boot


@contextlib.contextmanager
def kill_subject() -> Iterator[KillSubject]:
    """A new cloud for a provider that is killed."""
    page = DigitaloceanCloud(1)
    with TemporaryDirectory(prefix="bigfleet-tls-") as folder:
        authority = TestAuthority.make(Path(folder))
        with serving(page.cloud, authority=authority) as endpoint:
            yield KillSubject(booted(page, endpoint, authority), page.cloud, page.present)


@contextlib.contextmanager
def trusting(authority: TestAuthority) -> Iterator[None]:
    """The environment of a provider that trusts the authority of the imitation."""
    with mock.patch.dict(os.environ, {"SSL_CERT_FILE": str(authority.ca)}):
        yield


@contextlib.asynccontextmanager
async def digitalocean_world(
    clock: FastClock | None = None, *, window_s: float = 30.0, **changed: Any
) -> AsyncIterator[DigitaloceanWorld]:
    """A provider on a cloud of its own, both on the same clock; `window_s` is in how long a new
    host is listed."""
    spec = replace(SPEC, consistency_window=window_s)
    page = DigitaloceanCloud(1, clock)
    runtime = Runtime(clock) if clock else None
    with TemporaryDirectory(prefix="bigfleet-tls-") as folder:
        authority = TestAuthority.make(Path(folder))
        with trusting(authority), serving(page.cloud, authority=authority) as endpoint:
            options = options_for(page, endpoint, **changed)
            running = await start(spec, options, listen=False, runtime=runtime)
            try:
                yield DigitaloceanWorld(page, endpoint, running, Shard(running.service))
                assert page.cloud.refused == []
            finally:
                await running.stop()

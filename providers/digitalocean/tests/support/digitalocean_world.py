"""The real substrate with the real SDK on the imitated DigitalOcean, in one process.

    async with digitalocean_world() as world:
        machine = await world.idle()

The cloud serves over TLS in a thread, so its levers are at hand; the provider and the server of its
agents run on the test's loop.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_fakecloud import Resource, TestAuthority, serving
from bigfleet_provider_digitalocean.options import DigitaloceanOptions
from bigfleet_provider_digitalocean.spec import SPEC
from bigfleet_providerkit import RunningProvider, State, start
from bigfleet_providerkit.testing import Shard, free_port
from digitalocean_cloud import DigitaloceanCloud

TOKEN = "the token of a test"
SECRET = "the agents of a test have this secret"
PAGE = Path(__file__).with_name("digitalocean_cloud.py")
GONE = ("archive",)
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
        return [host for host in self.page.droplets.everything() if host.state not in GONE]

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


@contextlib.contextmanager
def trusting(authority: TestAuthority) -> Iterator[None]:
    """The environment of a provider that trusts the authority of the imitation."""
    with mock.patch.dict(os.environ, {"SSL_CERT_FILE": str(authority.ca)}):
        yield


@contextlib.asynccontextmanager
async def digitalocean_world(**changed: Any) -> AsyncIterator[DigitaloceanWorld]:
    """A provider on a cloud of its own."""
    page = DigitaloceanCloud(1)
    with TemporaryDirectory(prefix="bigfleet-tls-") as folder:
        authority = TestAuthority.make(Path(folder))
        with trusting(authority), serving(page.cloud, authority=authority) as endpoint:
            options = options_for(page, endpoint, **changed)
            running = await start(SPEC, options, listen=False)
            try:
                yield DigitaloceanWorld(page, endpoint, running, Shard(running.service))
                assert page.cloud.refused == []
            finally:
                await running.stop()

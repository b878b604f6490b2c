"""The fake inside a process: started, spoken to and disturbed from a test.

With a virtual runtime everything happens on that clock and without sockets or threads; with a real
one it may listen like the executable. Its levers speak of machines where the cloud speaks of hosts.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from bigfleet.model import CapacityType
from bigfleet.provider.client import ProviderClient, ProviderSite
from bigfleet.wire.fencing import FencingStamps
from bigfleet_lab.fake.local import LocalTransport
from bigfleet_lab.fake.spec import REGION, FakeOptions, spec_for
from bigfleet_lab.fake.substrate import FakeSubstrate
from bigfleet_providerkit import CapacityType as KitCapacityType
from bigfleet_providerkit import NoticeKind, RunningProvider, Runtime, SubstrateError, start

_NO_SOCKET = "in-process:0"


class FakeProvider:
    """A running fake and its levers."""

    def __init__(self, running: RunningProvider[FakeOptions]) -> None:
        assert isinstance(running.substrate, FakeSubstrate)
        self.running = running
        self.substrate = running.substrate

    @classmethod
    async def start(
        cls, *, runtime: Runtime | None = None, listen: bool = False, **options: object
    ) -> Self:
        """Start it on this event loop. Options are those of the executable, with underscores.

        With `listen` it has a port of the loopback interface, any free one unless `addr` says so.
        """
        given = {"addr": "127.0.0.1:0", "metrics_addr": "", **options}
        chosen = FakeOptions.model_validate(given)
        return cls(await start(spec_for(chosen), chosen, runtime=runtime, listen=listen))

    @property
    def site(self) -> ProviderSite:
        """Where it is; the address means nothing when it does not listen."""
        address = self.running.address or _NO_SOCKET
        return ProviderSite(self.running.settings.label, address, REGION)

    def client(self, stamps: FencingStamps) -> ProviderClient:
        """A client without a socket. Over gRPC, dial `site`."""
        return ProviderClient(self.site, stamps, LocalTransport(self.running.service))

    async def lose(self, machine_id: str) -> None:
        """The machine's host is gone; seen by this reconcile, which is run at once."""
        await self.substrate.lose(self._host_of(machine_id))
        # A missing host is believed lost at the second look.
        await self.running.reconcile()
        await self.running.reconcile()

    def announce_end(self, machine_id: str, in_seconds: float) -> None:
        """The machine's host will be taken away: what a spot market says before it does so."""
        ends = self.substrate.now() + in_seconds
        self.substrate.notify(self._host_of(machine_id), NoticeKind.WARNING, 1.0, ends)

    def stock_out(self, instance_type: str, zone: str) -> None:
        """No more of this type in this zone, until `restock`."""
        self.substrate.stock_out(instance_type, zone)

    def restock(self, instance_type: str, zone: str) -> None:
        """There is some again."""
        self.substrate.restock(instance_type, zone)

    def delay(self, kind: str, seconds: float) -> None:
        """How long transitions of a kind (create, configure, drain, delete) take from now on."""
        self.substrate.delays[kind] = seconds

    def fail_next(self, kind: str, *errors: SubstrateError) -> None:
        """The next calls of a kind fail like this."""
        self.substrate.fail_next(kind, *errors)

    async def set_price(
        self, instance_type: str, capacity_type: CapacityType, dollars: float
    ) -> None:
        """A new price per hour, seen at once on every machine of the type."""
        kind = KitCapacityType(int(capacity_type))
        self.substrate.set_price(instance_type, "", kind, dollars)
        await self.running.refresh_prices()

    async def stop(self) -> None:
        """A graceful stop."""
        await self.running.stop()

    async def crash(self) -> None:
        """An end as by SIGKILL."""
        await self.running.crash()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def _host_of(self, machine_id: str) -> str:
        record = self.running.backend.ledger.inventory.get(machine_id)
        if record is None or not record.host:
            raise LookupError(f"machine {machine_id!r} has no host that could be lost")
        return record.host

"""The cloud of `bigfleet demo`: 120 machines in three zones, asynchronous, and not always willing.

48 machines are owned: they exist from the first start on and cost nothing more. 72 are elastic and
exist when a person creates them. It is the fake with another price list, so calls, fences, delays
and durability are the real thing's; `Showroom` has the levers that scenarios pull.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_lab.fake.handle import FakeProvider
from bigfleet_lab.fake.spec import FakeOptions, spec_for
from bigfleet_providerkit import (
    Bucket,
    Capacity,
    CapacityType,
    PriceTable,
    ProviderSpec,
    start,
)
from bigfleet_providerkit.machines.state import State

ZONES: Final = ("north-1a", "north-1b", "north-1c")
REGION: Final = "north-1"
LABEL: Final = "simcloud"
TYPE: Final = "gp.2xlarge"
OWNED_TYPE: Final = "metal.2xlarge"
_SHAPE: Final = {"cpu": "8", "memory": "32Gi"}
_PREPAID: Final = 1e-9
"""Dollars per hour of what is paid in advance; the kit knows only bare metal as free of charge."""
_WAYS: Final = (
    (CapacityType.BARE_METAL, OWNED_TYPE, 24, 0.0, 0.0),
    (CapacityType.RESERVED, TYPE, 24, _PREPAID, 0.0),
    (CapacityType.ON_DEMAND, TYPE, 40, 0.38, 0.05),
    (CapacityType.SPOT, TYPE, 32, 0.12, 0.30),
)
_CREATE_SECONDS: Final = 4.0
_CREATE_FAILS: Final = 0.03
_OWNED: Final = frozenset({CapacityType.BARE_METAL, CapacityType.RESERVED})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cloud listens and what it remembers by."""

    addr: str
    metrics_addr: str
    state: Path
    seed: int = 1


class Showroom:
    """The running cloud and its levers."""

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider

    @classmethod
    async def open(cls, place: Place) -> Showroom:
        """Start it; owned machines exist when it returns."""
        options = FakeOptions.model_validate(
            {
                "addr": place.addr,
                "metrics_addr": place.metrics_addr,
                "provider": LABEL,
                "state": str(place.state),
                "delays": {"configure": "2s", "drain": "1500ms", "delete": "1s"},
                "losses": {"spot": 0.3},
                "failed_cleanup_after": 20.0,
                "reconcile_interval": 2.0,
                "fake_seed": place.seed,
            }
        )
        room = cls(FakeProvider(await start(_spec(options), options)))
        room.provider.delay("create", 0.0)
        await room._fill()
        await room._settled()
        room.provider.delay("create", _CREATE_SECONDS)
        room.provider.substrate.set_fail_rate("create", _CREATE_FAILS)
        return room

    async def lose_zone(self, zone: str) -> int:
        """Every host of a zone is gone, and there are none to be had; how many were lost."""
        self._stock(zone, sold_out=True)
        return await self._lose(lambda host_zone, _: host_zone == zone)

    async def reclaim_spot(self, share: float) -> int:
        """The market takes this share of the spot hosts back; how many."""
        left = [round(share * sum(kind is CapacityType.SPOT for _, kind in self._hosts().values()))]

        def taken(_zone: str, kind: CapacityType) -> bool:
            if kind is not CapacityType.SPOT or not left[0]:
                return False
            left[0] -= 1
            return True

        return await self._lose(taken)

    def sell_out(self, sold_out: bool) -> None:
        """No more of the elastic type anywhere, or some again."""
        for zone in ZONES:
            self._stock(zone, sold_out=sold_out)

    async def restore(self, zone: str) -> None:
        """A zone that failed can be used again, and what is owned in it comes back."""
        self._stock(zone, sold_out=False)
        await self._fill()

    async def close(self) -> None:
        """A graceful stop."""
        await self.provider.stop()

    def _hosts(self) -> dict[str, tuple[str, CapacityType]]:
        hosts = self.provider.substrate.hosts.values()
        return {host.ref: (host.zone, CapacityType(host.capacity_type)) for host in hosts}

    async def _lose(self, chosen: object) -> int:
        assert callable(chosen)
        lost = [ref for ref, (zone, kind) in self._hosts().items() if chosen(zone, kind)]
        for ref in lost:
            await self.provider.substrate.lose(ref)
        # A missing host is believed lost at the second look.
        for _ in range(2):
            await self.provider.running.reconcile()
        return len(lost)

    def _stock(self, zone: str, *, sold_out: bool) -> None:
        for instance_type in (TYPE, OWNED_TYPE):
            if sold_out:
                self.provider.stock_out(instance_type, zone)
            else:
                self.provider.restock(instance_type, zone)

    async def _settled(self) -> None:
        """Owned machines are there before anybody can ask for them."""
        inventory = self.provider.running.backend.ledger.inventory
        while any(record.state is State.CREATING for record in inventory):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    async def _fill(self) -> None:
        """Create what is owned and not there, with a token below those of all shards."""
        for record in list(self.provider.running.backend.ledger.inventory):
            if record.shape.capacity_type in _OWNED and record.state is State.SPECULATIVE:
                await self.provider.running.service.create(pb.CreateRequest(machine_id=record.id))


def _spec(options: FakeOptions) -> ProviderSpec[FakeOptions]:
    return replace(
        spec_for(options),
        region=lambda _: REGION,
        mix=tuple(
            Bucket(_offering(kind, name, zone, price, risk), count=count)
            for kind, name, total, price, risk in _WAYS
            for zone, count in zip(ZONES, _thirds(total), strict=True)
        ),
        prices=PriceTable(spec_for(options).prices.dated, {}),
        shapes={name: Capacity(cpu=8000, memory=32 * 1024**3) for name in (TYPE, OWNED_TYPE)},
    )


def _offering(
    kind: CapacityType, name: str, zone: str, price: float, risk: float
) -> dict[str, object]:
    return {
        "instance_type": name,
        "zone": zone,
        "capacity_type": kind.key,
        "resources": _SHAPE,
        "allocatable": _SHAPE,
        "price_usd_per_hour": price,
        "interruption_probability": risk,
    }


def _thirds(total: int) -> list[int]:
    return [(total + 2 - n) // 3 for n in range(3)]

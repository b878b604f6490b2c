"""What the fake declares, and the options that only it has.

The price list is part of a declaration, so the declaration is made from the options. Everything a
person can get wrong is named before anything starts.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Final

from pydantic import Field, field_validator

import bigfleet
from bigfleet_lab.fake.substrate import FakeSubstrate
from bigfleet_providerkit import (
    Bucket,
    Capacity,
    CapacityType,
    InterruptionTable,
    KitOptions,
    Opt,
    PriceKey,
    PriceTable,
    ProviderSpec,
    Timeouts,
)
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.options.units import Duration, Rates, TextMap, Words, parse_duration

TYPE: Final = "fake-standard-4"
ZONES: Final = ("fake-zone-a", "fake-zone-b")
REGION: Final = "fake-region"
SHAPE: Final = {"cpu": "4", "memory": "16Gi"}

_KINDS: Final = ("create", "configure", "drain", "delete")
_CAPACITY: Final = {kind.name.lower(): kind for kind in CapacityType}
_MOST: Final = 1e6
_DATED: Final = date(2026, 11, 1)


class FakeOptions(KitOptions):
    """The kit's options, with the fake's own defaults, and its levers."""

    provider: Annotated[
        str | None, Opt("label on every machine and host; [a-z0-9-], at most 40", "fake")
    ] = "fake"
    use_fake_backend: Annotated[
        bool, Opt("accepted and without effect: this provider has no other backend")
    ] = False
    slow_ms: Annotated[
        int, Field(ge=0), Opt("length of each transition in milliseconds", "500")
    ] = 20
    delays: Annotated[
        TextMap,
        Opt(
            "length by kind of transition, instead of --slow-ms",
            "create=2s,drain=500ms",
            unset="none",
        ),
    ] = Field(default_factory=dict)
    stock_outs: Annotated[
        Words, Opt("types that are sold out, TYPE@ZONE", f"{TYPE}@{ZONES[0]}", unset="none")
    ] = ()
    losses: Annotated[
        Rates,
        Opt(
            "hosts lost without notice, per host and hour, by capacity type",
            "spot=0.3",
            unset="none",
        ),
    ] = Field(default_factory=dict)
    slot_prices: Annotated[
        Rates,
        Opt(
            f"dollars per hour by capacity type, for type {TYPE}",
            "on_demand=0.38,spot=0.12",
            unset="on_demand=0.38,spot=0.12",
        ),
    ] = Field(default_factory=dict)
    reconcile_interval: Annotated[
        Duration, Opt("pause between two looks at all hosts; 0 = off", "5s")
    ] = 5.0

    @field_validator("delays")
    @classmethod
    def _delays_fit(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for kind, text in value.items():
            if kind not in _KINDS:
                raise ValueError(f"unknown kind {kind!r}; choose from {', '.join(_KINDS)}")
            parse_duration(text)
        return value

    @field_validator("stock_outs")
    @classmethod
    def _pairs_fit(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if not all(text.rpartition("@")):
                raise ValueError(f"{text!r} names no type and zone; write TYPE@ZONE")
        return value

    @field_validator("losses", "slot_prices")
    @classmethod
    def _capacity_types_fit(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        for name, number in value.items():
            if name not in _CAPACITY or not 0 <= number < _MOST:
                raise ValueError(
                    f"{name}={number} is not usable; write zero or more for one of "
                    f"{', '.join(_CAPACITY)}"
                )
        return value


async def open_substrate(options: FakeOptions, kit: Kit) -> FakeSubstrate:
    """The cloud in memory, with its levers where the options say."""
    substrate = FakeSubstrate(
        kit,
        slow=options.slow_ms / 1000,
        fail_rate=options.fail_rate,
        losses=_by_capacity(options.losses),
        seed=options.fake_seed,
    )
    for kind, text in options.delays.items():
        substrate.delays[kind] = parse_duration(text)
    for pair in options.stock_outs:
        instance_type, _, zone = pair.rpartition("@")
        substrate.stock_out(instance_type, zone)
    return substrate


def spec_for(options: FakeOptions) -> ProviderSpec[FakeOptions]:
    """The declaration, with the prices the options ask for."""
    defaults = {CapacityType.ON_DEMAND: 0.38, CapacityType.SPOT: 0.12}
    prices = {**defaults, **_by_capacity(options.slot_prices)}
    return ProviderSpec(
        name="fake",
        version=bigfleet.__version__,
        options=FakeOptions,
        open=open_substrate,
        region=lambda options: REGION,
        mix=tuple(
            Bucket(_slots(kind, zone), share=share)
            for kind, share in (("on_demand", 2), ("spot", 1))
            for zone in ZONES
        ),
        prices=PriceTable(
            _DATED, {PriceKey(TYPE, "", kind): price for kind, price in prices.items()}
        ),
        shapes={TYPE: Capacity(cpu=4000, memory=16 * 1024**3)},
        interruption=InterruptionTable({TYPE: 0.30}),
        capacity_types=frozenset(CapacityType),
        # As with real owners: a provider of nothing but its own hardware cannot give it back.
        delete_offered=lambda offerings: any(
            offering.capacity_type is not CapacityType.BARE_METAL for offering in offerings
        ),
        timeouts=Timeouts(create=300, configure=300, drain=600, delete=300),
        consistency_window=0.0,
        poll_interval=0.05,
        always_fake=True,
    )


def _by_capacity(values: Mapping[str, float]) -> dict[CapacityType, float]:
    return {_CAPACITY[name]: value for name, value in values.items()}


def _slots(kind: str, zone: str) -> dict[str, object]:
    return {
        "instance_type": TYPE,
        "zone": zone,
        "capacity_type": kind,
        "resources": SHAPE,
        "allocatable": SHAPE,
    }

"""What a slot costs: an override, else a live value, else the dated seed table.

A live value counts only when it is finite and above 0; a list that fails or is empty keeps the last
one. Spot without a price of its own is a fraction of on-demand, reserved is on-demand, and owned
hardware is free. Anything else without a price stops the start: there is no silent zero.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.spec import PriceTable
from bigfleet_providerkit.substrate import PriceKey

MOVES = 0.005


def moved(old: float, new: float) -> bool:
    """Whether a price changed by more than half a per cent."""
    return abs(new - old) > MOVES * max(abs(old), 1e-12)


def usable(price: float) -> bool:
    """Whether a price can be believed."""
    return math.isfinite(price) and price > 0


@dataclass(frozen=True, slots=True)
class Quote:
    """A price and where it came from: override, live, seed, owned."""

    usd: float
    source: str


class PriceBook:
    """Hourly prices in US dollars."""

    def __init__(self, table: PriceTable, region: str, rate: float = 1.0) -> None:
        self._seed = dict(table.values)
        self._fraction = table.spot_fraction
        self._region = region
        self._rate = rate
        self._live: dict[PriceKey, float] = {}

    def refresh(self, live: Mapping[PriceKey, float]) -> bool:
        """Take a live list; False when nothing in it could be used and the last one stays."""
        good = {key: price for key, price in live.items() if usable(price)}
        if not good:
            return False
        self._live.update(good)
        return True

    def quote(
        self, instance_type: str, zone: str, kind: CapacityType, override: float | None = None
    ) -> Quote:
        """The price of a slot, or an error that says what to do."""
        if override is not None:
            if override == 0 and kind is CapacityType.BARE_METAL:
                return Quote(0.0, "override")
            if not usable(override):
                raise OptionError(
                    f"price_usd_per_hour {override} of {instance_type} in {zone} is not above 0; "
                    "only owned hardware (bare_metal) is free"
                )
            return Quote(override, "override")
        if kind is CapacityType.BARE_METAL:
            return Quote(0.0, "owned")
        for source, table in (("live", self._live), ("seed", self._seed)):
            price = self._find(table, instance_type, zone, kind)
            if price is not None:
                return Quote(price * self._rate, source)
        raise OptionError(
            f"no price for {instance_type} in {zone}: give price_usd_per_hour or check the type"
        )

    def _find(
        self, table: Mapping[PriceKey, float], instance_type: str, zone: str, kind: CapacityType
    ) -> float | None:
        for place in (zone, self._region, ""):
            price = table.get(PriceKey(instance_type, place, kind))
            if price is not None and usable(price):
                return price
        if kind is CapacityType.ON_DEMAND:
            return None
        on_demand = self._find(table, instance_type, zone, CapacityType.ON_DEMAND)
        if on_demand is None:
            return None
        return on_demand * self._fraction if kind is CapacityType.SPOT else on_demand

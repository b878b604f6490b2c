"""What a slot costs: an override, else a price file, a live value, the dated seed table.

A live value counts only when it is finite and above 0; a list that fails or is empty keeps the last
one. Spot without a price of its own is a fraction of on-demand, reserved is on-demand, and owned
hardware is free. Anything else without a price stops the start: there is no silent zero. A quote
says where its price comes from.
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
    """A price and where it came from: override, owned, file, live or seed.

    `of` is the capacity type whose price was used, where the asked one has none of its own.
    """

    usd: float
    source: str
    of: CapacityType | None = None

    def __str__(self) -> str:
        return self.source if self.of is None else f"{self.source}, price of {self.of.key}"


class PriceBook:
    """Hourly prices in US dollars.

    `rate` turns the table's currency into dollars and `factor` is a discount on list prices; both
    apply to live and seed values, not to what a person wrote into an offering or a price file.
    """

    def __init__(
        self,
        table: PriceTable,
        region: str,
        rate: float = 1.0,
        *,
        factor: float = 1.0,
        given: Mapping[PriceKey, float] | None = None,
    ) -> None:
        self._seed = dict(table.values)
        self._fraction = table.spot_fraction
        self._region = region
        self._rate = rate * factor
        self._given = dict(given or {})
        self._live: dict[PriceKey, float] = {}

    def refresh(self, live: Mapping[PriceKey, float]) -> bool:
        """Take a live list; False when nothing in it could be used and the last one stays."""
        good = {key: price for key, price in live.items() if usable(price)}
        if not good:
            return False
        self._live.update(good)
        return True

    def quote(
        self,
        instance_type: str,
        zone: str,
        kind: CapacityType,
        override: float | None = None,
        *,
        sized: str = "",
        region: str = "",
    ) -> Quote:
        """The price of a slot, or an error that says what to do.

        `sized` is the type with its size, where offerings of one type differ in it.
        """
        if override is not None:
            if override == 0 and kind is CapacityType.BARE_METAL:
                return Quote(0.0, "override")
            if not usable(override):
                raise OptionError(
                    f"price_usd_per_hour {override} of {instance_type} in {zone} is not above 0; "
                    "only owned hardware (bare_metal) is free"
                )
            return Quote(override, "override")
        tables = (("file", self._given, 1.0), ("live", self._live, self._rate))
        names = (sized, instance_type) if sized else (instance_type,)
        places = (zone, region or self._region, "")
        for source, table, rate in (*tables, ("seed", self._seed, self._rate)):
            if kind is CapacityType.BARE_METAL and source != "file":
                return Quote(0.0, "owned")
            quote = self._find(source, table, names, places, kind)
            if quote is not None:
                return Quote(quote.usd * rate, quote.source, quote.of)
        raise OptionError(
            f"no price for {instance_type} in {zone}: give price_usd_per_hour or check the type"
        )

    def _find(
        self,
        source: str,
        table: Mapping[PriceKey, float],
        names: tuple[str, ...],
        places: tuple[str, ...],
        kind: CapacityType,
    ) -> Quote | None:
        for name in names:
            for place in places:
                price = table.get(PriceKey(name, place, kind))
                if price is not None and usable(price):
                    return Quote(price, source)
        if kind in (CapacityType.ON_DEMAND, CapacityType.BARE_METAL):
            return None
        found = self._find(source, table, names, places, CapacityType.ON_DEMAND)
        if found is None:
            return None
        part = self._fraction if kind is CapacityType.SPOT else 1.0
        return Quote(found.usd * part, source, CapacityType.ON_DEMAND)

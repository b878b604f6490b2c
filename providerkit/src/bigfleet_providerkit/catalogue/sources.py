"""Where a provider reads live prices, shapes and forecasts, and how often.

A declaration lists its sources: `Source("spot", 300, SpotPrices.read)`. The kit reads each of them
at start and then by its period, counts how that ended, and keeps what was read last when one fails.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bigfleet_providerkit.substrate import Capacity, PriceKey

if TYPE_CHECKING:
    from bigfleet_providerkit.spec import InterruptionTable


@dataclass(frozen=True, slots=True)
class SourceData:
    """What one source said; only what was really read.

    Prices are in the declared currency. Where offerings of one type differ in size, prices and
    shapes may be given for `<type>.<size>` instead of the type.
    """

    prices: Mapping[PriceKey, float] = field(default_factory=dict)
    capacities: Mapping[str, Capacity] = field(default_factory=dict)
    forecasts: "InterruptionTable | None" = None


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to read: `fetch` gets the provider's own substrate.

    `--price-refresh` changes the period of the source called "prices".
    """

    name: str
    every: float
    fetch: Callable[[Any], Awaitable[SourceData]]

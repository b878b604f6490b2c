"""What the cloud says about prices, shapes and interruptions, taken into the books."""

import asyncio

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.books import Books
from bigfleet_providerkit.backend.mishaps import classed
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.substrate import KnowsForecasts, Substrate


async def ask_market(
    books: Books, substrate: Substrate, metrics: Metrics, log: FilteringBoundLogger
) -> bool:
    """Ask once; False when no price could be used. Without new forecasts the last ones stay."""
    prices, capacities = await asyncio.gather(substrate.prices(), substrate.capacities())
    books.capacities.overlay(capacities)
    used = books.prices.refresh(prices)
    if isinstance(substrate, KnowsForecasts):
        try:
            books.interruption.take(await substrate.forecasts())
        except Exception as error:  # noqa: BLE001 - prices do not wait for forecasts
            log.warning("forecasts not refreshed", error=str(classed(error, metrics, log)))
    books.forget()
    return used

"""Reads the sources of prices, shapes and forecasts, and takes what they say into the catalogue.

Each source has a period of its own, as a spot price is worth asking for more often than a list of
shapes. A source that fails keeps what was read last and is counted; the others go on. The loops
that wait for the periods are `loops`, the waiting at start is `prepare`.
"""

import asyncio
from collections.abc import Sequence

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.bug_log import classed
from bigfleet_providerkit.catalogue.offering_catalogue import OfferingCatalogue
from bigfleet_providerkit.catalogue.sources import Source
from bigfleet_providerkit.http.metrics import Metrics
from bigfleet_providerkit.substrate import Substrate


class PriceRefresh:
    """The sources of one provider and the catalogue that they fill."""

    def __init__(
        self,
        catalogue: OfferingCatalogue,
        substrate: Substrate,
        sources: Sequence[Source],
        metrics: Metrics,
        log: FilteringBoundLogger,
    ) -> None:
        self.sources = tuple(sources)
        self._catalogue = catalogue
        self._substrate = substrate
        self._metrics = metrics
        self._log = log

    async def read(self, source: Source) -> bool:
        """Read one source; whether it said anything that can be used."""
        try:
            market = await source.fetch(self._substrate)
            useful = self._catalogue.learn(market)
        except Exception as error:  # noqa: BLE001 - a list that changed its shape is a failed one
            self._metrics.price_refreshes.labels("error").inc()
            problem = classed(error, self._metrics, self._log)
            self._log.warning("price refresh failed", source=source.name, error=str(problem))
            return False
        self._metrics.price_refreshes.labels("success" if useful else "stale_kept").inc()
        return useful

    async def read_all(self) -> bool:
        """Read every source once; whether all of them said something that can be used."""
        return all(await asyncio.gather(*(self.read(source) for source in self.sources)))

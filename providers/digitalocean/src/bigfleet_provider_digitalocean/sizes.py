"""Shapes and prices from the list of sizes.

What cannot be read is left out, so that the last price or the shipped one stays; a list in which
nothing can be read is an error, because its form has changed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bigfleet_provider_digitalocean.seed import MIB
from bigfleet_providerkit import Capacity, CapacityType, PriceKey, Retryable, SourceData

ACCELERATORS = {"nvidia": "", "amd": "amd.com/gpu"}
"""Makers of GPUs, and the resource of those that are not `nvidia.com/gpu`."""


def market_of(rows: Iterable[Any]) -> SourceData:
    """Prices and shapes of a list of sizes."""
    prices: dict[PriceKey, float] = {}
    shapes: dict[str, Capacity] = {}
    wrong = ""
    for row in rows:
        try:
            slug, price, shape = str(row["slug"]), float(row["price_hourly"]), shape_of(row)
        except (KeyError, TypeError, ValueError) as error:
            wrong = f"{row!r:.200}: {error!r}"
            continue
        prices[PriceKey(slug, "", CapacityType.ON_DEMAND)] = price
        shapes[slug] = shape
    if not prices:
        raise Retryable(f"no size of the list can be read: {wrong or 'it is empty'}")
    return SourceData(prices, shapes)


def shape_of(row: Mapping[str, Any]) -> Capacity:
    """The shape of a size; its memory is in MiB."""
    gpu = row.get("gpu_info") or {}
    model = str(gpu.get("model", "")).replace("_", "-")
    count, other = int(gpu.get("count", 0)), ACCELERATORS.get(model.partition("-")[0], "")
    return Capacity(
        cpu=int(row["vcpus"]) * 1000,
        memory=int(row["memory"]) * MIB,
        gpus=0 if other else count,
        accelerator=model,
        extended={other: count} if other else {},
    )

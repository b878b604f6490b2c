"""The tables that ship beside the code, as the kit's values, and how a live type becomes one."""

from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from bigfleet_providerkit import (
    Capacity,
    CapacityType,
    PriceKey,
    PriceTable,
    SourceData,
    SubstrateError,
)

MIB, GIB = 1024**2, 1024**3
ARCH = {"x86": "amd64", "arm": "arm64"}
KERNEL_SHARE = 0.07
"""What a 4 GB server does not show as MemTotal; an estimate, which the real Node corrects."""


@cache
def _table() -> dict[str, Any]:
    text = files("bigfleet_provider_hetzner").joinpath("seed.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def prices() -> PriceTable:
    """Net hourly prices in EUR, the same in every location of the table."""
    dated = _table()["dated"]
    assert isinstance(dated, date)
    return PriceTable.flat(dated, {name: float(row[0]) for name, row in _table()["types"].items()})


def shapes() -> dict[str, Capacity]:
    """Shapes by type."""
    return {
        name: Capacity(
            cpu=cores * 1000, memory=gib * GIB, arch="arm64" if name.startswith("cax") else "amd64"
        )
        for name, (_, cores, gib) in _table()["types"].items()
    }


def reserve(shape: Capacity) -> dict[str, str]:
    """What kernel, daemons and kubelet keep, and 100 MiB below which Pods are evicted."""
    memory = int(KERNEL_SHARE * shape.memory) // MIB + 250 + 100
    return {"cpu": "100m", "memory": f"{memory}Mi"}


def live(types: Iterable[Mapping[str, Any]]) -> SourceData:
    """Prices and shapes of the API's server types; a list of another form is an error."""
    prices, shapes = dict[PriceKey, float](), dict[str, Capacity]()
    try:
        for row in types:
            name, arch = str(row["name"]), ARCH[row["architecture"]]
            memory = int(float(row["memory"]) * GIB)
            shapes[name] = Capacity(cpu=int(row["cores"]) * 1000, memory=memory, arch=arch)
            for price in row["prices"]:
                hourly = float(price["price_hourly"]["net"])
                prices[PriceKey(name, str(price["location"]), CapacityType.ON_DEMAND)] = hourly
    except (KeyError, TypeError, ValueError) as error:
        raise SubstrateError(f"the list of server types changed its form: {error!r}") from error
    return SourceData(prices=prices, capacities=shapes)

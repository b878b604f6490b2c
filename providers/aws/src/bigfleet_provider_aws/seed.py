"""The tables that ship beside the code, as the kit's values; and how a live shape becomes one."""

from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from bigfleet_providerkit import Capacity, CapacityType, InterruptionTable, PriceKey, PriceTable

SPOT_FRACTION = 0.3
BANDS = (0.025, 0.075, 0.125, 0.175, 0.30)
"""Monthly probabilities of the Spot Instance Advisor's bands, each the middle of its range."""
USUAL_BAND = BANDS[1]
GRAVITON = ("m7g.", "c7g.")
GIB = 1024**3


@cache
def _table() -> dict[str, Any]:
    text = files("bigfleet_provider_aws").joinpath("seed.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def most_pods(interfaces: int, addresses: int) -> int:
    """Pods a node can hold with the VPC network: one address of each interface is its own, and two
    Pods use the host's network."""
    return interfaces * (addresses - 1) + 2


def prices() -> PriceTable:
    """On-demand prices of the regions that the table was read in."""
    table = _table()
    dated = table["dated"]
    assert isinstance(dated, date)
    values = {
        PriceKey(name, region, CapacityType.ON_DEMAND): float(row[0])
        for name, row in table["types"].items()
        for region in table["regions"]
    }
    return PriceTable(dated, values, SPOT_FRACTION)


def shapes() -> dict[str, Capacity]:
    """Shapes by type."""
    gpus = _table()["gpus"]
    return {
        name: Capacity(
            cpu=cpus * 1000,
            memory=gib * GIB,
            gpus=gpus.get(name, (0, ""))[0],
            accelerator=gpus.get(name, (0, ""))[1],
            arch="arm64" if name.startswith(GRAVITON) else "amd64",
        )
        for name, (_, cpus, gib, _, _, _) in _table()["types"].items()
    }


def interruption() -> InterruptionTable:
    """Forecasts by type; one that is not in the table gets the second band."""
    values = {name: BANDS[row[5]] for name, row in _table()["types"].items()}
    return InterruptionTable(values, horizon="month", otherwise=USUAL_BAND)

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
MIB, GIB = 1024**2, 1024**3
HYPERVISOR_SHARE = 0.075


@cache
def _table() -> dict[str, Any]:
    text = files("bigfleet_provider_aws").joinpath("seed.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def most_pods(interfaces: int, addresses: int) -> int:
    """Pods a node can hold with the VPC network: one address of each interface is its own, and two
    Pods use the host's network."""
    return interfaces * (addresses - 1) + 2


def reserve(shape: Capacity) -> dict[str, str]:
    """What a node of EKS keeps for itself, and what the hypervisor takes.

    Memory: 255 MiB and 11 for each Pod, 100 below which Pods are evicted, 7.5 % of the type's.
    CPU: 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest.
    """
    memory = (255 + 11 * shape.pods + 100) * MIB + int(HYPERVISOR_SHARE * shape.memory)
    cores = shape.cpu // 1000
    tenths = 600 * min(cores, 1) + 100 * max(0, min(cores - 1, 1))
    tenths += 50 * max(0, min(cores - 2, 2)) + 25 * max(0, cores - 4)
    return {"cpu": f"{-(-tenths // 10)}m", "memory": f"{-(-memory // MIB)}Mi"}


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
            pods=most_pods(interfaces, addresses),
        )
        for name, (_, cpus, gib, interfaces, addresses, _) in _table()["types"].items()
    }


def interruption() -> InterruptionTable:
    """Forecasts by type; one that is not in the table gets the second band."""
    values = {name: BANDS[row[5]] for name, row in _table()["types"].items()}
    return InterruptionTable(values, horizon="month", otherwise=USUAL_BAND)

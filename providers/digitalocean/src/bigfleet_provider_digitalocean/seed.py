"""The tables that ship beside the code, as the kit's values, and what a node keeps for itself."""

from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from bigfleet_providerkit import Capacity, PriceTable

MIB, GIB = 1024**2, 1024**3
# Of the first 4 GiB, the next 4, the next 8, the next 112, and what is above.
KEPT_MEMORY = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (float("inf"), 0.02))
KEPT_CPU = ((1, 60), (1, 10), (2, 5), (float("inf"), 2.5))
EVICTION_MIB = 100


@cache
def _table() -> dict[str, Any]:
    text = files("bigfleet_provider_digitalocean").joinpath("seed.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def prices() -> PriceTable:
    """Prices by size, the same in every region."""
    table = _table()
    dated = table["dated"]
    assert isinstance(dated, date)
    return PriceTable.flat(dated, {name: float(row[0]) for name, row in table["sizes"].items()})


def shapes() -> dict[str, Capacity]:
    """Shapes by size."""
    gpus = _table()["gpus"]
    return {
        name: Capacity(
            cpu=cpus * 1000,
            memory=gib * GIB,
            gpus=gpus.get(name, (0, ""))[0],
            accelerator=gpus.get(name, (0, ""))[1],
        )
        for name, (_, cpus, gib) in _table()["sizes"].items()
    }


def reserve(shape: Capacity) -> dict[str, str]:
    """What kubelet, container runtime and system keep of a Droplet, and below what memory Pods are
    evicted; the same steps that managed clusters of several clouds use."""
    memory = _stepwise(shape.memory / GIB, KEPT_MEMORY) * 1024 + EVICTION_MIB
    cpu = _stepwise(shape.cpu / 1000, KEPT_CPU)
    return {"cpu": f"{-int(-cpu // 1)}m", "memory": f"{-int(-memory // 1)}Mi"}


def _stepwise(amount: float, steps: tuple[tuple[float, float], ...]) -> float:
    kept = 0.0
    for width, part in steps:
        kept += min(amount, width) * part
        amount = max(0.0, amount - width)
    return kept

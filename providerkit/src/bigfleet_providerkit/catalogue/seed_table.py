"""The table of prices and shapes that ships beside a provider's code: `seed.yaml` of its package.

    dated: 2026-11-01
    places: [us-east-1]                      # where the prices hold; everywhere without it
    columns: [price, cpus, gib, pods, interrupted]
    types:
      m6i.large: [0.096, 2, 8, 29, 0.075]
    arm64: [m7g.*]                           # patterns of types of that architecture
    gpus:
      g5.xlarge: [1, nvidia-a10g]

Pods and interrupted (the share of spot hosts taken back in a month) may be absent. The table is
part of the package, so a mistake in it is a bug and ends the start as one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

import yaml

from bigfleet_providerkit.machines.state import CapacityType
from bigfleet_providerkit.spec import PriceTable
from bigfleet_providerkit.substrate import Capacity, PriceKey

GIB = 1024**3
Row = Mapping[str, Any]


@dataclass(frozen=True)
class SeedTable:
    """The values of one table; `interrupted` is empty where the table says nothing about it."""

    prices: PriceTable
    shapes: Mapping[str, Capacity]
    interrupted: Mapping[str, float]

    @classmethod
    def read(cls, package: str, *, spot_fraction: float = 0.35) -> "SeedTable":
        """The table in a package."""
        data = yaml.safe_load(files(package).joinpath("seed.yaml").read_text("utf-8"))
        rows = {
            str(name): dict(zip(data["columns"], row, strict=True))
            for name, row in data["types"].items()
        }
        dated = data["dated"]
        assert isinstance(dated, date)
        prices = {
            PriceKey(name, place, CapacityType.ON_DEMAND): float(row["price"])
            for name, row in rows.items()
            for place in data.get("places", ("",))
        }
        return cls(
            PriceTable(dated, prices, spot_fraction),
            {name: _shape(name, row, data) for name, row in rows.items()},
            {name: row["interrupted"] for name, row in rows.items() if "interrupted" in row},
        )


def _shape(name: str, row: Row, data: Row) -> Capacity:
    gpus, accelerator = data.get("gpus", {}).get(name, (0, ""))
    arm = any(fnmatchcase(name, pattern) for pattern in data.get("arm64", ()))
    return Capacity(
        cpu=row["cpus"] * 1000,
        memory=row["gib"] * GIB,
        gpus=gpus,
        accelerator=accelerator,
        arch="arm64" if arm else "amd64",
        pods=row.get("pods", 0),
    )

"""The tables that ship beside the code, and what a node keeps for itself."""

from bigfleet_providerkit import Capacity, InterruptionTable
from bigfleet_providerkit.catalogue.seed_table import SeedTable

BANDS = (0.025, 0.075, 0.125, 0.175, 0.30)
"""Monthly probabilities of the Spot Instance Advisor's bands, each the middle of its range."""
MIB = 1024**2
HYPERVISOR_SHARE = 0.075
SEED = SeedTable.read("bigfleet_provider_aws", spot_fraction=0.3)
INTERRUPTION = InterruptionTable(SEED.interrupted, horizon="month", otherwise=BANDS[1])
"""Forecasts by type; one that is not in the table gets the second band."""


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

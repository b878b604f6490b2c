"""The tables that ship beside the code (seed.yaml), and what a node keeps for itself."""

from bigfleet_providerkit import Capacity
from bigfleet_providerkit.catalogue.seed_table import SeedTable

MIB, GIB = 1024**2, 1024**3
SEED = SeedTable.read("bigfleet_provider_digitalocean")
# Of the first 4 GiB, the next 4, the next 8, the next 112, and what is above.
KEPT_MEMORY = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (float("inf"), 0.02))
KEPT_CPU = ((1, 60), (1, 10), (2, 5), (float("inf"), 2.5))
EVICTION_MIB = 100


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

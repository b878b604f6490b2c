"""Which shape an instance type has: pinned values, overlaid by live ones.

Gives resources (what a slot promises before it exists), allocatable (what pods can really use),
architecture and accelerators. A type that is not known needs `allocatable` in its offering.
"""

from collections.abc import Mapping

from bigfleet_providerkit.capacity.quantity import parse_quantity, write_cpu, write_memory
from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.substrate import Capacity

GPU = "nvidia.com/gpu"
PODS = "pods"
MOST_PODS = "110"
"""What a kubelet takes unless it is told otherwise."""
DEFAULT_CPU, DEFAULT_MEMORY = 1000, 2 * 1024**3


class CapacityTable:
    """Shapes by instance type."""

    def __init__(self, pinned: Mapping[str, Capacity]) -> None:
        self._pinned = dict(pinned)
        self._live: dict[str, Capacity] = {}

    def overlay(self, live: Mapping[str, Capacity]) -> None:
        """Take live shapes; unusable ones are left out."""
        self._live.update({t: c for t, c in live.items() if c.cpu > 0 and c.memory > 0})

    def get(self, instance_type: str, sized: str = "") -> Capacity | None:
        """The shape of a type, where it is known; that of its size before that of the type."""
        for name in (sized, instance_type):
            known = self._live.get(name) or self._pinned.get(name)
            if name and known is not None:
                return known
        return None


def resources_of(shape: Capacity | None) -> dict[str, str]:
    """The default promise of a slot: cpu 1 and memory 2Gi, or the shape where that is smaller."""
    cpu = min(DEFAULT_CPU, shape.cpu) if shape else DEFAULT_CPU
    memory = min(DEFAULT_MEMORY, shape.memory) if shape else DEFAULT_MEMORY
    return {"cpu": write_cpu(cpu), "memory": write_memory(memory)}


def allocatable_of(shape: Capacity, reserve: Mapping[str, str], where: str) -> dict[str, str]:
    """The shape minus what system daemons take."""
    cpu = shape.cpu - int(parse_quantity(reserve.get("cpu", "0")) * 1000)
    memory = shape.memory - int(parse_quantity(reserve.get("memory", "0")))
    if cpu <= 0 or memory <= 0:
        raise OptionError(f"{where}: reserve leaves nothing of the shape; make it smaller")
    result = {"cpu": write_cpu(cpu), "memory": write_memory(memory)}
    if shape.gpus:
        result[GPU] = str(shape.gpus)
    if shape.pods:
        result[PODS] = str(shape.pods)
    result.update({name: str(amount) for name, amount in shape.extended.items() if amount > 0})
    return result


def with_pods(allocatable: Mapping[str, str], resources: Mapping[str, str]) -> dict[str, str]:
    """The same with a number of pods: every Pod asks for one, so a machine without finds no use."""
    return {**allocatable, PODS: allocatable.get(PODS) or resources.get(PODS) or MOST_PODS}


def check_quantities(values: Mapping[str, str], where: str, *, complete: bool) -> None:
    """Refuse quantities that do not parse or are not above 0."""
    for name, text in values.items():
        try:
            amount = parse_quantity(text)
        except ValueError as error:
            raise OptionError(f"{where}: {name}: {error}") from error
        if amount <= 0:
            raise OptionError(f"{where}: {name} is {text}, which is not above 0")
    missing = [name for name in ("cpu", "memory") if name not in values]
    if complete and missing:
        raise OptionError(f"{where}: {' and '.join(missing)} missing; both are always needed")

"""Gangs of a rack, and racks of machines, as tests of the engine write them."""

from bigfleet.model import Need
from worlds import RACK, A, S, machine, need


def gang(cpu: int = 8, cluster: str = A, group: str = "g", priority: int = 100) -> Need:
    """One that wants to be in one rack."""
    return need(cluster, cpu=cpu, unit=4, same=RACK, group=group, priority=priority)


def rack(name: str, count: int, state: S = S.IDLE, **how: object) -> list:  # type: ignore[type-arg]
    """So many machines of one rack."""
    return [
        machine(f"m-{name}-{i}", state, rack=name, **how)  # type: ignore[arg-type]
        for i in range(count)
    ]

"""Which machines a need could use, and which of its wishes leaves none: looked at one by one.

This repeats, slowly and for one need, what the engine decides for all of them at once; it is for
explanations only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model import MachineState, Need, Requirement, format_resources
from bigfleet.model.columns import MachineColumns

B = npt.NDArray[np.bool_]

ALIVE: Final = "machines that have not failed"
"""The first sieve, before any wish of a need."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """One wish of a need, and how many machines are left after it and all before it."""

    wish: str
    left: int


def sieves(fleet: MachineColumns, need: Need) -> Iterator[Sieve]:
    """A need's wishes one after another; Failed machines are not candidates from the start."""
    left = (fleet.state > 0) & (fleet.state != MachineState.FAILED)
    yield Sieve(ALIVE, int(left.sum()))
    for requirement in need.profile.requirements:
        left &= _holds(fleet, requirement)
        yield Sieve(words(requirement), int(left.sum()))
    for name, amount in need.min_unit.items():
        if amount:
            left &= _offers(fleet, name) >= amount
            text = format_resources({name: amount})[name]
            yield Sieve(f"a machine alone holds one unit: {name} {text}", int(left.sum()))
    for name, amount in need.aggregate.items():
        if amount and not need.min_unit.get(name, 0):
            left &= _offers(fleet, name) > 0
            yield Sieve(f"a machine offers some {name}", int(left.sum()))


def words(requirement: Requirement) -> str:
    """A requirement as one reads it: `pool In [a, b]`."""
    values = f" [{', '.join(requirement.values)}]" if requirement.values else ""
    return f"{requirement.key} {requirement.operator.value}{values}"


def by_state(fleet: MachineColumns, need: Need) -> dict[MachineState, int]:
    """Machines a need could use, by state."""
    left = fleet.state > 0
    for requirement in need.profile.requirements:
        left = left & _holds(fleet, requirement)
    for name, amount in need.min_unit.items():
        left = left & (_offers(fleet, name) >= amount)
    for name, amount in need.aggregate.items():
        if amount:
            left = left & (_offers(fleet, name) > 0)
    counts = np.bincount(fleet.state[left], minlength=len(MachineState))
    return {state: int(counts[state]) for state in MachineState if counts[state]}


def _holds(fleet: MachineColumns, requirement: Requirement) -> B:
    column = fleet.topology.get(requirement.key)
    if column is not None:
        names = fleet.topology_names[requirement.key]
        holds = np.array([requirement.matches_value(v) for v in (None, *names)], np.bool_)
        return np.asarray(holds[column + 1])
    table = np.array([requirement.matches(labels) for labels in fleet.classes.labels], np.bool_)
    return np.asarray(table[fleet.cls]) if len(table) else np.zeros(len(fleet), np.bool_)


def _offers(fleet: MachineColumns, name: str) -> npt.NDArray[np.float64]:
    """What each machine gives of a resource, in milli-units; doubles, so that nothing overflows."""
    number = fleet.symbols.resources.find(name)
    table = fleet.classes
    if not 0 <= number < table.whole.shape[1]:
        return np.zeros(len(fleet))
    offers = table.whole[:, number].astype(np.float64) * 1000 + table.milli[:, number]
    return np.asarray(offers[fleet.cls])

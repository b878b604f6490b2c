"""Which machines to give to another shard: a choice on columns.

A `MachineFilter` is what the machines must be like; candidates are free machines for a transfer, or
bound ones of lower priority for a drain. Those whose loss costs their workload least come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.model import (
    MachineState,
    QuantityError,
    Requirement,
    RequirementError,
    Resources,
    TaintError,
    Toleration,
)
from bigfleet.model.columns import UNAVAILABLE, ClassTable, Flag, MachineColumns
from bigfleet.model.match_set import MatchSet
from bigfleet.shard.peers.errors import InvalidInstructionError
from bigfleet.wire.needs import amounts_from_proto, requirement_from_proto
from bigfleet.wire.taints import tolerations_from_proto
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

Mask = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]
S = MachineState
_NOT_FREE: Final = Flag.LEAVING | UNAVAILABLE
_NOT_VICTIM: Final = Flag.LEAVING | UNAVAILABLE | Flag.DO_NOT_DISRUPT
_MILLI: Final = 1000
Selector = pb.ReassignSpeculative | pb.TransferOwnership | pb.CrossShardDrain
"""Instructions that pick."""


@dataclass(frozen=True, slots=True)
class MachineFilter:
    """What machines must be like; an empty text means any."""

    instance_type: str = ""
    zone: str = ""
    provider: str = ""
    region: str = ""
    requirements: tuple[Requirement, ...] = ()
    min_unit: Resources | None = None
    tolerations: tuple[Toleration, ...] = ()
    """Of the demand they are for; where it states none, tainted machines stay (ADR 0135)."""

    @classmethod
    def of(cls, selector: Selector) -> MachineFilter:
        """The wish of an instruction; refused when it cannot be read."""
        try:
            requirements = tuple(requirement_from_proto(one) for one in selector.requirements)
            unit = amounts_from_proto(selector.min_unit.resources, "min_unit")
            stated = selector.tolerations if selector.tolerations_stated else ()
            tolerations = tuple(tolerations_from_proto(stated))
        except (RequirementError, QuantityError, TaintError) as error:
            raise InvalidInstructionError(f"what to pick cannot be read: {error}") from error
        return cls(
            selector.instance_type,
            selector.zone,
            selector.provider,
            selector.region,
            requirements,
            unit,
            tolerations,
        )


def free_machines(fleet: MachineColumns, wish: MachineFilter, state: MachineState) -> list[str]:
    """Unclaimed machines in a state, Idle or Speculative, that fit.

    None of them serves a need, so none has a penalty; the longest Idle come first. Machines in
    back-off come last: what failed here may fail there.
    """
    mask = (fleet.state == state) & (fleet.stamp < 0)
    mask &= fleet.flags & np.uint16(_NOT_FREE) == 0
    rows = np.flatnonzero(mask & _fitting(fleet, wish))
    backing_off = fleet.flags[rows] & np.uint16(Flag.BACKING_OFF)
    order = np.lexsort((fleet.rank[rows], fleet.idle_since[rows], backing_off))
    return [fleet.ids[row] for row in rows[order].tolist()]


def victims(
    fleet: MachineColumns, wish: MachineFilter, priority: int, interruption: int = 0
) -> list[str]:
    """Bound machines of strictly lower priority, lowest reclamation penalty first.

    An `interruption` bucket that is stated must be strictly higher than theirs as well.
    """
    symbols = fleet.symbols
    if not symbols.identity_count:
        return []
    mask = (fleet.state == S.CONFIGURED) & (fleet.stamp >= 0)
    mask &= fleet.flags & np.uint16(_NOT_VICTIM) == 0
    rows = np.flatnonzero(mask & _fitting(fleet, wish))
    stamps = fleet.stamp[rows]
    priorities = symbols.identity_column("priority")[stamps]
    interruptions = symbols.identity_column("interruption")[stamps]
    lower = priorities < priority
    if interruption:
        lower &= interruptions < interruption
    rows, stamps = rows[lower], stamps[lower]
    order = np.lexsort(
        (
            fleet.rank[rows],
            priorities[lower],
            interruptions[lower],
            symbols.identity_column("reclamation")[stamps],
        )
    )
    return [fleet.ids[row] for row in rows[order].tolist()]


def _fitting(fleet: MachineColumns, wish: MachineFilter) -> Mask:
    """Per row, whether the machine is as wished."""
    # Labels with many values are columns of their own; everything else is a matter of classes.
    own = [one for one in wish.requirements if one.key in fleet.topology]
    shared = tuple(one for one in wish.requirements if one.key not in fleet.topology)
    fits: Mask = _fitting_classes(fleet, wish, shared)[fleet.cls]
    for requirement in own:
        values = [*fleet.topology_names[requirement.key], None]
        # The last entry answers for machines without the label, whose number is -1.
        answers = np.array([requirement.matches_value(value) for value in values], np.bool_)
        fits &= answers[fleet.topology[requirement.key]]
    return fits


def _fitting_classes(
    fleet: MachineColumns, wish: MachineFilter, requirements: tuple[Requirement, ...]
) -> Mask:
    classes = fleet.classes
    fits = np.ones(max(1, len(classes)), np.bool_)
    for cls in range(len(classes)):
        name, instance_type, zone, _ = classes.offerings[classes.offering[cls]]
        region = classes.pools[classes.pool[cls]][1]
        pairs = (
            (wish.instance_type, instance_type),
            (wish.zone, zone),
            (wish.provider, name),
            (wish.region, region),
        )
        fits[cls] = all(not wanted or wanted == found for wanted, found in pairs) and bool(
            MatchSet(requirements, wish.tolerations).match(classes.labels[cls], classes.taints[cls])
        )
    for resource, amount in (wish.min_unit or {}).items():
        if amount:
            fits &= _has(classes, fleet.symbols.resources.find(resource), amount)
    return fits


def _has(classes: ClassTable, resource: int, amount: int) -> Mask:
    """Per class, whether it offers at least so many milli-units."""
    if resource < 0 or resource >= classes.whole.shape[1] or not len(classes):
        return np.zeros(max(1, len(classes)), np.bool_)
    units, milli = divmod(amount, _MILLI)
    whole = classes.whole[:, resource]
    enough: Mask = (whole > units) | ((whole == units) & (classes.milli[:, resource] >= milli))
    return enough

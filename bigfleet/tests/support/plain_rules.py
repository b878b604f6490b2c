"""Rules of the engine in their plainest form, for oracles and for what tests expect."""

from __future__ import annotations

from bigfleet.decision.policy import VOLUNTARY_GRACE_SECONDS
from bigfleet.model import (
    LABEL_CAPACITY_TYPE,
    LABEL_INSTANCE_TYPE,
    LABEL_ZONE,
    Machine,
    Need,
)

_GRACE_BY_GAP = ((900_000, 10), (500_000, 30), (100_000, 120))


def total_order_key(need: Need) -> tuple[int, int, int, int, str, str, str, str]:
    """Sort key of the one order in which needs are served; texts compare by code point."""
    profile = need.profile
    return (
        -profile.priority,
        -profile.interruption,
        -profile.reclamation,
        need.arrival_ns,
        need.cluster,
        profile.fingerprint,
        need.group,
        need.size_class,
    )


def matchable_labels(machine: Machine) -> dict[str, str]:
    """What requirements are matched against: the labels, overruled by three of the fields."""
    labels = dict(machine.labels)
    from_fields = (
        (LABEL_INSTANCE_TYPE, machine.instance_type),
        (LABEL_ZONE, machine.zone),
        (LABEL_CAPACITY_TYPE, machine.capacity_type.label),
    )
    # An empty field says nothing, so it neither adds a label nor hides one the provider gave.
    labels.update((key, value) for key, value in from_fields if value)
    return labels


def drain_grace_seconds(priority_gap: int) -> int:
    """How long a preempted node may drain: the larger the gap, the shorter."""
    for above, seconds in _GRACE_BY_GAP:
        if priority_gap > above:
            return seconds
    return VOLUNTARY_GRACE_SECONDS

"""Needs: one row each of one cluster's demand, and the one order in which rows are served.

A need is a profile and how much of it: the aggregate, and the min unit that every machine used
must hold alone. What is remembered about a row over time (arrival, when it last shrank) is filled
in by the needs table; how a need is served is the engine's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bigfleet.model.amounts.resources import Resources, add, maximum
from bigfleet.model.demand.profile import Profile
from bigfleet.model.errors import NeedError

NeedKey = tuple[str, str, str]
"""Fingerprint, group, size class: a row's identity inside its cluster."""

StampKey = tuple[str, str, str]
"""Cluster, shape fingerprint, group: what a stamp and a need must agree on."""


@dataclass(frozen=True, slots=True)
class Need:
    """One row of demand. `shrunk_at` is when its aggregate last became smaller, 0 for never."""

    cluster: str
    profile: Profile
    aggregate: Resources = field(hash=False)
    min_unit: Resources = field(hash=False)
    group: str = ""
    size_class: str = ""
    arrival_ns: int = 0
    shrunk_at: int = 0

    def __post_init__(self) -> None:
        for name, amount in (*self.aggregate.items(), *self.min_unit.items()):
            if amount < 0:
                raise NeedError(
                    f"a need of cluster {self.cluster!r} asks for {amount} milli of {name!r}: "
                    "use zero or more"
                )

    @property
    def key(self) -> NeedKey:
        """Who this row is among its cluster's rows, over time."""
        return (self.profile.fingerprint, self.group, self.size_class)

    @property
    def stamp_key(self) -> StampKey:
        """What a machine's stamp must equal to be for this need."""
        return (self.cluster, self.profile.shape_fingerprint, self.group)


def size_class(request: Resources) -> str:
    """The names and the power of two of each amount; equal texts are one class.

    Rows are split by it, so that one large request does not set the min unit of small ones.
    """
    return ",".join(f"{name}:{max(0, request[name] - 1).bit_length()}" for name in sorted(request))


def aggregate_rows(rows: Iterable[Need]) -> list[Need]:
    """Rows of equal identity added up, in the order each identity first appeared.

    Aggregates are summed, min units are the greater in each dimension, and the earliest arrival
    and the latest shrinking stand.
    """
    merged: dict[tuple[str, NeedKey], Need] = {}
    for row in rows:
        identity = (row.cluster, row.key)
        known = merged.get(identity)
        merged[identity] = row if known is None else _sum(known, row)
    return list(merged.values())


def _sum(left: Need, right: Need) -> Need:
    return replace(
        left,
        aggregate=add(left.aggregate, right.aggregate),
        min_unit=maximum(left.min_unit, right.min_unit),
        arrival_ns=min(left.arrival_ns, right.arrival_ns),
        shrunk_at=max(left.shrunk_at, right.shrunk_at),
    )

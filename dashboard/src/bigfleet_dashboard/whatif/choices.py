"""What a change may name: what the fleet has now.

An unknown name would change nothing, and the answer would be that it costs nothing. So a change
that names one is refused, with the names there are.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from bigfleet_dashboard.errors import BadRequestError
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.machines import CAPACITY
from bigfleet_dashboard.state.needs import CLASSES
from bigfleet_dashboard.whatif.changes import Change

_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Choices:
    """Names of one fleet, each kind in order."""

    shards: tuple[str, ...]
    clusters: tuple[str, ...]
    zones: tuple[str, ...]
    instance_types: tuple[str, ...]
    capacity_types: tuple[str, ...]
    priority_classes: tuple[str, ...] = CLASSES

    @classmethod
    def of(cls, fleet: Fleet) -> Choices:
        """What this fleet has."""
        classes = fleet.map.classes
        return cls(
            tuple(sorted(fleet.shards)),
            tuple(fleet.clusters()),
            tuple(sorted({c.zone for c in classes if c.zone})),
            tuple(sorted({c.instance_type for c in classes if c.instance_type})),
            tuple(sorted({CAPACITY[c.capacity_type] for c in classes})),
        )

    def document(self) -> dict[str, object]:
        """As a page reads it."""
        return asdict(self)

    def check(self, changes: Sequence[Change]) -> None:
        """Raise for the first unknown name."""
        known = {
            "cluster": self.clusters,
            "zone": self.zones,
            "instance_type": self.instance_types,
        }
        for number, change in enumerate(changes):
            for field, names in known.items():
                value = getattr(change, field, "")
                if value and value not in names:
                    hint = _hint(value, names)
                    raise BadRequestError(f"changes[{number}].{field}: {value!r} is unknown{hint}")


def _hint(value: str, names: Sequence[str]) -> str:
    if not names:
        return ": there is none yet"
    if len(names) <= _LISTED:
        return f": use {', '.join(names)}"
    near = difflib.get_close_matches(value, names, n=1)
    meant = f": did you mean {near[0]}?" if near else ":"
    return f"{meant} GET /api/v1/whatif lists all {len(names)}"

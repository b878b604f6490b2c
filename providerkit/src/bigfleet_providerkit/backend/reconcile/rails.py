"""Rails that keep a mistaken listing from doing harm.

One pass removes few hosts, and a large part of the fleet that vanishes at once is believed only
when several listings in a row say so.
"""

from dataclasses import dataclass

SHARE_REMOVED = 0.05
SHARE_VANISHED = 0.30
LEAST_VANISHED = 10


@dataclass(frozen=True, slots=True)
class RailLimits:
    """How much one pass may do."""

    orphan_grace: float
    remove_orphans: bool
    listings_to_believe: int = 3

    def removals(self, known_hosts: int) -> int:
        """Orphans and duplicates that one pass may remove."""
        return max(1, int(SHARE_REMOVED * known_hosts))


def too_many_vanished(missing: int, hosts: int) -> bool:
    """Whether so much is missing that the listing itself is in doubt."""
    return missing >= LEAST_VANISHED and missing > SHARE_VANISHED * hosts

"""What a shard knows about a cluster besides its demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One cluster's standing at this shard.

    ``reported``: its demand was heard at least once since the shard started; before that nothing
    of it is excess, because silence is not zero demand. ``blocked``: it has no session or is in
    bootstrap back-off, so nothing may be acquired for it. ``overhead``: what its DaemonSets take
    on every node, in milli-units per resource name.
    """

    reported: bool = True
    blocked: bool = False
    overhead: Mapping[str, int] = field(default_factory=dict)

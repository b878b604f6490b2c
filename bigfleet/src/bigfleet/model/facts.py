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
    on every node, in milli-units per resource name. ``tolerations_stated``: its rows say what they
    tolerate; for other clusters taints are not looked at. ``default_arch`` and ``default_os``: what
    a machine newly placed for a row must have where the row itself names neither; empty for
    anything.
    """

    reported: bool = True
    blocked: bool = False
    overhead: Mapping[str, int] = field(default_factory=dict)
    tolerations_stated: bool = False
    default_arch: str = ""
    default_os: str = ""

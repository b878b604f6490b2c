"""How a simulated cluster behaves: delays, rates and intervals, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

SOFTWARE: Final = "bigfleet-simcluster"
PROTOCOL: Final = "v1alpha1"


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds between two bounds, drawn evenly."""

    least: float = 0.0
    most: float = 0.0

    def draw(self, rng: Random) -> float:
        """One delay."""
        return self.least if self.least >= self.most else rng.uniform(self.least, self.most)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One cluster's habits. The defaults are those of a healthy cluster and a good operator."""

    rollup_seconds: float = 10.0
    prompt_seconds: float = 0.3
    """How long after a change of demand an extra roll-up goes out; 0 for never."""
    prompt_gap_seconds: float = 1.0
    churn: float = 0.0
    """Share of the objects whose replicas change before each regular roll-up."""
    bootstrap_seconds: Span = Span(0.01, 0.1)
    bootstrap_error_rate: float = 0.0
    bootstrap_ttl_seconds: int = 900
    join_seconds: Span = Span(0.0, 0.0)
    """From the shard's word that a machine is Configured until its node is Ready."""
    never_ready_rate: float = 0.0
    evict_seconds: Span = Span(0.5, 3.0)
    """How long the pods of a node take to leave."""
    stuck_drain_rate: float = 0.0
    """Share of the nodes whose pods do not leave: a disruption budget forbids it."""
    observe_seconds: float = 1.0
    """Changes of nodes are reported together, at most this often."""
    full_observation_seconds: float = 60.0
    confirm_drain_seconds: float = 60.0
    """A drain that outlived its session is called off unless the shard names it again by then."""
    confirm_node_seconds: float = 120.0
    """A node of an earlier session that the shard does not name again by then is gone."""
    overhead: Mapping[str, int] = field(default_factory=dict)
    """Milli-units that DaemonSets take on every node."""
    software_version: str = SOFTWARE
    """Sent with Hello; empty is an operator of before the additions."""

    @property
    def knows_additions(self) -> bool:
        """Whether it speaks the additions to the contract."""
        return bool(self.software_version)

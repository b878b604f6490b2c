"""A fleet at one moment, as plain values: what `status` shows and judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bigfleet.cli.ctl.render.formats import amounts, moment


class ReplicaRole(StrEnum):
    """What a coordinator does."""

    LEADS = "leads"
    FOLLOWS = "follows"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Replica:
    """One coordinator."""

    address: str
    role: ReplicaRole
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class MissingDemand:
    """Demand of one profile that a shard cannot meet."""

    shard: str
    clusters: tuple[str, ...]
    priority: int
    missing: Mapping[str, str]
    age_cycles: int
    is_gang: bool = False


@dataclass(frozen=True, slots=True)
class MachineCounts:
    """Machines of a shard that exist, or are about to, and what they cost."""

    by_state: Mapping[str, int] = field(default_factory=dict)
    dollars: float = 0.0
    trouble: str = ""
    """Why counting was cut short; empty when it was not."""
    clusters: frozenset[str] = frozenset()
    """Those they serve."""

    def of(self, *states: str) -> int:
        """Machines in these states."""
        return sum(self.by_state.get(state, 0) for state in states)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.by_state.values())


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider as one shard sees it."""

    name: str
    reachable: bool
    machines: int
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class ShardLook:
    """One shard."""

    shard: str
    address: str
    heard_ns: int | None = None
    """When the coordinator heard it last; 0 is never, None when no coordinator was asked."""
    trouble: str = ""
    """Why it did not answer; empty when it did."""
    epoch: int = 0
    cycle: int = 0
    paused: bool = False
    pause_reason: str = ""
    dry_run: bool = False
    sessions: tuple[str, ...] = ()
    providers: tuple[Provider, ...] = ()
    rails: tuple[str, ...] = ()
    counted: MachineCounts = field(default_factory=MachineCounts)

    @property
    def answers(self) -> bool:
        """Whether it could be asked."""
        return not self.trouble


@dataclass(frozen=True, slots=True)
class FailingInstruction:
    """An instruction that its shard has failed at."""

    shard: str
    what: str
    tries: int
    reason: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The fleet."""

    now: int
    replicas: tuple[Replica, ...] = ()
    """Empty when no coordinator was asked."""
    shards: tuple[ShardLook, ...] = ()
    shortfalls: tuple[MissingDemand, ...] = ()
    """Most important first."""
    bindings: Mapping[str, str] = field(default_factory=dict)
    """Cluster to shard."""
    moves: int = 0
    """On their way."""
    waiting: tuple[FailingInstruction, ...] = ()

    @property
    def leader(self) -> str:
        """The coordinator that leads; empty when none was asked."""
        return next((r.address for r in self.replicas if r.role is ReplicaRole.LEADS), "")

    @property
    def sessions(self) -> int:
        """Clusters that are connected."""
        return len({cluster for shard in self.shards for cluster in shard.sessions})

    @property
    def dollars(self) -> float:
        """Per hour."""
        return sum(shard.counted.dollars for shard in self.shards)

    @property
    def is_counted(self) -> bool:
        """Whether all machines were counted."""
        return all(shard.answers and not shard.counted.trouble for shard in self.shards)

    @property
    def decides(self) -> bool:
        """Whether there are shards, and every one of them answers and has decided."""
        return bool(self.shards) and all(look.answers and look.cycle for look in self.shards)

    def machines(self, *states: str) -> int:
        """Machines in these states; in all when none is named."""
        if not states:
            return sum(shard.counted.total for shard in self.shards)
        return sum(shard.counted.of(*states) for shard in self.shards)


def overview_document(view: Overview) -> dict[str, object]:
    """An overview for programs, without what is wrong."""
    return {
        "leader": view.leader or None,
        "coordinators": [
            {"address": r.address, "role": r.role.value, "trouble": r.trouble}
            for r in view.replicas
        ],
        "clusters": {"bound": len(view.bindings), "connected": view.sessions},
        "machines": view.machines(),
        "spend_per_hour": round(view.dollars, 6),
        "spend_is_complete": view.is_counted,
        "moves_under_way": view.moves,
        "shards": [_shard_document(shard) for shard in view.shards],
        "shortfalls": [
            {
                "shard": shortfall.shard,
                "cluster_ids": list(shortfall.clusters),
                "priority": shortfall.priority,
                "missing": amounts(shortfall.missing),
                "age_cycles": shortfall.age_cycles,
                "topology_constrained": shortfall.is_gang,
            }
            for shortfall in view.shortfalls
        ],
    }


def _shard_document(shard: ShardLook) -> dict[str, object]:
    return {
        "shard": shard.shard,
        "address": shard.address,
        "answers": shard.answers,
        "trouble": shard.trouble,
        "last_heartbeat": moment(shard.heard_ns or 0),
        "epoch": shard.epoch,
        "cycle": shard.cycle,
        "paused": shard.paused,
        "pause_reason": shard.pause_reason,
        "dry_run": shard.dry_run,
        "sessions": list(shard.sessions),
        "providers": [
            {
                "name": provider.name,
                "reachable": provider.reachable,
                "machines": provider.machines,
                "last_error": provider.last_error,
            }
            for provider in shard.providers
        ],
        "rails": list(shard.rails),
        "machines": dict(sorted(shard.counted.by_state.items())),
        "spend_per_hour": round(shard.counted.dollars, 6),
        "count_trouble": shard.counted.trouble,
    }

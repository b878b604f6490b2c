"""What a command would do: values put and keys deleted, table by table.

Nothing has happened yet. A store writes all of it in one transaction; then `State.take` makes the
tables say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bigfleet.coordinator.state.values import (
    ClusterBinding,
    Domain,
    Move,
    Pool,
    ProviderEntry,
    ShardEntry,
)

Table = Literal["shards", "clusters", "domains", "quotas", "providers", "moves", "meta"]
Key = str | Domain | Pool
Value = ShardEntry | ClusterBinding | str | Mapping[str, int] | ProviderEntry | Move | int
REVISION: str = "assignments_revision"
"""The key in `meta` of the revision of assignments."""
SINCE: str = "topology_key_since/"
"""With a label key behind it, the key in `meta` of when domains were first assigned by it."""


@dataclass(frozen=True, slots=True)
class Put:
    """A value that is there afterwards."""

    table: Table
    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class Deletion:
    """A key that is not there afterwards."""

    table: Table
    key: Key


@dataclass(frozen=True, slots=True)
class Changes:
    """All that a command changes; nothing where it asks for what already is."""

    puts: tuple[Put, ...] = ()
    deletions: tuple[Deletion, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.puts or self.deletions)

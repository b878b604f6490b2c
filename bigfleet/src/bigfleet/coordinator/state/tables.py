"""The tables, and the indexes that answer questions without a scan.

`FleetState` is changed in place and has one writer, which applies the changes of a command once
they are stored: at a hundred thousand domains a copy per command would be the most expensive thing
that the coordinator does. Readers do not wait in between, and so see one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from typing import Final, cast
from zlib import crc32

from bigfleet.coordinator.state.changes import REVISION, SINCE, Changes, Key, Table, Value
from bigfleet.coordinator.state.values import (
    ClusterBinding,
    Domain,
    Move,
    Pool,
    ProviderEntry,
    ShardEntry,
)

CHUNKS: Final = 16
"""Domains of a shard are kept in so many parts, so that what is made of a part can be kept while
another changes."""
_NONE: Final[frozenset[Domain]] = frozenset()
Part = tuple[str, int]
"""A shard and the number of a chunk."""


def chunk_of(domain: Domain) -> int:
    """Which part of its shard's domains a domain is in; the same in every process."""
    return crc32(domain[1].encode()) % CHUNKS


class FleetState:
    """The tables. Read them; only `take` changes them."""

    def __init__(self) -> None:
        self.shards: dict[str, ShardEntry] = {}
        self.clusters: dict[str, ClusterBinding] = {}
        self.domains: dict[Domain, str] = {}
        self.quotas: dict[Pool, Mapping[str, int]] = {}
        self.providers: dict[str, ProviderEntry] = {}
        self.moves: dict[str, Move] = {}
        self.revision = 0
        """Of assignments. Rises with every write that concerns them."""
        self.key_since: dict[str, int] = {}
        """Label keys that domains are assigned by, and since when; one that is not in it, but has
        domains, is older than all of them."""
        self.on_domains: list[Callable[[Part], None]] = []
        """Told which parts of which shards' domains changed."""
        self._clusters_of: dict[str, set[str]] = {}
        self._parts: dict[Part, set[Domain]] = {}
        self._per_key: dict[str, int] = {}

    # -- reading ---------------------------------------------------------------------------------

    @property
    def default_shard(self) -> str | None:
        """The shard of machines outside all domains: the one registered first."""
        if not self.shards:
            return None
        return min(self.shards, key=lambda shard: (self.shards[shard].since, shard))

    def clusters_of(self, shard_id: str) -> frozenset[str]:
        """The clusters bound to a shard."""
        return frozenset(self._clusters_of.get(shard_id, ()))

    def domains_of(self, shard_id: str) -> Iterator[Domain]:
        """The domains of a shard, in no order."""
        for chunk in range(CHUNKS):
            yield from self._parts.get((shard_id, chunk), _NONE)

    def domains_by(self, key: str) -> int:
        """How many domains are assigned by a label key."""
        return self._per_key.get(key, 0)

    def topology_keys(self) -> list[str]:
        """The keys that domains are assigned by, the one in use for the longest first."""
        return sorted(self._per_key, key=lambda key: (self.key_since.get(key, 0), key))

    def part(self, part: Part) -> frozenset[Domain] | set[Domain]:
        """One part of a shard's domains."""
        return self._parts.get(part, _NONE)

    def parts(self) -> Iterable[Part]:
        """All parts that are not empty."""
        return self._parts.keys()

    def entries(self) -> dict[str, int]:
        """How many rows each table has."""
        return {
            "shards": len(self.shards),
            "clusters": len(self.clusters),
            "domains": len(self.domains),
            "quotas": len(self.quotas),
            "providers": len(self.providers),
            "moves": len(self.moves),
        }

    # -- changing --------------------------------------------------------------------------------

    def take(self, changes: Changes) -> None:
        """The changes are stored: they hold from now on."""
        for deletion in changes.deletions:
            self._delete(deletion.table, deletion.key)
        for put in changes.puts:
            self.put(put.table, put.key, put.value)

    def become(self, other: FleetState) -> None:
        """Hold what another state holds, which is not used any more."""
        parts = {*self._parts, *other._parts}
        for name in ("shards", "clusters", "domains", "quotas", "providers", "moves"):
            setattr(self, name, getattr(other, name))
        self.revision, self.key_since = other.revision, other.key_since
        self._clusters_of, self._parts, self._per_key = (
            other._clusters_of,
            other._parts,
            other._per_key,
        )
        for part in parts:
            self._tell(part)

    def put(self, table: Table, key: Key, value: Value) -> None:
        """One row. For rows that are being loaded; everything else goes through `take`."""
        if table == "domains":
            self._put_domain(cast("Domain", key), cast("str", value))
        elif table == "clusters":
            self._put_cluster(cast("str", key), cast("ClusterBinding", value))
        elif table == "meta":
            self._put_meta(cast("str", key), cast("int", value))
        else:
            self._plain(table)[key] = value

    def _delete(self, table: Table, key: Key) -> None:
        if table == "domains":
            domain = cast("Domain", key)
            owner = self.domains.pop(domain, None)
            if owner is not None:
                self._leave_part(domain, owner)
        elif table == "clusters":
            binding = self.clusters.pop(cast("str", key), None)
            if binding is not None:
                self._leave_shard(cast("str", key), binding.shard)
        elif table == "meta":
            self.key_since.pop(cast("str", key).removeprefix(SINCE), None)
        else:
            self._plain(table).pop(key, None)

    def _plain(self, table: Table) -> dict[Key, Value]:
        """A table without an index."""
        return cast("dict[Key, Value]", getattr(self, table))

    def _put_meta(self, key: str, value: int) -> None:
        if key == REVISION:
            self.revision = value
        elif key.startswith(SINCE):
            self.key_since[key.removeprefix(SINCE)] = value

    def _put_domain(self, domain: Domain, owner: str) -> None:
        # Keys and owners are few and repeated a hundred thousand times.
        domain, owner = (intern(domain[0]), domain[1]), intern(owner)
        before = self.domains.get(domain)
        if before == owner:
            return
        if before is not None:
            self._leave_part(domain, before)
        self.domains[domain] = owner
        self._per_key[domain[0]] = self._per_key.get(domain[0], 0) + 1
        part = (owner, chunk_of(domain))
        self._parts.setdefault(part, set()).add(domain)
        self._tell(part)

    def _leave_part(self, domain: Domain, owner: str) -> None:
        part = (owner, chunk_of(domain))
        self._parts[part].discard(domain)
        if not self._parts[part]:
            del self._parts[part]
        self._per_key[domain[0]] -= 1
        if not self._per_key[domain[0]]:
            del self._per_key[domain[0]]
        self._tell(part)

    def _put_cluster(self, cluster: str, binding: ClusterBinding) -> None:
        before = self.clusters.get(cluster)
        if before is not None and before.shard != binding.shard:
            self._leave_shard(cluster, before.shard)
        self.clusters[cluster] = binding
        self._clusters_of.setdefault(binding.shard, set()).add(cluster)

    def _leave_shard(self, cluster: str, shard: str) -> None:
        self._clusters_of[shard].discard(cluster)
        if not self._clusters_of[shard]:
            del self._clusters_of[shard]

    def _tell(self, part: Part) -> None:
        for listener in self.on_domains:
            listener(part)

"""The last decisions of the fleet, each once, with how it ended when it has.

A shard may tell of a decision twice: when it is taken and when it is over. Here the second
completes the first; repeats after a reconnect are ignored. Only the newest are kept;
a shard's audit log has all of them.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from bigfleet_api.v1alpha1 import shardread_pb2 as pb

KEPT: Final = 5_000
_MINUTE: Final = 60_000_000_000
Key = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision. `number` grows with every change, `ended` is empty while it is under way."""

    number: int
    shard: str
    cycle: int
    unix_nanos: int
    kind: str
    machine: str
    cluster: str
    fingerprint: str
    reason: str
    cost_per_hour: float
    outcome: str

    @property
    def key(self) -> Key:
        """Which decision it is."""
        return (self.shard, self.cycle, self.kind, self.machine)

    def document(self) -> dict[str, object]:
        """As the API shows it."""
        return {
            "number": self.number,
            "shard": self.shard,
            "cycle": self.cycle,
            "unix_nanos": self.unix_nanos,
            "kind": self.kind,
            "machine": self.machine,
            "cluster": self.cluster or None,
            "profile_fingerprint": self.fingerprint or None,
            "reason": self.reason,
            "cost_per_hour": self.cost_per_hour,
            "outcome": self.outcome or None,
        }


class DecisionLog:
    """The newest decisions, oldest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._kept = kept
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def number(self) -> int:
        """Of the newest change."""
        return self._number

    def take(self, shard: str, decision: pb.Decision) -> Entry | None:
        """A decision, or the end of one; None for what is known already."""
        key = (shard, decision.cycle, decision.kind, decision.machine_id)
        known = self._entries.get(key)
        if known is not None and (known.outcome or not decision.outcome):
            if decision.unix_nanos <= known.unix_nanos:
                return None
            # A shard that started again counts its cycles from the beginning: another decision.
            del self._entries[key]
            known = None
        self._number += 1
        if known is not None:
            entry = replace(known, number=self._number, outcome=decision.outcome)
        else:
            entry = Entry(
                self._number,
                shard,
                decision.cycle,
                decision.unix_nanos,
                decision.kind,
                decision.machine_id,
                decision.cluster_id,
                decision.profile_fingerprint,
                decision.reason,
                decision.cost_per_hour,
                decision.outcome,
            )
        self._entries[key] = entry
        while len(self._entries) > self._kept:
            self._entries.popitem(last=False)
        return entry

    def newest(self, limit: int, kind: str = "", cluster: str = "", words: str = "") -> list[Entry]:
        """The newest that pass, newest first."""
        found = []
        for entry in reversed(self._entries.values()):
            if kind and entry.kind != kind:
                continue
            if cluster and entry.cluster != cluster:
                continue
            if words and words not in f"{entry.machine} {entry.reason} {entry.cluster}".lower():
                continue
            found.append(entry)
            if len(found) >= limit:
                break
        return found

    def changed_since(self, number: int) -> Iterator[Entry]:
        """Entries that changed after this number, in no particular order."""
        return (entry for entry in self._entries.values() if entry.number > number)

    def per_minute(self, now_ns: int) -> dict[str, int]:
        """Decisions of the last minute by kind."""
        counts: Counter[str] = Counter()
        for entry in reversed(self._entries.values()):
            if entry.unix_nanos < now_ns - _MINUTE:
                break
            counts[entry.kind] += 1
        return dict(counts)

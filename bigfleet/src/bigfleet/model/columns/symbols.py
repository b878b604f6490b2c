"""Text becomes integers once, at ingest; inside a cycle only the integers are touched.

``Symbols`` is shared by a shard's inventory and its needs table, so that "this stamp is for that
need" is an equality of integers. An *identity* is everything a stamp says of a need except its
sequence number; its *key* is the part a stamp and a need must agree on (cluster, shape, group).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bigfleet.model.amounts.penalty import PenaltyBucket
from bigfleet.model.demand.need import Need, StampKey
from bigfleet.model.demand.profile import Profile
from bigfleet.model.machine import Stamp

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


def renumbered(column: I32, numbers: I32) -> I32:
    """A column of identities under their new numbers; negative ones mean what they meant."""
    out = column.copy()
    named = column >= 0
    out[named] = numbers[column[named]]
    return out


class Names:
    """Text <-> dense integers, in the order of first sight."""

    __slots__ = ("_ids", "_rank", "_texts")

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._rank: I32 = np.empty(0, np.int32)

    def of(self, text: str) -> int:
        """The number of a text, given now if it has none."""
        found = self._ids.get(text)
        if found is None:
            found = self._ids[text] = len(self._texts)
            self._texts.append(text)
        return found

    def find(self, text: str) -> int:
        """The number of a text, or -1."""
        return self._ids.get(text, -1)

    def copy(self) -> Names:
        """The same numbers, in an object of its own."""
        other = Names()
        other._ids, other._texts = dict(self._ids), list(self._texts)
        if len(self._rank) == len(other._texts):
            other._rank = self._rank
        return other

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def rank(self) -> I32:
        """Per number, its place in the order of code points; kept until a new text comes."""
        if len(self._rank) != len(self._texts):
            order = sorted(range(len(self._texts)), key=self._texts.__getitem__)
            rank = np.empty(len(order), np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            self._rank = rank
        return self._rank


class _Column:
    """An int64 column that grows by appending."""

    __slots__ = ("_data", "_size")

    def __init__(self) -> None:
        self._data: I64 = np.zeros(64, np.int64)
        self._size = 0

    def append(self, value: int) -> None:
        if self._size == len(self._data):
            self._data = np.concatenate([self._data, np.zeros_like(self._data)])
        self._data[self._size] = value
        self._size += 1

    def copy(self) -> _Column:
        other = _Column()
        other._data, other._size = self._data[: max(64, self._size)].copy(), self._size
        return other

    def view(self) -> I64:
        return self._data[: self._size]


_Identity = tuple[StampKey, str, str, int, PenaltyBucket, PenaltyBucket]
_IDENTITY_COLUMNS = (
    "key", "cluster", "priority", "interruption", "reclamation", "fingerprint", "group", "size",
)  # fmt: skip


def _identity_of(stamp: Stamp) -> _Identity:
    worth = (stamp.priority, stamp.interruption, stamp.reclamation)
    return (stamp.key, stamp.fingerprint, stamp.size_class, *worth)


def _named(stamp: Stamp) -> Stamp:
    """The stamp with its penalties as buckets, where it came with plain numbers."""
    return replace(
        stamp,
        interruption=PenaltyBucket(stamp.interruption),
        reclamation=PenaltyBucket(stamp.reclamation),
    )


class Symbols:
    """All interned text of one shard, and the identities stamps and needs are known by."""

    def __init__(self) -> None:
        self.clusters = Names()
        self.resources = Names()
        self.texts = Names()
        self.profiles: list[Profile] = []
        self._profile_ids: dict[str, int] = {}
        self._identities: dict[_Identity, int] = {}
        self._stamps: list[Stamp] = []
        self._keys: dict[StampKey, int] = {}
        self._columns = {name: _Column() for name in _IDENTITY_COLUMNS}

    def profile(self, profile: Profile) -> int:
        """The number of a profile."""
        found = self._profile_ids.get(profile.fingerprint)
        if found is None:
            found = self._profile_ids[profile.fingerprint] = len(self.profiles)
            self.profiles.append(profile)
        return found

    def find_profile(self, fingerprint: str) -> int:
        """The number of the profile with a fingerprint, or -1."""
        return self._profile_ids.get(fingerprint, -1)

    def identity_of_need(self, need: Need) -> int:
        """The identity a machine taken for this need is stamped with."""
        profile = need.profile
        # The fingerprint covers the three numbers, but a stamp that came from elsewhere may not
        # agree with itself, and must be given back as it came.
        worth = (profile.priority, profile.interruption, profile.reclamation)
        key = (need.stamp_key, profile.fingerprint, need.size_class, *worth)
        found = self._identities.get(key)
        return self.identity(Stamp.for_need(need, 0)) if found is None else found

    def knows(self, stamp: Stamp) -> bool:
        """Whether what a stamp says has a number already."""
        return _identity_of(stamp) in self._identities

    def identity(self, stamp: Stamp) -> int:
        """The number of what a stamp says, its sequence apart."""
        identity = _identity_of(stamp)
        found = self._identities.get(identity)
        if found is None:
            found = self._identities[identity] = len(self._stamps)
            self._stamps.append(_named(stamp))
            key = self._keys.setdefault(stamp.key, len(self._keys))
            values = (
                key,
                self.clusters.of(stamp.cluster),
                stamp.priority,
                int(stamp.interruption),
                int(stamp.reclamation),
                self.texts.of(stamp.fingerprint),
                self.texts.of(stamp.group),
                self.texts.of(stamp.size_class),
            )
            for name, value in zip(_IDENTITY_COLUMNS, values, strict=True):
                self._columns[name].append(value)
        return found

    def stamp(self, identity: int, sequence: int) -> Stamp:
        """The stamp of an identity, with a sequence number."""
        known = self._stamps[identity]
        return known if known.sequence == sequence else replace(known, sequence=sequence)

    def keeping(self, identities: I64) -> tuple[Symbols, I32]:
        """Symbols that know only these identities, and the new number of every old one or -1.

        Names of clusters and resources and the profiles are shared: their numbers stay.
        """
        other = Symbols()
        other.clusters, other.resources = self.clusters, self.resources
        other.profiles, other._profile_ids = self.profiles, self._profile_ids
        numbers = np.full(self.identity_count, -1, np.int32)
        for identity in identities.tolist():
            numbers[identity] = other.identity(self._stamps[identity])
        return other, numbers

    def fork(self) -> Symbols:
        """Symbols of their own with the same numbers, for demand that is only tried.

        New identities and profiles of the fork never reach the shard's own table. That table must
        not be added to meanwhile.
        """
        other = Symbols()
        other.clusters, other.resources = self.clusters.copy(), self.resources.copy()
        other.texts = self.texts.copy()
        other.profiles, other._profile_ids = list(self.profiles), dict(self._profile_ids)
        other._identities, other._stamps = dict(self._identities), list(self._stamps)
        other._keys = dict(self._keys)
        other._columns = {name: column.copy() for name, column in self._columns.items()}
        return other

    @property
    def key_count(self) -> int:
        """How many keys there are."""
        return len(self._keys)

    @property
    def identity_count(self) -> int:
        """How many identities there are."""
        return len(self._stamps)

    def identity_column(self, name: str) -> I64:
        """One column of the identity table: key, cluster, priority, interruption, ..."""
        return self._columns[name].view()

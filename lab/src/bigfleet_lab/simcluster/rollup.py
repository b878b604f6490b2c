"""The roll-up: all demand of a cluster, added up by row, in canonical form.

A row is a profile, a group and a size class (the resource names and the power of two of each
amount), so that one large pod does not set the min unit of small ones. Amounts of a row are the
sum and the greatest of its objects' requests. Rows are kept as bytes and made again only when an
object of theirs changed: a roll-up in which little changed costs little.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from bigfleet.model import (
    Need,
    Profile,
    Resources,
    SpreadMode,
    format_resources,
    maximum,
    size_class,
)
from bigfleet.wire.needs import need_to_proto
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_lab.simcluster.workload import Workload, WorkObject

RowKey = tuple[str, str, str]
"""Fingerprint, group, size class."""

_NEEDS_TAG: Final = b"\x1a"
"""Field 3 of the roll-up, a message."""


def row_key(what: WorkObject) -> RowKey:
    """The row an object is added up in."""
    return (told(what.profile).fingerprint, what.group, size_class(what.request))


def told(profile: Profile) -> Profile:
    """The profile as a shard hears it: spreading that is only a wish is left out."""
    hard = tuple(s for s in profile.spread if s.when is not SpreadMode.SCHEDULE_ANYWAY)
    return profile if len(hard) == len(profile.spread) else replace(profile, spread=hard)


class RollUps:
    """Roll-ups of one workload."""

    def __init__(self, workload: Workload, overhead: Resources | None = None) -> None:
        self._workload = workload
        self._overhead = dict(overhead or {})
        self._members: dict[RowKey, dict[str, WorkObject]] = {}
        self._row_of: dict[str, RowKey] = {}
        self._bytes: dict[RowKey, bytes] = {}
        self._stale: set[RowKey] = set()
        self._comparing: set[RowKey] = set()
        workload.on_change.append(self._note)
        for name in workload.names:
            self._note(name)

    @property
    def has_comparisons(self) -> bool:
        """Whether any row uses Gt or Lt."""
        self._refresh()
        return not self._comparing.isdisjoint(self._bytes)

    def __len__(self) -> int:
        self._refresh()
        return len(self._bytes)

    def message(
        self, cluster_id: str, timestamp_ns: int, *, comparisons: bool = True
    ) -> pb.OperatorMessage:
        """The frame. Without `comparisons`, rows that an older shard cannot read are left out."""
        self._refresh()
        head = capacity.ClusterCapacityNeeds(
            cluster_id=cluster_id, timestamp_unix_nanos=timestamp_ns
        )
        if self._overhead:
            head.node_overhead.CopyFrom(
                provider.Resources(resources=format_resources(self._overhead))
            )
        rows: Iterable[bytes] = (
            self._bytes.values()
            if comparisons
            else (row for key, row in self._bytes.items() if key not in self._comparing)
        )
        message = pb.OperatorMessage()
        # Present also when it asks for nothing at all.
        message.rollup.MergeFromString(head.SerializeToString() + b"".join(rows))
        return message

    def _note(self, name: str) -> None:
        key = self._row_of.get(name)
        if name not in self._workload:
            if key is not None:
                del self._row_of[name], self._members[key][name]
        elif key is None:
            what = self._workload[name]
            key = self._row_of[name] = row_key(what)
            self._members.setdefault(key, {})[name] = what
            if what.compares:
                self._comparing.add(key)
        if key is not None:
            self._stale.add(key)

    def _refresh(self) -> None:
        for key in sorted(self._stale):
            members = self._members[key]
            counted = [
                (what, count)
                for name, what in members.items()
                if (count := self._workload.replicas(name))
            ]
            if counted:
                row = need_to_proto(need(counted, key)).SerializeToString()
                self._bytes[key] = _NEEDS_TAG + _varint(len(row)) + row
            else:
                self._bytes.pop(key, None)
            if not members:
                del self._members[key]
                self._comparing.discard(key)
        self._stale.clear()


def need(counted: Iterable[tuple[WorkObject, int]], key: RowKey) -> Need:
    """One row: objects that share a key, each with its replicas."""
    total: dict[str, int] = {}
    largest: Resources = {}
    profile = Profile()
    for what, count in counted:
        profile = told(what.profile)
        largest = maximum(largest, what.request)
        for name, amount in what.request.items():
            total[name] = total.get(name, 0) + amount * count
    return Need("", profile, total, largest, group=key[1], size_class=key[2])


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)

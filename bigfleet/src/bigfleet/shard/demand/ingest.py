"""A roll-up from the wire as columns, or refused whole.

A shard reads ten thousand rows a second, and nearly all of them say what they said ten seconds
ago. So a profile is known again by the bytes of its part of the row, and a quantity by its text;
both memories are bounded. Names are checked where they are met first: keys and values of labels,
resources and groups keep Kubernetes' rules. Rows come out in the order of their keys, each key
once, so that two roll-ups can be compared column by column. Nothing here knows what was demanded
before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from bigfleet.model import (
    ModelError,
    Need,
    NeedKey,
    Profile,
    QuantityError,
    Resources,
    TaintError,
    aggregate_rows,
    parse_milli,
)
from bigfleet.shard.demand.errors import RollUpRefusedError
from bigfleet.wire.needs import (
    amounts_from_proto,
    check_amount,
    need_from_proto,
    profile_from_proto,
)
from bigfleet.wire.rollup_limits import MIB, OverLimit, RollUpLimits, RollUpSize
from bigfleet_api.v1alpha1 import capacity_pb2 as pb
from bigfleet_base.identifiers import (
    IdentifierError,
    check_label_key,
    check_label_value,
    check_text,
)

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

_MILLI: Final = 1000
_PROFILES: Final = 65_536
_QUANTITIES: Final = 65_536
_PROFILE_BYTES: Final = 64 * MIB
_LONGEST_SIZE_CLASS: Final = 16_384
"""Names every resource of the row."""
_MOST_TOLERATIONS: Final = 64
_COMPARED: Final = frozenset({pb.NodeSelectorRequirement.OPERATOR_GT,
                              pb.NodeSelectorRequirement.OPERATOR_LT})  # fmt: skip
_NOT_PROFILE: Final = ("aggregate_resources", "min_unit", "group", "size_class")


@dataclass(frozen=True, slots=True)
class RowAmounts:
    """[row, resource] in whole units and thousandths; resources are sorted by name."""

    names: tuple[str, ...]
    whole: I64
    milli: I32

    def totals(self) -> dict[str, float]:
        """The sum per resource in units, near enough to compare sizes."""
        sums = self.whole.sum(axis=0, dtype=np.float64)
        sums += self.milli.sum(axis=0, dtype=np.float64) / _MILLI
        return dict(zip(self.names, sums.tolist(), strict=True))

    def of_row(self, row: int) -> dict[str, int]:
        """What one row asks for, in milli-units, without what it does not ask for."""
        wholes, rests = self.whole[row].tolist(), self.milli[row].tolist()
        found = zip(self.names, wholes, rests, strict=True)
        return {name: whole * _MILLI + rest for name, whole, rest in found if whole or rest}


@dataclass(frozen=True, slots=True)
class ClusterStatement:
    """What a roll-up says of its whole cluster."""

    overhead: Resources = field(default_factory=dict)
    tolerations: bool = False
    arch: str = ""
    os: str = ""

    @classmethod
    def read(cls, message: pb.ClusterCapacityNeeds) -> ClusterStatement:
        """What a message says; ModelError or IdentifierError for what cannot be kept."""
        overhead = amounts_from_proto(message.node_overhead.resources, "node_overhead")
        for name in overhead:
            check_label_key(name, "node_overhead: resource")
        check_label_value(message.default_arch, "default_arch")
        check_label_value(message.default_os, "default_os")
        return cls(overhead, message.tolerations_stated, message.default_arch, message.default_os)


@dataclass(frozen=True, slots=True)
class RollUp:
    """The complete demand of one cluster at one moment, valid, one row per key."""

    cluster: str
    timestamp_ns: int
    keys: tuple[NeedKey, ...]
    """Ascending."""
    profiles: tuple[Profile, ...]
    aggregate: RowAmounts
    unit: RowAmounts
    stated: ClusterStatement = field(default_factory=ClusterStatement)

    def __len__(self) -> int:
        return len(self.keys)


class Ingest:
    """Reads roll-ups. May be used from several threads."""

    def __init__(self, profiles: int = _PROFILES, limits: RollUpLimits | None = None) -> None:
        self.limits = limits or RollUpLimits()
        self._limit = profiles
        self._profiles: dict[bytes, Profile] = {}
        self._profile_bytes = 0

    def read(self, message: pb.ClusterCapacityNeeds | bytes) -> RollUp:
        """The roll-up as columns; RollUpRefusedError when any part of it is refused."""
        if isinstance(message, bytes):
            try:
                message = pb.ClusterCapacityNeeds.FromString(message)
            except DecodeError as error:
                raise RollUpRefusedError(f"the roll-up cannot be decoded: {error}") from None
        self._check_size(message)
        try:
            stated = ClusterStatement.read(message)
        except (ModelError, IdentifierError) as error:
            raise RollUpRefusedError(str(error)) from None
        return self._columns(message, stated)

    def _check_size(self, message: pb.ClusterCapacityNeeds) -> None:
        problem = self.limits.problem(RollUpSize(message.ByteSize(), len(message.needs), b"", 0))
        if problem is not None:
            raise RollUpRefusedError(str(problem), problem.limit)

    def _columns(self, message: pb.ClusterCapacityNeeds, stated: ClusterStatement) -> RollUp:
        places: dict[NeedKey, int] = {}
        profiles: list[Profile] = []
        aggregate, unit = _Cells(), _Cells()
        scratch, shapes = pb.CapacityNeed(), set[str]()
        try:
            for row in message.needs:
                profile = self._checked(row, scratch, shapes)
                place = places.setdefault(
                    (profile.fingerprint, row.group, row.size_class), len(profiles)
                )
                if place < len(profiles):
                    return self._added_up(message, stated)
                aggregate.add(place, row.aggregate_resources, "aggregate_resources")
                unit.add(place, row.min_unit, "min_unit")
                profiles.append(profile)
        except (ModelError, IdentifierError) as error:
            raise RollUpRefusedError(f"need {len(profiles)}: {error}") from None
        keys = sorted(places)
        order = np.fromiter((places[key] for key in keys), np.int64, len(keys))
        return RollUp(
            message.cluster_id,
            message.timestamp_unix_nanos,
            tuple(keys),
            tuple(profiles[place] for place in order.tolist()),
            aggregate.columns(order),
            unit.columns(order),
            stated,
        )

    def _checked(self, row: pb.CapacityNeed, scratch: pb.CapacityNeed, shapes: set[str]) -> Profile:
        """The profile of a row whose names keep the rules; `shapes` are those met so far."""
        profile = self._profile(row, scratch)
        shapes.add(profile.shape_fingerprint)
        if len(shapes) > self.limits.requirement_sets:
            raise self._too_many_sets()
        check_text(row.group, "group")
        check_text(row.size_class, "size_class", _LONGEST_SIZE_CLASS)
        return profile

    def _profile(self, row: pb.CapacityNeed, scratch: pb.CapacityNeed) -> Profile:
        scratch.CopyFrom(row)
        for name in _NOT_PROFILE:
            scratch.ClearField(name)
        encoded = scratch.SerializeToString()
        known = self._profiles.get(encoded)
        if known is None:
            _check_names(row)
            known = profile_from_proto(row)
            if len(self._profiles) >= self._limit or self._profile_bytes >= _PROFILE_BYTES:
                self._profiles.clear()
                self._profile_bytes = 0
            self._profiles[encoded] = known
            self._profile_bytes += len(encoded)
        return known

    def _too_many_sets(self) -> RollUpRefusedError:
        most = self.limits.requirement_sets
        problem = OverLimit(
            "requirement_sets", f"the roll-up has more than {most} sets of requirements", most
        )
        return RollUpRefusedError(str(problem), problem.limit)

    def _added_up(self, message: pb.ClusterCapacityNeeds, stated: ClusterStatement) -> RollUp:
        """The rare roll-up with several rows of one identity: they are one row."""
        needs: list[Need] = []
        scratch, shapes = pb.CapacityNeed(), set[str]()
        try:
            for row in message.needs:
                self._checked(row, scratch, shapes)
                need = need_from_proto(row, message.cluster_id)
                _check_resources(need)
                needs.append(need)
        except (ModelError, IdentifierError) as error:
            raise RollUpRefusedError(f"need {len(needs)}: {error}") from None
        rows = sorted(aggregate_rows(needs), key=lambda need: need.key)
        aggregate, unit = _Cells(), _Cells()
        try:
            for place, need in enumerate(rows):
                aggregate.put(place, need.aggregate)
                unit.put(place, need.min_unit)
        except ModelError as error:
            raise RollUpRefusedError(f"rows of one identity together: {error}") from None
        order = np.arange(len(rows), dtype=np.int64)
        return RollUp(
            message.cluster_id,
            message.timestamp_unix_nanos,
            tuple(need.key for need in rows),
            tuple(need.profile for need in rows),
            aggregate.columns(order),
            unit.columns(order),
            stated,
        )


class _Cells:
    """Amounts collected cell by cell, then made columns at one stroke."""

    __slots__ = ("_columns", "_names", "_rests", "_rows", "_wholes")

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._wholes: list[int] = []
        self._rests: list[int] = []

    def add(self, row: int, texts: Mapping[str, str], what: str) -> None:
        names = self._names
        for name, text in texts.items():
            if name not in names:
                check_label_key(name, f"{what}: resource")
            try:
                whole, rest = _parts(text)
            except QuantityError:
                # Said again where the refusal can name the resource.
                amounts_from_proto({name: text}, what)
                raise
            self._rows.append(row)
            self._columns.append(names.setdefault(name, len(names)))
            self._wholes.append(whole)
            self._rests.append(rest)

    def put(self, row: int, amounts: Resources) -> None:
        for name, amount in amounts.items():
            check_amount(name, amount, "aggregate_resources")
            whole, rest = divmod(amount, _MILLI)
            self._rows.append(row)
            self._columns.append(self._names.setdefault(name, len(self._names)))
            self._wholes.append(whole)
            self._rests.append(rest)

    def columns(self, order: I64) -> RowAmounts:
        """The collected cells; `order` says which collected row comes first, second, ..."""
        shape = (len(order), len(self._names))
        whole, milli = np.zeros(shape, np.int64), np.zeros(shape, np.int32)
        names = sorted(self._names)
        if self._rows:
            row_at, column_at = np.empty(len(order), np.int64), np.empty(len(names), np.int64)
            row_at[order] = np.arange(len(order))
            column_at[[self._names[name] for name in names]] = np.arange(len(names))
            at = row_at[self._rows], column_at[self._columns]
            whole[at] = self._wholes
            milli[at] = self._rests
        return RowAmounts(tuple(names), whole, milli)


@lru_cache(_QUANTITIES)
def _parts(text: str) -> tuple[int, int]:
    """A quantity as whole units and thousandths; refused when no row may ask for it."""
    milli = parse_milli(text)
    if milli < 0:
        raise QuantityError(f"{text!r} is negative: write an amount of zero or more")
    check_amount("", milli, text)
    return divmod(milli, _MILLI)


def _check_names(row: pb.CapacityNeed) -> None:
    """Refuse keys and values that no label can have, before anything is stored under them.

    A key without a name is left: it is on no machine, and that is an answer.
    """
    for requirement in row.requirements:
        if requirement.key:
            check_label_key(requirement.key, "requirement: key")
        if requirement.operator not in _COMPARED:
            for value in requirement.values:
                check_label_value(value, f"requirement {requirement.key}: value")
    for toleration in row.tolerations:
        if toleration.key:
            check_label_key(toleration.key, "toleration: key")
        check_label_value(toleration.value, f"toleration {toleration.key}: value")
    if len(row.tolerations) > _MOST_TOLERATIONS:
        raise TaintError(
            f"{len(row.tolerations)} tolerations: a row may have {_MOST_TOLERATIONS}, as each is "
            "compared with the taints of every class of machines"
        )
    for spread in row.spread:
        if spread.topology_key:
            check_label_key(spread.topology_key, "spread: topology_key")


def _check_resources(need: Need) -> None:
    for what, amounts in (("aggregate_resources", need.aggregate), ("min_unit", need.min_unit)):
        for name in amounts:
            check_label_key(name, f"{what}: resource")

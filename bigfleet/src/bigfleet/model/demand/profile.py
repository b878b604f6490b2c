"""Profiles: what makes two requests the same demand.

A profile is requirements, spread, tolerations, priority and the two penalty buckets, in one
canonical order, with two fingerprints: of the whole, and of its shape (requirements, spread and
tolerations), which is what a machine keeps serving when only priority or a penalty changes. A
fingerprint is the same in every process and every version, and that of a profile without
tolerations is what it was before there were any: see docs/adr/0002-profile-fingerprint.md. Amounts,
the cluster and the gang are not part of a profile; they belong to the need.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from bigfleet.model.amounts.penalty import PenaltyBucket
from bigfleet.model.demand.requirements import Requirement, RequirementOperator
from bigfleet.model.demand.taints import Toleration
from bigfleet.model.errors import NeedError, SpreadError, shown

_ENCODING_VERSION: Final = b"\x01"
_SHAPE: Final = b"S"
_PROFILE: Final = b"P"
_FINGERPRINT_BYTES: Final = 16
_INT32: Final = range(-(2**31), 2**31)


class SpreadMode(StrEnum):
    """What a spread constraint asks for when it cannot be kept."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"
    UNSPECIFIED = ""


@dataclass(frozen=True, slots=True, order=True)
class Spread:
    """Machines of a need are spread over the values of `key`, evenly but for `max_skew`."""

    key: str
    max_skew: int
    when: SpreadMode = SpreadMode.DO_NOT_SCHEDULE

    def __post_init__(self) -> None:
        if not self.key:
            raise SpreadError("a spread constraint has no key: name the topology label")
        if self.max_skew < 1:
            raise SpreadError(
                f"spread over {shown(self.key)}: max skew {self.max_skew} can never be kept: use 1 "
                "or more"
            )
        if self.max_skew not in _INT32:
            raise SpreadError(
                f"spread over {shown(self.key)}: max skew {self.max_skew} does not fit in 32 bits"
            )


@dataclass(frozen=True)
class Profile:
    """One profile, built canonical by `of`. Not slotted: it keeps fingerprints asked for once."""

    requirements: tuple[Requirement, ...] = ()
    spread: tuple[Spread, ...] = ()
    priority: int = 0
    interruption: PenaltyBucket = PenaltyBucket.UNSPECIFIED
    reclamation: PenaltyBucket = PenaltyBucket.UNSPECIFIED
    tolerations: tuple[Toleration, ...] = ()

    @classmethod
    def of(
        cls,
        requirements: Iterable[Requirement] = (),
        spread: Iterable[Spread] = (),
        priority: int = 0,
        interruption: PenaltyBucket = PenaltyBucket.UNSPECIFIED,
        reclamation: PenaltyBucket = PenaltyBucket.UNSPECIFIED,
        tolerations: Iterable[Toleration] = (),
    ) -> Profile:
        """The canonical profile: each of its lists sorted, with nothing in it twice."""
        if priority not in _INT32:
            raise NeedError(
                f"priority {priority} does not fit in 32 bits: use the value of a PriorityClass"
            )
        return cls(
            tuple(sorted(set(requirements))),
            tuple(sorted(set(spread))),
            priority,
            interruption,
            reclamation,
            tuple(sorted(set(tolerations))),
        )

    @cached_property
    def fingerprint(self) -> str:
        """32 hex characters, equal exactly for equal profiles."""
        tail = struct.pack(">qBB", self.priority, self.interruption, self.reclamation)
        return _digest(_PROFILE, self._encoded_shape() + tail)

    @cached_property
    def shape_fingerprint(self) -> str:
        """The same over requirements, spread and tolerations alone."""
        return _digest(_SHAPE, self._encoded_shape())

    @cached_property
    def same(self) -> tuple[Requirement, ...]:
        """The requirements that ask for one common value of a label."""
        return tuple(
            requirement
            for requirement in self.requirements
            if requirement.operator is RequirementOperator.SAME
        )

    def without_same(self) -> Profile:
        """This profile with no wish for a common place."""
        if not self.same:
            return self
        kept = tuple(
            requirement
            for requirement in self.requirements
            if requirement.operator is not RequirementOperator.SAME
        )
        return replace(self, requirements=kept)

    def _encoded_shape(self) -> bytes:
        requirements = (
            _text(requirement.key)
            + _text(requirement.operator)
            + _list(_text(value) for value in requirement.values)
            for requirement in self.requirements
        )
        spread = (
            _text(spread.key) + struct.pack(">q", spread.max_skew) + _text(spread.when)
            for spread in self.spread
        )
        encoded = _list(requirements) + _list(spread)
        if not self.tolerations:
            # As before there were tolerations: what machines are stamped with stays.
            return encoded
        return encoded + _list(
            _text(each.key) + _text(each.operator) + _text(each.value) + _text(each.effect)
            for each in self.tolerations
        )


def _digest(kind: bytes, encoded: bytes) -> str:
    return hashlib.sha256(_ENCODING_VERSION + kind + encoded).digest()[:_FINGERPRINT_BYTES].hex()


def _text(text: str) -> bytes:
    # A lone surrogate cannot be sent, but a fingerprint must not be what finds that out.
    encoded = text.encode("utf-8", "surrogatepass")
    return struct.pack(">I", len(encoded)) + encoded


def _list(items: Iterable[bytes]) -> bytes:
    encoded = tuple(items)
    return struct.pack(">I", len(encoded)) + b"".join(encoded)

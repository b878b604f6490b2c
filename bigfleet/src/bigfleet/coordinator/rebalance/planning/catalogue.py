"""Kinds of machines over the whole fleet, numbered, and which of them fit what is asked for.

Shards of one fleet have the same kinds of machines and lack the same things, so both are kept once
and compared once: a requirement is answered per value of its label, not per machine or report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bigfleet.model import Requirement, Resources, Taint, Toleration, admits

Mask = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Place = tuple[str, str, str, str]
"""Instance type, zone, provider, region: what an instruction can name."""


@dataclass(frozen=True, slots=True)
class MachineKind:
    """Machines that do not differ for anybody who asks."""

    instance_type: str
    zone: str
    provider: str
    region: str
    allocatable: Resources
    labels: Mapping[str, str]
    """Those that a shortfall asks for."""
    taints: tuple[Taint, ...] = ()

    @property
    def place(self) -> Place:
        """What an instruction can name of it."""
        return (self.instance_type, self.zone, self.provider, self.region)

    def hosting(self, amounts: Resources) -> int:
        """How many such machines hold these amounts together, at least."""
        return max(
            (
                -(-amount // self.allocatable[name])
                for name, amount in amounts.items()
                if amount > 0
            ),
            default=0,
        )


@dataclass(frozen=True, slots=True)
class WantedShape:
    """What each machine must be like."""

    requirements: tuple[Requirement, ...]
    min_unit: tuple[tuple[str, int], ...]
    resources: tuple[str, ...]
    """Names of which a machine must have anything at all."""
    tolerations: tuple[Toleration, ...] | None = None
    """Of the demand; None where it states none: tainted machines are not for it (ADR 0135)."""


class Catalogue:
    """Kinds and shapes by number. They are only ever added, or all kinds forgotten."""

    def __init__(self) -> None:
        self.shapes: list[WantedShape] = []
        self.labels: set[str] = set()
        """Labels that some shape asks for."""
        self._shapes: dict[WantedShape, int] = {}
        self.forget_kinds()

    def forget_kinds(self) -> None:
        """Begin again with kinds; numbers of shapes stay."""
        self.kinds: list[MachineKind] = []
        self._kinds: dict[object, int] = {}
        self._at: dict[Place | str, int] = {}
        self._codes: dict[str, tuple[list[str | None], I64]] = {}
        self._amounts: dict[str, F64] = {}
        self._answers: dict[Requirement, Mask] = {}
        self._fits: dict[int, Mask] = {}

    def kind(self, kind: MachineKind) -> int:
        """The number of a kind."""
        key = (
            kind.place, kind.taints,
            frozenset(kind.allocatable.items()), frozenset(kind.labels.items()),
        )  # fmt: skip
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self.kinds)
            self.kinds.append(kind)
            self._at.setdefault(kind.place, number)
            self._at.setdefault(kind.instance_type, number)
            for cache in (self._codes, self._amounts, self._answers, self._fits):
                cache.clear()
        return number

    def shape(self, shape: WantedShape) -> int:
        """The number of a shape."""
        number = self._shapes.get(shape)
        if number is None:
            number = self._shapes[shape] = len(self.shapes)
            self.shapes.append(shape)
            self.labels.update(one.key for one in shape.requirements)
        return number

    def at(self, place: Place) -> MachineKind | None:
        """A kind that can be named so, or by its type alone."""
        number = self._at.get(place, self._at.get(place[0]) if not any(place[1:]) else None)
        return None if number is None else self.kinds[number]

    def fits(self, shape: int) -> Mask:
        """Per kind, whether its machines are as they must be."""
        fits = self._fits.get(shape)
        if fits is None:
            fits = self._fits[shape] = self._compute(self.shapes[shape])
        return fits

    def _compute(self, shape: WantedShape) -> Mask:
        fits = np.ones(len(self.kinds), np.bool_)
        for requirement in shape.requirements:
            fits &= self._answer(requirement)
        for name in shape.resources:
            fits &= self._amount(name) > 0
        for name, amount in shape.min_unit:
            if amount:
                fits &= self._amount(name) >= amount
        tainted = [number for number, kind in enumerate(self.kinds) if kind.taints]
        for number in tainted:
            fits[number] &= admits(self.kinds[number].taints, shape.tolerations or ())
        return fits

    def _answer(self, requirement: Requirement) -> Mask:
        answer = self._answers.get(requirement)
        if answer is None:
            values, codes = self._coded(requirement.key)
            by_value = np.array([requirement.matches_value(value) for value in values], np.bool_)
            answer = self._answers[requirement] = by_value[codes] if len(codes) else by_value[:0]
        return answer

    def _coded(self, key: str) -> tuple[list[str | None], I64]:
        """The values of a label, and per kind which of them it has."""
        coded = self._codes.get(key)
        if coded is None:
            numbers: dict[str | None, int] = {}
            codes = [numbers.setdefault(one.labels.get(key), len(numbers)) for one in self.kinds]
            coded = self._codes[key] = (list(numbers), np.array(codes, np.int64))
        return coded

    def _amount(self, resource: str) -> F64:
        amounts = self._amounts.get(resource)
        if amounts is None:
            amounts = np.array([one.allocatable.get(resource, 0) for one in self.kinds], np.float64)
            self._amounts[resource] = amounts
        return amounts

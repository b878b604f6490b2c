"""What may be changed in a copy: demand, prices, machines lost, machines added.

A change is checked when it is read, so that the engine never sees one that makes no sense. Changes
are applied in the order given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from bigfleet.model import CapacityType, Machine, MachineState, Need
from bigfleet_dashboard.errors import BadRequestError
from bigfleet_dashboard.state.needs import CLASSES, priority_class
from bigfleet_dashboard.whatif.scenario import Present

MOST_CHANGES: Final = 20
MOST_ADDED: Final = 10_000
_MOST_FACTOR: Final = 1000.0
_FIRST_ADDED: Final = 9_000_000
_CAPACITY: Final = {kind.camel: kind for kind in CapacityType if kind}


class Change(Protocol):
    """One change."""

    def apply(self, present: Present) -> Present:
        """The state with this change."""
        ...


@dataclass(frozen=True, slots=True)
class Demand:
    """A cluster, a class of priorities, or all of them ask for this multiple."""

    factor: float
    cluster: str = ""
    priority_class: str = ""

    def apply(self, present: Present) -> Present:
        """The state with this change."""
        return replace(present, needs=tuple(map(self._need, present.needs)))

    def _need(self, need: Need) -> Need:
        if self.cluster and need.cluster != self.cluster:
            return need
        if self.priority_class and priority_class(need.profile.priority) != self.priority_class:
            return need
        # Gangs are whole: they are not stretched, however much more is asked for.
        if need.profile.same and self.factor:
            return need
        grown = {name: round(amount * self.factor) for name, amount in need.aggregate.items()}
        return replace(need, aggregate=grown)


@dataclass(frozen=True, slots=True)
class Price:
    """Machines of a way of paying, or all, cost this multiple."""

    factor: float
    capacity_type: str = ""

    def apply(self, present: Present) -> Present:
        """The state with this change."""
        kind = _CAPACITY.get(self.capacity_type)
        return replace(
            present,
            machines=tuple(
                replace(m, price_per_hour=min(m.price_per_hour * self.factor, 1e5))
                if kind is None or m.capacity_type is kind
                else m
                for m in present.machines
            ),
        )


@dataclass(frozen=True, slots=True)
class Lose:
    """A share of the machines of a zone, type or way of paying is gone, slots included."""

    share: float
    zone: str = ""
    instance_type: str = ""
    capacity_type: str = ""

    def apply(self, present: Present) -> Present:
        """The state with this change; every so manieth machine goes, none by chance."""
        kept, seen = [], 0
        for machine in present.machines:
            if self._matches(machine):
                seen += 1
                if int(seen * self.share) > int((seen - 1) * self.share):
                    continue
            kept.append(machine)
        return replace(present, machines=tuple(kept))

    def _matches(self, machine: Machine) -> bool:
        kind = _CAPACITY.get(self.capacity_type)
        return (
            (not self.zone or machine.zone == self.zone)
            and (not self.instance_type or machine.instance_type == self.instance_type)
            and (kind is None or machine.capacity_type is kind)
        )


@dataclass(frozen=True, slots=True)
class Add:
    """More machines like one there is: of a type, in a zone, paid for like this."""

    count: int
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""

    def apply(self, present: Present) -> Present:
        """The state with this change."""
        like = Lose(1.0, self.zone, self.instance_type, self.capacity_type)
        model = next((m for m in present.machines if like._matches(m)), None)
        if model is None:
            raise BadRequestError("add: no machine of this type, zone and way of paying to copy")
        start = _FIRST_ADDED + sum(m.id >= f"m-{_FIRST_ADDED}" for m in present.machines)
        added = (
            replace(
                model, id=f"m-{start + n:07d}", state=MachineState.SPECULATIVE, host=None,
                cluster="", stamp=None, leaving=None, idle_since_ns=0, last_error="",
            )
            for n in range(self.count)
        )  # fmt: skip
        return replace(present, machines=(*present.machines, *added))


def read_changes(documents: object) -> list[Change]:
    """Changes as a page sends them."""
    if not isinstance(documents, list) or len(documents) > MOST_CHANGES:
        raise BadRequestError(f"changes: give a list of at most {MOST_CHANGES}")
    return [_change(each, f"changes[{n}]") for n, each in enumerate(documents)]


def apply_all(present: Present, changes: Iterable[Change]) -> Present:
    """The state with all changes."""
    for change in changes:
        present = change.apply(present)
    return present


def _change(document: object, at: str) -> Change:
    if not isinstance(document, dict):
        raise BadRequestError(f"{at}: {document!r} is not an object")
    values: dict[str, Any] = dict(document)
    kind = values.pop("kind", None)
    readers = {"demand": _demand, "price": _price, "lose": _lose, "add": _add}
    if kind not in readers:
        raise BadRequestError(f"{at}.kind: {kind!r} is unknown: use {', '.join(readers)}")
    made = readers[kind](values, at)
    if values:
        raise BadRequestError(f"{at}: {sorted(values)[0]!r} is not part of a change of {kind}")
    return made


def _demand(values: dict[str, Any], at: str) -> Change:
    wanted = _text(values, "priority_class", at, CLASSES)
    return Demand(_number(values, "factor", at, _MOST_FACTOR), _text(values, "cluster", at), wanted)


def _price(values: dict[str, Any], at: str) -> Change:
    factor = _number(values, "factor", at, _MOST_FACTOR)
    return Price(factor, _text(values, "capacity_type", at, _CAPACITY))


def _lose(values: dict[str, Any], at: str) -> Change:
    share = _number(values, "share", at, 1.0)
    return Lose(share, **_machines(values, at))


def _add(values: dict[str, Any], at: str) -> Change:
    count = _number(values, "count", at, MOST_ADDED)
    if count != int(count):
        raise BadRequestError(f"{at}.count: {count} is not a whole number")
    return Add(int(count), **_machines(values, at))


def _machines(values: dict[str, Any], at: str) -> dict[str, str]:
    return {
        "zone": _text(values, "zone", at),
        "instance_type": _text(values, "instance_type", at),
        "capacity_type": _text(values, "capacity_type", at, _CAPACITY),
    }


def _number(values: dict[str, Any], key: str, at: str, most: float) -> float:
    value = values.pop(key, None)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise BadRequestError(f"{at}.{key}: {value!r}: give a number from 0 to {most:g}")
    return float(value)


def _text(
    values: dict[str, Any], key: str, at: str, known: Mapping[str, object] | tuple[str, ...] = ()
) -> str:
    value = values.pop(key, "") or ""
    if not isinstance(value, str) or len(value) > 253:
        raise BadRequestError(f"{at}.{key}: {value!r}: give a text")
    if value and known and value not in known:
        raise BadRequestError(f"{at}.{key}: {value!r} is unknown: use {', '.join(known)}")
    return value

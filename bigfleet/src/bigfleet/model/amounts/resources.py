"""Amounts per resource name, in whole thousandths.

Inside BigFleet a set of resources is a mapping from name to an int of milli-units, parsed once at
the edge. A name that is missing is zero. What a machine or a need does with its resources is told
there; here is only the arithmetic they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bigfleet.model.amounts.quantity import parse_milli, parse_quantity, quantity_from_milli
from bigfleet.model.errors import QuantityError

Resources = Mapping[str, int]
"""Milli-units per resource name; read-only by contract."""

_BINARY_NAMES: Final = frozenset({"memory", "storage", "ephemeral-storage"})
_BINARY_PREFIX: Final = "hugepages-"


def parse_resources(texts: Mapping[str, str], where: str = "") -> dict[str, int]:
    """Milli-units of each quantity text. `where` names the map in a refusal (`need 3 min_unit`)."""
    amounts: dict[str, int] = {}
    for name, text in texts.items():
        try:
            milli = parse_milli(text)
        except QuantityError as error:
            raise QuantityError(f"{_place(where, name)}: {error}") from None
        if milli < 0:
            raise QuantityError(
                f"{_place(where, name)}: {text!r} is negative: write an amount of zero or more"
            )
        amounts[name] = milli
    return amounts


def format_resources(resources: Resources) -> dict[str, str]:
    """Canonical quantity texts, sorted by name; memory and storage with binary suffixes."""
    return {
        name: str(quantity_from_milli(resources[name], is_binary(name)))
        for name in sorted(resources)
    }


def add(left: Resources, right: Resources) -> dict[str, int]:
    """The sum in each dimension either has."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def maximum(left: Resources, right: Resources) -> dict[str, int]:
    """The greater amount in each dimension either has."""
    largest = dict(left)
    for name, amount in right.items():
        largest[name] = max(largest.get(name, 0), amount)
    return largest


def is_uniform_multiple(aggregate: Resources, unit: Resources) -> int | None:
    """The whole number of units, one or more, the aggregate is in every dimension, or None."""
    count: int | None = None
    for name, amount in unit.items():
        if amount == 0:
            continue
        times, rest = divmod(aggregate.get(name, 0), amount)
        if rest or times < 1 or (count is not None and times != count):
            return None
        count = times
    if any(amount and not unit.get(name, 0) for name, amount in aggregate.items()):
        return None
    return count


def is_binary(name: str) -> bool:
    """Whether amounts of a resource are bytes, and written with binary suffixes."""
    return name in _BINARY_NAMES or name.startswith(_BINARY_PREFIX)


def _place(where: str, name: str) -> str:
    return f"{where}: resource {name!r}" if where else f"resource {name!r}"


# Amounts as people read them.
#
# A quantity is printed exactly, as Kubernetes does it: 409.6Mi of memory is not a whole number of
# bytes and becomes 429496729600m. A person wants the size; programs get the exact text.

_LONG: Final = 7
"""Characters from which on an exact text is hard to read."""
_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def readable(resource: str, text: str) -> str:
    """A quantity text of a resource: as it is where it is short, else rounded to a tenth."""
    if len(text) < _LONG or not is_binary(resource):
        return text
    try:
        size = parse_quantity(text).nano / 1e9
    except QuantityError:
        return text
    step = 0
    while size >= 1024 and step < len(_SUFFIXES) - 1:
        size, step = size / 1024, step + 1
    return f"{size:.1f}".removesuffix(".0") + _SUFFIXES[step]

"""Kubernetes quantities: the texts `500m`, `8Gi`, `1e3`, exactly.

A quantity is a whole number of nano-units and the family of suffix it was written with. Reading,
rounding and printing agree with Kubernetes' own `resource.Quantity` (a table of its answers is a
golden file of the tests): finer than nano rounds away from zero, binary quantities stop at
2^63-1, and the printed form has no fraction and the largest suffix that keeps it exact.

On purpose this module differs where following would be unsafe: a text without a digit (`Ki`, `.`)
is refused instead of read as nothing; a decimal above 999 E keeps its suffix instead of losing
it; a number too long to be meant is refused. And Kubernetes echoes some texts as they were
written (`1.500`, `+5`); here `str` is always canonical.

Names of resources, and which of them are printed in which family, belong to `resources`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

from bigfleet.model.errors import QuantityError

MAX_BINARY: Final = 2**63 - 1
"""The largest binary quantity; a greater one is read as this one."""

MAX_TEXT: Final = 256
"""Longest text that is looked at. Every number a fleet can hold fits in a tenth of it."""

MAX_DIGITS: Final = 128
"""Most digits before the point: `1e999999999` must not become a number of a billion digits."""

_NANO: Final = 10**9
_NANO_PER_MILLI: Final = 10**6
_CACHE_SIZE: Final = 65536

_TEXT: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL_SUFFIXES: Final = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_DECIMAL_EXPONENTS: Final = {suffix: exponent for exponent, suffix in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY_EXPONENTS: Final = {
    suffix: 10 * step for step, suffix in enumerate(_BINARY_SUFFIXES) if suffix
}

_HINT: Final = (
    "write a number and at most one suffix: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, "
    "or an exponent as in 1e3"
)


class QuantityFormat(StrEnum):
    """The family of suffixes a quantity was written with, and is printed with again."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount. Quantities are equal when their amounts are, however they are written."""

    nano: int
    format: QuantityFormat = field(default=QuantityFormat.DECIMAL_SI, compare=False)

    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _divide_away_from_zero(self.nano, _NANO_PER_MILLI)

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _divide_away_from_zero(self.nano, _NANO)

    def __add__(self, other: Quantity) -> Quantity:
        # As in Kubernetes nothing plus something looks like the something.
        return Quantity(self.nano + other.nano, other.format if self.nano == 0 else self.format)

    def __str__(self) -> str:
        if self.nano == 0:
            return "0"
        if (
            self.format is QuantityFormat.BINARY_SI
            and abs(self.nano) >= 1024 * _NANO
            and self.nano % _NANO == 0
        ):
            return _binary_text(self.nano // _NANO)
        # A binary quantity that is small or not whole would lose precision in Ki.
        return _decimal_text(
            self.nano, exponent_form=self.format is QuantityFormat.DECIMAL_EXPONENT
        )


def parse_quantity(text: str) -> Quantity:
    """The quantity a text stands for; a QuantityError says why a text stands for none."""
    if len(text) > MAX_TEXT:
        raise QuantityError(
            f"quantity {text[:40]!r}... has {len(text)} characters, more than {MAX_TEXT}: {_HINT}"
        )
    match = _TEXT.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text!r} is not a quantity: {_HINT}")
    whole, fraction = match["whole"], match["fraction"] or ""
    if not whole and not fraction:
        raise QuantityError(f"{text!r} is not a quantity, it has no digits: {_HINT}")
    digits = int(whole + fraction)
    if match["suffix"] in _BINARY_EXPONENTS:
        nano, form = _binary_amount(digits << _BINARY_EXPONENTS[match["suffix"]], len(fraction))
    elif match["exponent"] is None:
        exponent = _DECIMAL_EXPONENTS[match["suffix"] or ""]
        nano = _decimal_amount(text, digits, exponent - len(fraction))
        form = QuantityFormat.DECIMAL_SI
    else:
        nano = _decimal_amount(text, digits, int(match["exponent"]) - len(fraction))
        form = QuantityFormat.DECIMAL_EXPONENT
    return Quantity(-nano if match["sign"] == "-" else nano, form)


def quantity_from_milli(milli: int, binary: bool = False) -> Quantity:
    """The quantity of so many thousandths, printed as `1500m` and `3`, or, binary, as `1536Mi`."""
    return Quantity(
        milli * _NANO_PER_MILLI, QuantityFormat.BINARY_SI if binary else QuantityFormat.DECIMAL_SI
    )


@lru_cache(_CACHE_SIZE)
def parse_milli(text: str) -> int:
    """Thousandths of a quantity text; remembered, because a fleet repeats few texts many times."""
    return parse_quantity(text).milli()


def _binary_amount(shifted: int, places: int) -> tuple[int, QuantityFormat]:
    """Nano-units of shifted / 10^places, at most 2^63-1 units; below one unit it is decimal."""
    nano = min(_scaled(shifted, -places), MAX_BINARY * _NANO)
    small = 0 < nano < _NANO
    return nano, QuantityFormat.DECIMAL_SI if small else QuantityFormat.BINARY_SI


def _decimal_amount(text: str, digits: int, exponent: int) -> int:
    """Nano-units of digits * 10^exponent (digits >= 0), whatever the exponent, or a refusal."""
    length = len(str(digits))
    if digits and length + exponent > MAX_DIGITS:
        raise QuantityError(
            f"quantity {text!r} has more than {MAX_DIGITS} digits before the point: write a "
            "smaller number or exponent"
        )
    # Far below nano every amount rounds up to one, whatever its power of ten would cost.
    return _scaled(digits, max(exponent, -length - 9) if digits else 0)


def _scaled(digits: int, exponent: int) -> int:
    """Nano-units of digits * 10^exponent (digits >= 0), rounded up where finer than nano."""
    shift = exponent + 9
    return int(digits * 10**shift) if shift >= 0 else -(-digits // int(10**-shift))


def _divide_away_from_zero(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount >= 0 else amount // divisor


def _binary_text(units: int) -> str:
    step = 0
    while step < len(_BINARY_SUFFIXES) - 1 and units % 1024 == 0:
        units //= 1024
        step += 1
    return f"{units}{_BINARY_SUFFIXES[step]}"


def _decimal_text(nano: int, *, exponent_form: bool) -> str:
    mantissa, exponent = nano, -9
    while mantissa % 1000 == 0 and (exponent_form or exponent < 18):
        mantissa //= 1000
        exponent += 3
    if not exponent_form:
        return f"{mantissa}{_DECIMAL_SUFFIXES[exponent]}"
    return f"{mantissa}e{exponent}" if exponent else str(mantissa)

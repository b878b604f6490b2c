"""Amounts as people read them.

A quantity is printed exactly, as Kubernetes does it: 409.6Mi of memory is not a whole number of
bytes and becomes 429496729600m. A person wants the size; programs get the exact text.
"""

from __future__ import annotations

from typing import Final

from bigfleet.model.amounts.quantity import parse_quantity
from bigfleet.model.amounts.resources import is_binary
from bigfleet.model.errors import QuantityError

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

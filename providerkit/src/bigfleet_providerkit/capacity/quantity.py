"""Kubernetes quantities: reading every form, writing the few we use.

Arithmetic is exact: a quantity becomes a Fraction and is written back only in forms that lose
nothing.
"""

import re
from fractions import Fraction

_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?")


def parse_quantity(text: str) -> Fraction:
    """The value of a quantity; a sentence that names it when it is none."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a Kubernetes quantity, such as 500m, 4 or 16Gi")
    number, suffix = Fraction(match.group(1)), match.group(2) or ""
    if suffix in _SUFFIXES:
        return number * _SUFFIXES[suffix]
    power = int(suffix[1:])
    return number * 10**power if power >= 0 else number / Fraction(10**-power)


def write_cpu(milli: int) -> str:
    """Whole CPUs as a number, parts in milli."""
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def write_memory(size: int) -> str:
    """Gi when whole, else Mi (rounded down: memory that is not there is never promised)."""
    gibibyte, mebibyte = 1024**3, 1024**2
    return f"{size // gibibyte}Gi" if size % gibibyte == 0 else f"{size // mebibyte}Mi"

"""Exact comparison of fractions and products of 64-bit numbers.

Costs per useful unit and coverages are compared as exact fractions, because linear price lists
make ties the normal case and a tie must be seen as one. Floating point decides where it safely
can; the rest is multiplied out in limbs of 30 bits, which cannot overflow.
All numbers are non-negative.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.layout import I64
from bigfleet.jit.decorators import inner, jit

_BITS = 30
_MASK = (1 << _BITS) - 1
_SMALL = float(1 << 62)
"""Products below this fit 64 bits, and so does their difference."""
_SURE = 1e-12
"""Relative distance at which rounding can no longer have swapped two products of three factors."""


@inner
def _limbs(a: int, b: int, c: int) -> I64:
    """a*b*c in nine limbs, least significant first."""
    out = np.zeros(9, np.int64)
    out[0], out[1], out[2] = a & _MASK, (a >> _BITS) & _MASK, a >> (2 * _BITS)
    for factor in (b, c):
        f0, f1, f2 = factor & _MASK, (factor >> _BITS) & _MASK, factor >> (2 * _BITS)
        product = np.zeros(9, np.int64)
        for shift in range(3):
            f = f0 if shift == 0 else (f1 if shift == 1 else f2)
            carry = 0
            for i in range(9 - shift):
                value = product[i + shift] + out[i] * f + carry
                product[i + shift] = value & _MASK
                carry = value >> _BITS
        out = product
    return out


@jit
def compare_products(a1: int, a2: int, a3: int, b1: int, b2: int, b3: int) -> int:
    """Sign of a1*a2*a3 - b1*b2*b3."""
    x = float(a1) * float(a2) * float(a3)
    y = float(b1) * float(b2) * float(b3)
    if x < _SMALL and y < _SMALL:
        difference = a1 * a2 * a3 - b1 * b2 * b3
        return 1 if difference > 0 else (-1 if difference < 0 else 0)
    gap = _SURE * (x + y)
    if x > y + gap:
        return 1
    if y > x + gap:
        return -1
    p, q = _limbs(a1, a2, a3), _limbs(b1, b2, b3)
    for i in range(8, -1, -1):
        if p[i] != q[i]:
            return 1 if p[i] > q[i] else -1
    return 0


@jit
def compare_fractions(n1: int, d1: int, n2: int, d2: int) -> int:
    """Sign of n1/d1 - n2/d2, for positive denominators."""
    if d1 == d2:
        return 1 if n1 > n2 else (-1 if n1 < n2 else 0)
    return compare_products(n1, d2, 1, n2, d1, 1)

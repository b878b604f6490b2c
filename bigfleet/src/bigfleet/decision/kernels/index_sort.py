"""Putting an index in order by integer keys, without allocation: sorted, or as a heap."""

from __future__ import annotations

from bigfleet.decision.kernels.layout import I64
from bigfleet.jit.decorators import inner, jit

_RUN = 16


@inner
def _before(k1: I64, k2: I64, k3: I64, a: int, b: int) -> bool:
    if k1[a] != k1[b]:
        return bool(k1[a] < k1[b])
    if k2[a] != k2[b]:
        return bool(k2[a] < k2[b])
    return bool(k3[a] < k3[b])


@jit
def sort_index(k1: I64, k2: I64, k3: I64, index: I64, spare: I64, size: int) -> None:
    """index[:size] = positions 0..size-1 by (k1, k2, k3): runs by insertion, then merged."""
    for i in range(size):
        index[i] = i
    for lo in range(0, size, _RUN):
        for i in range(lo + 1, min(lo + _RUN, size)):
            value = index[i]
            j = i - 1
            while j >= lo and _before(k1, k2, k3, value, index[j]):
                index[j + 1] = index[j]
                j -= 1
            index[j + 1] = value
    width = _RUN
    while width < size:
        for lo in range(0, size, 2 * width):
            middle, hi = min(lo + width, size), min(lo + 2 * width, size)
            a, b = lo, middle
            for out in range(lo, hi):
                if b >= hi or (a < middle and not _before(k1, k2, k3, index[b], index[a])):
                    spare[out] = index[a]
                    a += 1
                else:
                    spare[out] = index[b]
                    b += 1
        for i in range(size):
            index[i] = spare[i]
        width *= 2


@inner
def sift(k1: I64, k2: I64, k3: I64, heap: I64, at: int, size: int) -> None:
    """Let the entry of a heap sink to its place; the one with the least (k1, k2, k3) is on top."""
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(k1, k2, k3, heap[child + 1], heap[child]):
            child += 1
        if not _before(k1, k2, k3, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@inner
def sink(heap: I64, key: I64, at: int, size: int) -> None:
    """Let the entry of a heap sink to its place; the entry with the least key is on top."""
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[at]] <= key[heap[child]]:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child

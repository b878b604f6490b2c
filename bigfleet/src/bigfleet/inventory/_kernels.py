"""Compiled loops over packed texts: hashing, looking up, and finding a place in the order.

A text is `length` bytes from `start` in a blob. The table of the index holds row numbers, EMPTY
or GONE; its size is a power of two. Sums stay below 2^63, so the loops also run interpreted.
Unsigned values are made signed before they are counted with: compiled, they would stay unsigned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bigfleet.jit.decorators import jit

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]

EMPTY = -1
GONE = -2


@jit
def hash_text(blob: U8, start: int, length: int) -> int:
    """FNV-1a of 32 bits, mixed once more because only the low bits choose the slot."""
    value = 2166136261
    for i in range(start, start + length):
        value = ((value ^ int(np.int64(blob[i]))) * 16777619) & 0xFFFFFFFF
    value ^= value >> 15
    value = (value * 739982445) & 0xFFFFFFFF
    return value ^ (value >> 13)


@jit
def compare(
    blob: U8, start: int, length: int, other: U8, other_start: int, other_length: int
) -> int:
    """-1, 0 or 1, as the first text sorts before, with or after the other."""
    for i in range(min(length, other_length)):
        mine, its = blob[start + i], other[other_start + i]
        if mine != its:
            return -1 if mine < its else 1
    if length == other_length:
        return 0
    return -1 if length < other_length else 1


@jit
def find_row(
    table: I32, blob: U8, starts: I32, lengths: U16, key: U8, key_start: int, key_length: int
) -> int:
    """The row whose text is the key, or -1."""
    mask = len(table) - 1
    slot = hash_text(key, key_start, key_length) & mask
    while table[slot] != EMPTY:
        row = table[slot]
        if (
            row >= 0
            and int(np.int64(lengths[row])) == key_length
            and compare(blob, starts[row], key_length, key, key_start, key_length) == 0
        ):
            return int(row)
        slot = (slot + 1) & mask
    return -1


@jit
def find_rows(
    table: I32, blob: U8, starts: I32, lengths: U16, keys: U8, key_starts: I64, key_lengths: I64
) -> I64:
    """The row of each key, or -1."""
    rows = np.empty(len(key_starts), np.int64)
    for i in range(len(key_starts)):
        rows[i] = find_row(table, blob, starts, lengths, keys, key_starts[i], key_lengths[i])
    return rows


@jit
def insert_rows(table: I32, blob: U8, starts: I32, lengths: U16, rows: I64) -> None:
    """Enter rows whose texts are not in the table."""
    mask = len(table) - 1
    for row in rows:
        slot = hash_text(blob, starts[row], int(np.int64(lengths[row]))) & mask
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = row


@jit
def erase_row(table: I32, blob: U8, starts: I32, lengths: U16, row: int) -> None:
    """Take out a row that is in the table."""
    mask = len(table) - 1
    slot = hash_text(blob, starts[row], int(np.int64(lengths[row]))) & mask
    while table[slot] != row:
        slot = (slot + 1) & mask
    table[slot] = GONE


@jit
def first_duplicate(table: I32, blob: U8, starts: I64, lengths: I64) -> int:
    """The number of the first text that an earlier one equals, or -1; fills an empty table."""
    mask = len(table) - 1
    for i in range(len(starts)):
        slot = hash_text(blob, starts[i], lengths[i]) & mask
        while table[slot] != EMPTY:
            j = table[slot]
            if (
                lengths[i] == lengths[j]
                and compare(blob, starts[i], lengths[i], blob, starts[j], lengths[j]) == 0
            ):
                return i
            slot = (slot + 1) & mask
        table[slot] = i
    return -1


@jit
def places(order: I32, blob: U8, starts: I32, lengths: U16, rows: I64) -> I64:
    """Where in the order of texts each row would have to be inserted."""
    found = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        row = rows[i]
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            other = order[middle]
            if (
                compare(
                    blob,
                    starts[other],
                    int(np.int64(lengths[other])),
                    blob,
                    starts[row],
                    int(np.int64(lengths[row])),
                )
                < 0
            ):
                low = middle + 1
            else:
                high = middle
        found[i] = low
    return found


@jit
def copy_texts(blob: U8, starts: I64, lengths: I64, to: I64, target: U8) -> None:
    """Copy texts to other places in another blob."""
    for i in range(len(starts)):
        for j in range(lengths[i]):
            target[to[i] + j] = blob[starts[i] + j]

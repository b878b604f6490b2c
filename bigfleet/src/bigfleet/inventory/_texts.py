"""A text per row without an object per row: bytes in one blob, and where each text lies in it.

The blob is only ever appended to, so that a view of it never changes; texts without a reference
are squeezed out once they are a quarter of it. Order of bytes is order of code points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from bigfleet.inventory._column import Column, readonly
from bigfleet.inventory._kernels import copy_texts
from bigfleet.inventory.errors import UnfitMachineError
from bigfleet.model.validation import LONGEST_BYTES

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]

_MOST = 2**31 - 1
_WORTH_SQUEEZING = 64 * 1024


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Texts of one batch, in the order they came."""

    blob: U8
    starts: I64
    lengths: I64

    @classmethod
    def of(cls, texts: Sequence[str], what: str) -> PackedTexts:
        """The texts packed; `what` names them in a refusal."""
        joined = "".join(texts)
        if joined.isascii():
            blob, lengths = joined.encode(), np.fromiter(map(len, texts), np.int64, len(texts))
        else:
            pieces = [_encoded(text, what) for text in texts]
            blob, lengths = b"".join(pieces), np.fromiter(map(len, pieces), np.int64, len(pieces))
        if len(lengths) and int(lengths.max()) > LONGEST_BYTES:
            raise _too_long(texts[int(lengths.argmax())], what)
        return cls(np.frombuffer(blob, np.uint8), np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def joined(cls, pieces: Sequence[PackedTexts]) -> PackedTexts:
        """The texts of several batches as one."""
        if len(pieces) == 1:
            return pieces[0]
        lengths = np.concatenate([piece.lengths for piece in pieces])
        blob = np.concatenate([piece.blob for piece in pieces])
        return cls(readonly(blob), np.cumsum(lengths) - lengths, lengths)

    def select(self, places: I64) -> PackedTexts:
        """The texts at these places."""
        if len(places) == len(self.lengths):
            return self
        return _packed_again(self.blob, self.starts[places], self.lengths[places])


def _packed_again(blob: U8, starts: I64, lengths: I64) -> PackedTexts:
    """The same texts without what lies between them."""
    to = np.cumsum(lengths) - lengths
    target = np.empty(int(lengths.sum()), np.uint8)
    copy_texts(blob, starts, lengths, to, target)
    return PackedTexts(readonly(target), to, lengths)


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnfitMachineError(f"{what} {text!r} is not Unicode text: use another name") from None


def _too_long(text: str, what: str) -> UnfitMachineError:
    return UnfitMachineError(
        f"{what} {text[:40]!r}... is longer than {LONGEST_BYTES} bytes: shorten it"
    )


class Texts:
    """A text per row; the empty text where none was set."""

    __slots__ = ("_blob", "_length", "_stale", "_start", "_used")

    def __init__(self) -> None:
        self._blob: U8 = np.empty(0, np.uint8)
        self._used = 0
        self._stale = 0
        self._start = Column(np.int32)
        self._length = Column(np.uint16)

    @property
    def packed(self) -> tuple[U8, I32, U16]:
        """Blob, starts and lengths, as kernels take them."""
        return self._blob, self._start.data, self._length.data

    @property
    def nbytes(self) -> int:
        return self._blob.nbytes + self._start.nbytes + self._length.nbytes

    def reserve(self, rows: int) -> None:
        """Room for this many rows."""
        self._start.reserve(rows)
        self._length.reserve(rows)

    def make_room(self, size: int) -> None:
        """Room for this many bytes more, or a refusal."""
        if self._stale > max(_WORTH_SQUEEZING, self._used // 4):
            self._squeeze()
        needed = self._used + size
        if needed > _MOST:
            raise UnfitMachineError(
                f"the texts of all machines would need {needed} bytes, more than {_MOST}: "
                "spread the machines over more shards"
            )
        if needed > len(self._blob):
            room = needed if self._used == 0 else max(needed, self._used + self._used // 8 + 1024)
            blob = np.zeros(room, np.uint8)
            blob[: self._used] = self._blob[: self._used]
            self._blob = blob

    def __getitem__(self, row: int) -> str:
        start = int(self._start.data[row])
        return self._blob[start : start + int(self._length.data[row])].tobytes().decode()

    def write(self, rows: I64, texts: PackedTexts) -> None:
        """Set the texts of these rows, for which room was made."""
        begin = self._used
        self._blob[begin : begin + len(texts.blob)] = texts.blob
        self._used += len(texts.blob)
        self._stale += int(self._length.data[rows].sum(dtype=np.int64))
        self._start.write(rows, (texts.starts + begin).astype(np.int32))
        self._length.write(rows, texts.lengths.astype(np.uint16))

    def put(self, row: int, text: str, what: str) -> None:
        """Set the text of one row, or refuse it; `what` names it in the refusal."""
        content = _encoded(text, what)
        size = len(content)
        if size > LONGEST_BYTES:
            raise _too_long(text, what)
        self.make_room(size)
        begin = self._used
        self._blob[begin : begin + size] = np.frombuffer(content, np.uint8)
        self._used += size
        self._stale += int(self._length.data[row])
        self._start.put(row, begin)
        self._length.put(row, size)

    def erase(self, rows: I64) -> None:
        """Empty the texts of these rows."""
        self._stale += int(self._length.data[rows].sum(dtype=np.int64))
        self._length.erase(rows)

    def lend(self, rows: int) -> TextView:
        """The texts of the first rows, whatever happens later."""
        return TextView(self._blob, self._start.lend(rows), self._length.lend(rows))

    def _squeeze(self) -> None:
        starts, lengths = self._start.data.astype(np.int64), self._length.data.astype(np.int64)
        texts = _packed_again(self._blob, starts, lengths)
        self._blob = texts.blob.copy()
        self._used, self._stale = len(self._blob), 0
        self._start.replace(texts.starts.astype(np.int32))


class TextView(Sequence[str]):
    """Texts by row, decoded when asked for."""

    __slots__ = ("_blob", "_length", "_start")

    def __init__(self, blob: U8, start: I32, length: U16) -> None:
        self._blob = blob
        self._start = start
        self._length = length

    def __len__(self) -> int:
        return len(self._start)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return TextView(self._blob, self._start[row], self._length[row])
        start = int(self._start[row])
        return self._blob[start : start + int(self._length[row])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        blob = self._blob.tobytes()
        for start, length in zip(self._start.tolist(), self._length.tolist(), strict=True):
            yield blob[start : start + length].decode()

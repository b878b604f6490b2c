"""How a span is named, so that processes agree on it.

A roll-up travels in a stream that has no room for headers, and needs none: cluster and time name it
for good, so both ends derive the same ids from them. Whether a trace is kept follows from its id as
well, so all who keep the same share keep the same traces. Calls carry the W3C header `traceparent`;
a request for bootstrap data carries it in front of its id, which only the shard reads.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

HEADER: Final = "traceparent"
_TRACEPARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SHARED: Final = 2**64
"""Shares are told by the lower half of a trace id, as others who sample by ratio do."""


@dataclass(frozen=True, slots=True)
class SpanRef:
    """A span by its numbers: of 128 and of 64 bits, neither of them 0."""

    trace: int
    span: int


def rollup_ref(cluster: str, timestamp_ns: int) -> SpanRef:
    """The span of a roll-up, the first of its trace."""
    named = f"bigfleet roll-up\0{cluster}\0{timestamp_ns}".encode()
    digest = hashlib.blake2b(named, digest_size=24).digest()
    # A number of 0 means none; that it comes out is as likely as never.
    return SpanRef(int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:]) or 1)


def is_kept(trace: int, share: float) -> bool:
    """Whether this trace is among the share that is recorded."""
    return trace % _SHARED < round(share * _SHARED)


def traceparent(ref: SpanRef) -> str:
    """A recorded span as the header says it."""
    return f"00-{ref.trace:032x}-{ref.span:016x}-01"


def parse_traceparent(text: str) -> SpanRef | None:
    """The recorded span a text begins with; None where there is none."""
    found = _TRACEPARENT.match(text)
    if found is None or not int(found[3], 16) & 1:
        return None
    ref = SpanRef(int(found[1], 16), int(found[2], 16))
    return ref if ref.trace and ref.span else None

"""Pages of a listing, with cursors that stay right while objects come and go.

A cursor says after which id to go on. Nothing is shown twice and nothing that was there all the
time is left out, whatever is made or removed between two pages.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from bigfleet_fakecloud.collection import Resource
from bigfleet_fakecloud.errors import BadRequest


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing; the cursor of the last one is None."""

    items: tuple[Resource, ...]
    cursor: str | None


def page(items: Sequence[Resource], size: int, cursor: str | None = None) -> Page:
    """The objects after a cursor, in the order of their ids."""
    if size < 1:
        raise BadRequest(f"a page has at least one item, not {size}")
    after = _decode(cursor) if cursor else ""
    rest = sorted((item for item in items if item.ref > after), key=lambda item: item.ref)
    shown = tuple(rest[:size])
    return Page(shown, _encode(shown[-1].ref) if len(rest) > size else None)


def _encode(ref: str) -> str:
    return base64.urlsafe_b64encode(b"after:" + ref.encode()).decode()


def _decode(cursor: str) -> str:
    try:
        text = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    if not text.startswith("after:"):
        raise BadRequest(f"cursor {cursor!r} was not given by this cloud")
    return text.removeprefix("after:")

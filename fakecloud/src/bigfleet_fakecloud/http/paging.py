"""Pages of a listing, in the four ways in which clouds cut one.

    page            a cursor in the answer (or, with `next_link`, an address that has the cursor)
    numbered_page   ?page=2&per_page=50, with a total
    offset_page     ?offset=50&limit=50
    link_header     RFC 5988: the addresses of the first, previous, next and last page in a header

A cursor says after which id to go on: nothing is shown twice and nothing that was there all the
time is left out, whatever is made or removed between two pages. Numbers and offsets promise no such
thing; a listing that changes meanwhile shifts below the reader, as it does in the real clouds.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from bigfleet_fakecloud.errors import BadRequest
from bigfleet_fakecloud.http.call import Call
from bigfleet_fakecloud.state.collection import Resource


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


def next_link(call: Call, cursor: str | None, name: str = "cursor") -> str | None:
    """The address of the page after this one, for clouds that hand out addresses."""
    return None if cursor is None else call.url(**{name: cursor})


@dataclass(frozen=True, slots=True)
class NumberedPage:
    """A part of a listing that is counted from page 1; `next` is None on the last page."""

    items: tuple[Resource, ...]
    number: int
    size: int
    total: int

    @property
    def last(self) -> int:
        """The number of the last page; an empty listing has one page."""
        return max(1, -(-self.total // self.size))

    @property
    def previous(self) -> int | None:
        """The page before."""
        return self.number - 1 if self.number > 1 else None

    @property
    def next(self) -> int | None:
        """The page after."""
        return self.number + 1 if self.number < self.last else None


def numbered_page(
    items: Sequence[Resource],
    call: Call,
    *,
    number: str = "page",
    size: str = "per_page",
    usual: int = 25,
    most: int = 50,
) -> NumberedPage:
    """The page that a call names, in the order of the ids. `number` and `size` are parameters.

    A size above `most` is refused where the cloud would refuse it or cut it without a word.
    """
    wanted, length = call.number(number, 1), call.number(size, usual)
    if wanted < 1 or not 1 <= length <= most:
        raise BadRequest(f"{number} is from 1 on and {size} from 1 to {most}: {wanted}, {length}")
    ordered = sorted(items, key=lambda item: item.ref)
    shown = tuple(ordered[(wanted - 1) * length : wanted * length])
    return NumberedPage(shown, wanted, length, len(ordered))


def offset_page(
    items: Sequence[Resource],
    call: Call,
    *,
    offset: str = "offset",
    limit: str = "limit",
    usual: int = 100,
    most: int = 100,
) -> tuple[Resource, ...]:
    """The part of a listing that a call names by offset and limit."""
    start, length = call.number(offset, 0), call.number(limit, usual)
    if start < 0 or not 1 <= length <= most:
        raise BadRequest(f"{offset} is from 0 on and {limit} from 1 to {most}: {start}, {length}")
    return tuple(sorted(items, key=lambda item: item.ref)[start : start + length])


def link_header(call: Call, part: NumberedPage, number: str = "page") -> dict[str, str]:
    """The header by which a caller finds the other pages; empty when there is one page only."""
    relations = {"first": 1, "prev": part.previous, "next": part.next, "last": part.last}
    links = [
        f'<{call.url(**{number: target})}>; rel="{name}"'
        for name, target in relations.items()
        if target is not None
    ]
    return {"Link": ", ".join(links)} if part.last > 1 else {}


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

"""One List of one provider: page by page, and of each page only what is news.

Records are recognised by a digest of their bytes: what is in the book as it was last listed is
neither decoded nor merged again. Finding records and decoding them happens away from the event
loop, in pieces of a few milliseconds; looking them up in the book happens on it, in pieces too.
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import grpc

from bigfleet.model import Machine, MachineError, MachineState
from bigfleet.observe.process import Clock, Offload
from bigfleet.provider import (
    GarbageError,
    Page,
    ProviderClient,
    RefusedRecord,
    UnusableAnswerError,
    id_of,
)
from bigfleet.shard.machines.book import Book
from bigfleet.shard.providers.answers import PART, Answer, Inbox, Walk
from bigfleet.shard.providers.digests import Digests, digest_of
from bigfleet.shard.providers.provider_poll import Feed

PAGE: Final = 20_000
_PROBE: Final = 1_000
_MOST_PAGES: Final = 500
_FOUND: Final = 5_000
"""Records found and digested in one piece: 10 ms at 2 us each."""
_MATCHED: Final = 2_000
"""Records looked up between two turns of the event loop: 4 ms at 2 us each."""
_DECODED: Final = 1_000
"""Records decoded in one piece: 30 ms at 30 us each."""
_ID: Final = 0x0A
"""Field 1 of a record, a text: its id, which comes first where fields are in order."""
_STATE: Final = 0x10
"""Field 2 of a record, a number: its state, which follows the id where fields are in order."""
_LAST_STATE: Final = max(MachineState)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Found:
    """An answer whose records are known by id and digest."""

    page: Page
    ids: list[str] = field(default_factory=list)
    digests: array[int] = field(default_factory=lambda: array("q"))
    doubled: int = 0
    """Records of which a later one is of the same machine."""

    def __len__(self) -> int:
        return len(self.ids)


class ListReader:
    """Lists providers and queues what is news."""

    def __init__(
        self,
        book: Book,
        digests: Digests,
        inbox: Inbox,
        clock: Clock,
        offload: Offload,
        on_arrival: Callable[[Answer], None],
        page: int = PAGE,
    ) -> None:
        self._book = book
        self._digests = digests
        self._inbox = inbox
        self._clock = clock
        self._offload = offload
        self._on_arrival = on_arrival
        self._page = page

    async def ask(self, feed: Feed, walk: Walk | None) -> None:
        """Ask for everything (with a walk), or for what changed since the cursor.

        Raises ProviderError; what was queued before it is good all the same.
        """
        feed.question += 1
        since = back_to = b"" if walk else feed.since()
        for _ in range(_MOST_PAGES):
            most = 0 if feed.continues is False else self._page
            sent_monotonic_s = self._clock.monotonic()
            async with feed.client.list_raw(max_results=most, since=since) as payload:
                found = await self._find(feed, payload)
                revision = found.page.revision
                goes_on = bool(most) and len(found) == most
                if goes_on and not await self._continues(feed, since, revision):
                    continue
                answer = Answer(feed.name, sent_monotonic_s, feed.question, back_to, walk=walk)
                await self._bring(feed, found, answer, ends=not goes_on)
            if not goes_on:
                feed.has_cursor = bool(revision)
                feed.cursor = revision
                return
            since = revision
        raise _unusable(feed.client, f"the list did not end after {_MOST_PAGES} pages")

    async def _continues(self, feed: Feed, since: bytes, revision: bytes) -> bool:
        """Whether a list that was cut goes on from its cursor; some providers give the head.

        Found out once, with two short pages: there are more machines than both can hold, so the
        second is full of others unless the cursor was the head.
        """
        if feed.continues is None:
            short = min(_PROBE, max(1, self._page // 2))
            async with feed.client.list_raw(max_results=short) as payload:
                first = await self._find(feed, payload)
            cursor = first.page.revision
            async with feed.client.list_raw(max_results=short, since=cursor) as payload:
                second = await self._find(feed, payload)
            feed.continues = bool(cursor) and len(set(second.ids) - set(first.ids)) == short
        if feed.continues and (not revision or revision == since):
            feed.continues = False
        return feed.continues

    async def _find(self, feed: Feed, payload: bytes) -> _Found:
        found = _Found(Page(payload))
        more = True
        while more:
            more = await self._offload(lambda: _find_some(found, feed))
        return found

    async def _bring(self, feed: Feed, found: _Found, answer: Answer, ends: bool) -> None:
        """Queue the records of an answer that are news, then the end of the List.

        The end comes also without news, so that a List counts as merged whatever it brought. It
        has no records: it costs nothing and waits for the next cycle.
        """
        news = await self._news(feed, found, answer.walk)
        if found.doubled:
            doubles = Answer(
                answer.provider, answer.sent_monotonic_s, answer.question, answer.since
            )
            doubles.doubled = found.doubled
            await self._put(doubles)
        for start in range(0, len(news), PART):
            part = Answer(
                answer.provider,
                answer.sent_monotonic_s,
                answer.question,
                answer.since,
                walk=answer.walk,
            )
            for at in range(start, min(start + PART, len(news)), _DECODED):
                piece = news[at : min(at + _DECODED, start + PART)]
                good, bad = await self._offload(partial(_decode, feed.client, found, piece))
                part.machines += good
                part.refused += bad
            await self._put(part)
        if ends:
            answer.ends_walk = answer.walk is not None
            await self._put(answer)

    async def _put(self, answer: Answer) -> None:
        await self._inbox.put(answer)
        self._on_arrival(answer)

    async def _news(self, feed: Feed, found: _Found, walk: Walk | None) -> list[int]:
        """The places of records that are not in the book as they are."""
        last = _last_places(found.ids)
        found.doubled = len(found) - len(last)
        if found.doubled:
            _log.warning(
                "provider lists machines twice: the last record of each is used",
                extra={"provider": feed.name, "count": found.doubled},
            )
        row_of, known, strangers = self._book.row, self._digests, feed.strangers
        busy = self._book.busy
        news: list[int] = []
        for begin in range(0, len(last), _MATCHED):
            for place in last[begin : begin + _MATCHED]:
                digest, machine_id = found.digests[place], found.ids[place]
                row = row_of(machine_id)
                if row >= 0 and known.holds(row, digest):
                    feed.unresolved.pop(machine_id, None)
                elif row >= 0 and known.held(row, digest) and busy(machine_id):
                    # From before the action on it: what comes of that has another record.
                    pass
                elif digest in strangers and machine_id not in feed.wanted:
                    if walk is not None:
                        walk.strangers.add(digest)
                    continue
                else:
                    news.append(place)
                    continue
                if walk is not None:
                    walk.saw(row)
            await asyncio.sleep(0)
            strangers = feed.strangers
        return news


def _find_some(found: _Found, feed: Feed) -> bool:
    page, salt = found.page, feed.salt
    begin = len(page)
    try:
        more = page.read(_FOUND)
    except GarbageError as error:
        raise _unusable(feed.client, f"no list of machines: {error}") from error
    payload, ids, digests = page.payload, found.ids, found.digests
    for start, end in zip(page.starts[begin:], page.ends[begin:], strict=True):
        record = payload[start:end]
        digests.append(digest_of(record, salt))
        size = record[1] if end - start > 2 and record[0] == _ID else 0x80
        if size < 0x80 and end - start > size + 3 and record[2 + size] == _STATE:
            # As everybody writes it: id, then state.
            if record[3 + size] > _LAST_STATE:
                raise _unusable(feed.client, f"a machine has a state above {_LAST_STATE}")
            try:
                ids.append(str(record[2 : 2 + size], "utf-8"))
            except UnicodeDecodeError:
                ids.append("")
        else:
            ids.append(id_of(record))
            with suppress(MachineError):
                # Nothing of an answer may be used when one of its states is unknown.
                feed.client.decode(record)
    return more


def _last_places(ids: list[str]) -> list[int] | range:
    """The places of the last record of each id; a provider should list none twice."""
    if len(set(ids)) == len(ids):
        return range(len(ids))
    last = {machine_id: place for place, machine_id in enumerate(ids) if machine_id}
    nameless = [place for place, machine_id in enumerate(ids) if not machine_id]
    return sorted([*last.values(), *nameless])


def _decode(
    client: ProviderClient, found: _Found, places: list[int]
) -> tuple[list[tuple[Machine, int]], list[tuple[RefusedRecord, int]]]:
    good: list[tuple[Machine, int]] = []
    bad: list[tuple[RefusedRecord, int]] = []
    for place in places:
        digest = found.digests[place]
        try:
            good.append((client.decode(found.page.record(place)), digest))
        except MachineError as error:
            bad.append((RefusedRecord(found.ids[place], error), digest))
    return good, bad


def _unusable(client: ProviderClient, text: str) -> UnusableAnswerError:
    return UnusableAnswerError(client.name, "List", "", grpc.StatusCode.OK, text)

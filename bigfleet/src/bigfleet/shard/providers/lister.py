"""Asks every provider in its own time, and merges what has come in when the cycle says so.

    with the cursor     every interval; every second while something of the provider is in flight
    in full             every ten minutes, after any error, every 20 s while removals are held
    one machine (Get)   after a failed action; in flight, where the provider knows no cursor

One loop per provider, so that one that hangs keeps no other waiting. What arrives waits in a
bounded queue; merging changes the book and runs on the event loop, in pieces.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from bigfleet.model import Machine, Stamp
from bigfleet.model.lifecycle import TRANSITIONAL
from bigfleet.observe.process import Clock, Offload
from bigfleet.provider import ProviderError, Providers
from bigfleet.shard.machines.book import Book
from bigfleet.shard.providers.answers import Answer, Inbox, MergeSummary, Walk
from bigfleet.shard.providers.apply_lists import KNOWN, Merger
from bigfleet.shard.providers.digests import Digests
from bigfleet.shard.providers.get_poller import GetPoller
from bigfleet.shard.providers.list_reader import PAGE, ListReader
from bigfleet.shard.providers.provider_poll import Feed
from bigfleet.shard.state.journal import Journal, JournalEntry
from bigfleet.shard.state.ownership import OwnershipFile

IN_FLIGHT: Final = 1.0
FULL: Final = 600.0
HELD: Final = 20.0
_FIRST_BACKOFF: Final = 1.0
_MOST_BACKOFF: Final = 30.0
_PIECE: Final = 400
"""Effort between two turns of the event loop: 12 ms at 30 us for a new machine."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """How it stands with one provider."""

    name: str
    address: str
    region: str
    reachable: bool
    last_list_unix_ns: int
    last_error: str
    is_first_merged: bool
    held: int
    """Machines whose disappearance is not believed yet."""
    age_seconds: float | None
    """Since something of a List of it was last merged; None for never."""


class Lister:
    """Keeps a book in line with what providers say."""

    def __init__(
        self,
        book: Book,
        providers: Providers,
        ownership: OwnershipFile,
        journal: Journal,
        clock: Clock,
        offload: Offload,
        rng: Random,
        *,
        interval: float = 10.0,
        remembered: dict[str, JournalEntry] | None = None,
        restamped: dict[str, Stamp] | None = None,
        on_arrival: Callable[[], None] = lambda: None,
        page: int = PAGE,
    ) -> None:
        """`remembered` is what the journal loaded, `restamped` are the stamps given since;
        `on_arrival` wakes the cycle."""
        self._book = book
        self._providers = providers
        self._clock = clock
        self._rng = rng
        self._interval = interval
        self._on_arrival = on_arrival
        self._feeds: dict[str, Feed] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._digests = Digests()
        self._inbox = Inbox()
        self._changed = asyncio.Event()
        self._walking: Walk | None = None
        """The full List of which a part is being merged."""
        self._asking = ListReader(
            book, self._digests, self._inbox, clock, offload, self._arrived, page
        )
        self._getting = GetPoller(self._inbox, clock, self._arrived)
        self._merger = Merger(
            book, self._digests, ownership, journal, clock, remembered or {}, restamped or {},
            self._feeds,
        )  # fmt: skip
        book.on_change.append(self._book_changed)
        ownership.on_change.append(self._ownership_changed)

    # -- what others ask -------------------------------------------------------------------------

    def first_merged(self, provider: str) -> bool:
        """Whether the first full List of a provider is in the book."""
        feed = self._feeds.get(provider)
        return feed is not None and feed.is_first_merged

    def all_first_merged(self) -> bool:
        """The same for every provider there is."""
        return all(self.first_merged(client.name) for client in self._providers)

    def status(self) -> list[ProviderStatus]:
        """How it stands with each provider."""
        now = self._clock.monotonic()
        return [
            ProviderStatus(
                feed.name,
                feed.client.site.address,
                feed.client.site.region,
                reachable=not feed.failures and bool(feed.listed_at_ns),
                last_list_unix_ns=feed.listed_at_ns,
                last_error=feed.last_error,
                is_first_merged=feed.is_first_merged,
                held=feed.losses.holding,
                age_seconds=None if feed.merged_at is None else now - feed.merged_at,
            )
            for feed in self._feeds.values()
        ]

    def contradicted(self) -> int:
        """Bound machines in a state that what their provider says of them cannot confirm."""
        return sum(self._merger.contradicted(feed) for feed in self._feeds.values())

    def refresh(self, machine_id: str) -> None:
        """Look at a machine soon, by itself."""
        known = self._book.get(machine_id)
        feed = self._feeds.get(known.provider) if known else None
        if feed is not None:
            feed.want_get(machine_id)

    def refresh_all(self) -> None:
        """Ask every provider for everything, soon."""
        for feed in self._feeds.values():
            feed.want_full(self._clock.monotonic())

    def providers_changed(self) -> None:
        """The registry of providers is another one now."""
        self._changed.set()

    # -- merging ---------------------------------------------------------------------------------

    async def merge(self) -> MergeSummary:
        """Merge everything that has arrived, other tasks having their turns in between."""
        into = MergeSummary()
        while True:
            into.more = False
            self.merge_some(into)
            if not into.more:
                return into
            await asyncio.sleep(0)

    def merge_some(self, into: MergeSummary, effort: int = _PIECE) -> None:
        """Merge a piece; `into.more` says whether there is another one."""
        merger = self._merger
        if merger.going:
            merger.remove_some(effort // KNOWN, into)
        elif (answer := self._inbox.first()) is not None:
            feed = self._feeds.get(answer.provider)
            self._walking = answer.walk
            if feed is None or merger.merge(feed, answer, effort, into):
                self._inbox.done()
                if feed is not None:
                    self._merged(feed, answer)
        self._walking = None
        into.more = bool(merger.going) or len(self._inbox) > 0
        if not into.more:
            self._look_again()

    def _merged(self, feed: Feed, answer: Answer) -> None:
        now = self._clock.monotonic()
        if answer.question:
            feed.merged_at = now
        if not answer.ends_walk or answer.walk is not feed.walk or answer.walk is None:
            return
        feed.walk = None
        feed.stirred.set()
        self._merger.end_walk(feed, answer.walk)
        if feed.losses.holding:
            feed.want_full(now + HELD)
        if self._merger.remembered and self.all_first_merged():
            self._merger.forget_what_is_gone()

    def _look_again(self) -> None:
        """Machines whose last record came at the wrong moment."""
        for feed in self._feeds.values():
            for machine_id in [m for m in feed.recheck if not self._book.busy(m)]:
                del feed.recheck[machine_id]
                feed.want_get(machine_id)

    # -- asking ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._follow(lambda work, name: group.create_task(work, name=name))
                await self._changed.wait()
                self._changed.clear()

    def _follow(
        self, start: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    ) -> None:
        """One feed for each provider there is, none for those that are gone."""
        clients = {client.name: client for client in self._providers}
        for name, feed in list(self._feeds.items()):
            if clients.get(name) is not feed.client:
                self._tasks.pop(name).cancel()
                self._inbox.drop(name)
                del self._feeds[name]
            if name not in clients:
                left = self._merger.let_go(name)
                _log.warning("provider removed", extra={"provider": name, "still_bound": left})
                self._on_arrival()
        for name, client in clients.items():
            if name not in self._feeds:
                feed = Feed(client, self._rng.getrandbits(62))
                feed.in_flight = self._moving(name)
                self._feeds[name] = feed
                self._tasks[name] = start(self._serve(feed), f"list {name}")

    async def _serve(self, feed: Feed) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listing(feed))
            group.create_task(self._getting.run(feed))

    async def _listing(self, feed: Feed) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                await self._list(feed)
            except ProviderError as error:
                await self._failed(feed, error)
                continue
            await self._pause(feed, began)

    async def _list(self, feed: Feed) -> None:
        now = self._clock.monotonic()
        walk = None
        if now >= feed.full_due or not feed.cursor:
            feed.full_due = now + FULL
            # Another release may answer there now, which does not go on as this one did.
            feed.continues = feed.continues and None
            feed.walk = walk = Walk(feed.question + 1, feed.wanted)
        await self._asking.ask(feed, walk)
        feed.listed_at_ns = self._clock.now()
        feed.failures, feed.last_error = 0, ""

    async def _failed(self, feed: Feed, error: ProviderError) -> None:
        feed.failures += 1
        feed.last_error = str(error)
        feed.walk = feed.continues = None
        feed.full_due = 0.0
        longest = min(_MOST_BACKOFF, _FIRST_BACKOFF * 2 ** min(feed.failures - 1, 10))
        wait = longest * self._rng.uniform(0.5, 1.0)
        _log.warning(
            "reconcile failed",
            extra={"provider": feed.name, "error": str(error), "retry_in_s": round(wait, 1)},
        )
        await asyncio.sleep(wait)

    async def _pause(self, feed: Feed, began: float) -> None:
        """Wait until the next List is due and the last full one is merged."""
        while True:
            rest = began + self._gap(feed, began) - self._clock.monotonic()
            if rest <= 0 and feed.walk is None:
                return
            if feed.in_flight and not feed.has_cursor:
                for machine_id in sorted(feed.in_flight):
                    feed.want_get(machine_id)
                rest = min(rest, IN_FLIGHT)
            feed.stirred.clear()
            try:
                async with asyncio.timeout(rest if rest > 0 else None):
                    await feed.stirred.wait()
            except TimeoutError:
                continue

    def _gap(self, feed: Feed, began: float) -> float:
        soon = min(IN_FLIGHT, self._interval)
        is_busy = feed.has_cursor and (feed.in_flight or feed.unresolved)
        return max(soon, min(soon if is_busy else self._interval, feed.full_due - began))

    # -- what happens meanwhile ------------------------------------------------------------------

    def _arrived(self, answer: Answer) -> None:
        busy = self._book.busy
        if answer.ends_walk or any(not busy(machine.id) for machine, _ in answer.machines):
            self._on_arrival()

    def _book_changed(self, before: Machine | None, after: Machine | None) -> None:
        machine = after or before
        if machine is None:
            return
        feed = self._feeds.get(machine.provider)
        if after is None:
            if feed is not None:
                feed.in_flight.discard(machine.id)
                feed.unresolved.pop(machine.id, None)
            return
        self._digests.reset(self._book.row(after.id))
        if feed is None:
            return
        if after.state in TRANSITIONAL:
            if not feed.in_flight:
                feed.stirred.set()
            feed.in_flight.add(after.id)
        else:
            feed.in_flight.discard(after.id)
        if before is None and feed.walk is not None and feed.walk is not self._walking:
            feed.walk.newcomers.add(after.id)

    def _ownership_changed(self, moved: frozenset[str] | None) -> None:
        """Look again at machines that were given or received, or at all."""
        if moved is None:
            self._digests.clear()
            for feed in self._feeds.values():
                feed.strangers = set()
                if feed.walk is not None:
                    feed.walk.strangers = set()
            self.refresh_all()
            return
        known = [machine_id for machine_id in sorted(moved) if machine_id in self._book]
        for machine_id in known:
            self.refresh(machine_id)
        if len(known) < len(moved):
            # It is not known yet which provider lists the others.
            for feed in self._feeds.values():
                feed.wanted |= moved
            self.refresh_all()

    def _moving(self, provider: str) -> set[str]:
        return {
            machine_id
            for machine_id in self._book.moving_since()
            if (known := self._book.get(machine_id)) and known.provider == provider
        }

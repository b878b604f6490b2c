"""Answers into the book: what changed, what was lost, what is gone, what is not ours.

Runs on the event loop in pieces, and does no I/O. A record the book cannot take now (an action is
under way, or it may be older than one) has to come again: the provider's cursor goes back to before
it or, when it came with a full List, the machine is asked for by itself.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from bigfleet.inventory import InventoryError
from bigfleet.model import Machine, MachineError, MachineState, Stamp
from bigfleet.model.columns import MachineColumns
from bigfleet.model.lifecycle import ALLOCATABLE, HELD
from bigfleet.observe.process import Clock
from bigfleet.provider import RefusedRecord
from bigfleet.shard.machines.book import Book, RecordEffect, RecordResult
from bigfleet.shard.machines.merge_record import is_worth_remembering, merge, restored
from bigfleet.shard.providers.answers import Answer, MergeSummary, Walk
from bigfleet.shard.providers.digests import Digests
from bigfleet.shard.providers.provider_poll import Feed
from bigfleet.shard.state.journal import Journal, JournalEntry
from bigfleet.shard.state.ownership import OwnershipFile
from bigfleet.shard.state.restamps import renewed

I64 = npt.NDArray[np.int64]

KNOWN: Final = 5
_STRUCTURAL: Final = "structural"
_MOST_COMPLAINTS: Final = 10_000
_HELD: Final = tuple(HELD)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PendingRemoval:
    """Machines of a provider that are about to be removed."""

    provider: str
    ids: Sequence[str]
    rows: list[int]
    done: int = 0


@dataclass(slots=True)
class Merger:
    """Merges answers into one book."""

    book: Book
    digests: Digests
    ownership: OwnershipFile
    journal: Journal
    clock: Clock
    remembered: dict[str, JournalEntry]
    """What the journal held at the start, until every provider was heard."""
    restamped: dict[str, Stamp]
    """The stamps machines had got since, likewise."""
    providers: Container[str]
    """The names of providers that are asked."""
    going: deque[PendingRemoval] = field(default_factory=deque)

    def merge(self, feed: Feed, answer: Answer, effort: int, into: MergeSummary) -> bool:
        """Merge a piece of an answer, as much as is worth so much effort; whether it is finished.

        A new machine costs 1, one that is known `KNOWN`.
        """
        if answer.doubled:
            into.refused[_STRUCTURAL] += answer.doubled
            answer.doubled = 0
        if answer.refused:
            for refused, digest in answer.refused:
                self._refuse(feed, answer.walk, refused, digest, into)
            answer.refused = []
        new: list[tuple[Machine, int]] = []
        while effort > 0 and answer.merged < len(answer):
            machine, digest = answer.machines[answer.merged]
            answer.merged += 1
            if machine.id not in self.book and self.ownership.owns(machine):
                new.append((self._restored(machine, into), digest))
                effort -= 1
            else:
                self._take(feed, answer, machine, digest, into)
                effort -= KNOWN
        self._insert(feed, answer, new, into)
        if answer.question:
            into.merged.add(feed.name)
        return answer.merged >= len(answer)

    def end_walk(self, feed: Feed, walk: Walk) -> None:
        """A full List is merged: what it did not show is gone, or held."""
        book = self.book
        for machine_id in walk.newcomers:
            row = book.row(machine_id)
            if row >= 0:
                walk.saw(row)
        rows = book.rows_of_provider(feed.name)
        seen = np.zeros(max(len(walk.seen), int(rows.max(initial=-1)) + 1), np.bool_)
        seen[: len(walk.seen)] = np.frombuffer(walk.seen, np.bool_)
        fleet = book.snapshot()
        is_bound = np.isin(fleet.state[rows], _HELD)
        absent = ~seen[rows]
        held_before = feed.losses.holding
        verdict = feed.losses.judge(rows[absent], is_bound[absent], int(is_bound.sum()))
        self._going(feed.name, fleet, verdict.gone)
        self._tell_of_holding(feed, held_before, len(verdict.gone))
        feed.strangers = walk.strangers
        feed.wanted -= walk.wanted
        feed.is_first_merged = True
        for machine_id, (question, _) in list(feed.unresolved.items()):
            if question < walk.number:
                del feed.unresolved[machine_id]

    def remove_some(self, most: int, into: MergeSummary) -> None:
        """Remove so many of the machines that are gone."""
        if not self.going:
            return
        gone = self.going[0]
        for row in gone.rows[gone.done : gone.done + most]:
            machine_id = gone.ids[row]
            known = self.book.get(machine_id)
            is_theirs = known is not None and known.provider == gone.provider
            if known is None or not is_theirs:
                continue
            if self.book.busy(machine_id):
                _log.warning(
                    "inventory remove failed",
                    extra={"machine": machine_id, "provider": gone.provider,
                           "error": "an action on it is under way: looked at when it has ended"},
                )  # fmt: skip
                continue
            self._remove(known, into, is_loss=True)
        gone.done += most
        if gone.done >= len(gone.rows):
            self.going.popleft()

    def let_go(self, provider: str) -> int:
        """A provider is no longer asked: what serves no cluster is dropped; how many stay.

        Bound machines still run as far as anybody knows, and go on counting for their clusters.
        """
        fleet = self.book.snapshot()
        rows = self.book.rows_of_provider(provider)
        is_bound = np.isin(fleet.state[rows], _HELD)
        self._going(provider, fleet, rows[~is_bound])
        return int(is_bound.sum())

    def forget_what_is_gone(self) -> None:
        """Every provider was heard: what is remembered of machines that no List held is dropped."""
        self.journal.forget_soon(id for id in self.remembered if id not in self.book)
        self.remembered.clear()
        self.restamped.clear()

    def contradicted(self, feed: Feed) -> int:
        """Bound machines that their provider says something impossible of."""
        known = (self.book.get(machine_id) for machine_id in feed.contradicted)
        return sum(machine is not None and machine.state in HELD for machine in known)

    def _going(self, provider: str, fleet: MachineColumns, rows: I64) -> None:
        if len(rows):
            self.going.append(PendingRemoval(provider, fleet.ids, rows.tolist()))

    # -- one record ------------------------------------------------------------------------------

    def _take(
        self, feed: Feed, answer: Answer, machine: Machine, digest: int, into: MergeSummary
    ) -> None:
        book, walk = self.book, answer.walk
        known = book.get(machine.id)
        if known is not None and known.provider != feed.name and known.provider in self.providers:
            self._refuse(feed, None, _listed_by_two(machine, known), digest, into)
            return
        if not self.ownership.owns(machine):
            if known is not None and book.busy(machine.id):
                self._later(feed, answer, machine.id)
            elif known is not None:
                self._remove(known, into, is_loss=False)
            if digest and (known is None or machine.id not in book):
                feed.strangers.add(digest)
                if walk is not None:
                    walk.strangers.add(digest)
            return
        row = book.row(machine.id)
        if walk is not None and row >= 0:
            walk.saw(row)
        try:
            taken = book.take(machine, answer.sent_monotonic_s)
        except InventoryError as error:
            self._refuse(
                feed, walk, RefusedRecord(machine.id, MachineError(str(error))), digest, into
            )
            return
        if taken.seen is RecordEffect.ASIDE or (
            taken.seen is RecordEffect.STALE and self._tells(known, machine)
        ):
            self._later(feed, answer, machine.id)
            return
        self._settled(feed, answer, machine.id, digest)
        self._count(taken, known, into)

    def _insert(
        self, feed: Feed, answer: Answer, new: list[tuple[Machine, int]], into: MergeSummary
    ) -> None:
        """New machines, all at once: putting one costs as much as putting fifty."""
        if not new:
            return
        now = self.clock.now()
        machines = [merge(None, machine, now).machine for machine, _ in new]
        try:
            rows = self.book.insert(machines)
        except InventoryError:
            # One of them fits no column, or two are the same: find out which.
            for machine, digest in new:
                self._take(feed, answer, machine, digest, into)
            return
        for row, (machine, digest) in zip(rows.tolist(), new, strict=True):
            feed.unresolved.pop(machine.id, None)
            if digest:
                self.digests.set(row, digest)
            if answer.walk is not None:
                answer.walk.saw(row)
        into.changes += len(new)
        into.freed += sum(m.state in ALLOCATABLE for m in machines)

    def _restored(self, machine: Machine, into: MergeSummary) -> Machine:
        entry = self.remembered.pop(machine.id, None) if self.remembered else None
        if entry is not None:
            machine = restored(machine, entry, self.clock.now())
            if not is_worth_remembering(machine):
                self.journal.forget_soon([machine.id])
        stamp = self.restamped.pop(machine.id, None) if self.restamped else None
        return machine if stamp is None else renewed(machine, stamp)

    def _count(self, taken: RecordResult, known: Machine | None, into: MergeSummary) -> None:
        if taken.seen in (RecordEffect.SAME, RecordEffect.STALE):
            return
        into.changes += 1
        into.jumped += taken.jumped
        into.freed += taken.freed
        into.delivered += taken.delivered
        if known is None:
            return
        if taken.lost:
            into.losses.append(known)
        now = self.book.get(known.id)
        if taken.jumped and now is not None and now.state is not MachineState.FAILED:
            _tell_of_jump(known, now)
        if now is None or now.state is known.state or not self.journal.knows(known.id):
            return
        if not is_worth_remembering(now):
            self.journal.forget_soon([known.id])

    def _tells(self, known: Machine | None, machine: Machine) -> bool:
        """Whether a record that may be old says something else than is known."""
        return merge(known, machine, self.clock.now()).changed

    def _settled(self, feed: Feed, answer: Answer, machine_id: str, digest: int) -> None:
        feed.unresolved.pop(machine_id, None)
        feed.contradicted.discard(machine_id)
        row = self.book.row(machine_id)
        if row < 0:
            return
        if digest:
            self.digests.set(row, digest)
        if answer.walk is not None:
            answer.walk.saw(row)

    def _later(self, feed: Feed, answer: Answer, machine_id: str) -> None:
        self.digests.reset(self.book.row(machine_id))
        if answer.since:
            feed.unresolved.setdefault(machine_id, (answer.question, answer.since))
        elif feed.has_cursor or not answer.question:
            feed.recheck[machine_id] = None

    def _remove(self, known: Machine, into: MergeSummary, *, is_loss: bool) -> None:
        taken = self.book.vanish(known.id)
        into.changes += 1
        into.removed += 1
        if is_loss and taken.lost:
            into.losses.append(known)
        self.journal.forget_soon([known.id])

    # -- what is refused -------------------------------------------------------------------------

    def _refuse(
        self, feed: Feed, walk: Walk | None, refused: RefusedRecord, digest: int, into: MergeSummary
    ) -> None:
        into.refused[refused.error.reason] += 1
        row = self.book.row(refused.machine_id)
        if walk is not None and row >= 0:
            # It is there, whatever is wrong with it.
            walk.saw(row)
        known = self.book.get(refused.machine_id)
        if known and known.provider == feed.name and refused.error.reason == _STRUCTURAL:
            feed.contradicted.add(refused.machine_id)
            # The record that was good before is looked at when it comes again.
            self.digests.reset(row)
        if digest and feed.complained.get(refused.machine_id) == digest:
            return
        if len(feed.complained) >= _MOST_COMPLAINTS:
            feed.complained.clear()
        feed.complained[refused.machine_id] = digest
        level = logging.ERROR if isinstance(refused.error, ListedTwiceError) else logging.WARNING
        _log.log(
            level,
            "provider machine rejected at ingest",
            extra={
                "machine": refused.machine_id,
                "provider": feed.name,
                "reason": refused.error.reason,
                "error": str(refused.error),
            },
        )

    def _tell_of_holding(self, feed: Feed, held_before: int, gone: int) -> None:
        held = feed.losses.holding
        if held:
            _log.warning(
                "mass disappearance: removal held until three full Lists say the same; "
                "check whether the provider can see its machines",
                extra={"provider": feed.name, "machines": held},
            )
        elif held_before:
            _log.warning(
                "mass disappearance is over",
                extra={"provider": feed.name, "machines": held_before, "removed": gone},
            )


def _tell_of_jump(known: Machine, now: Machine) -> None:
    """A change that this shard did not order; of a machine that failed its failure tells enough."""
    _log.warning(
        "provider changed a machine by a step that this shard did not order",
        extra={
            "machine": now.id,
            "provider": now.provider,
            "was": _in_words(known),
            "now": _in_words(now),
        },
    )


def _in_words(machine: Machine) -> str:
    of = f" for {machine.cluster}" if machine.cluster and machine.state in HELD else ""
    return f"{machine.state.title}{of}"


class ListedTwiceError(MachineError):
    """Two providers list one id: the first keeps it."""


def _listed_by_two(machine: Machine, known: Machine) -> RefusedRecord:
    return RefusedRecord(
        machine.id,
        ListedTwiceError(
            f"machine {machine.id!r} is listed by provider {machine.provider!r} and by "
            f"{known.provider!r}, which keeps it: give every provider its own name in its ids"
        ),
    )

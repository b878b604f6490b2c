"""List, revision and paging: an inventory that can be followed (B9xx)."""

import asyncio
import time

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import CannotRunError, check
from bigfleet_conformance.harness.oracles import CONFIGURED, IDLE, SPECULATIVE, word
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.registry import Alone, Area, Capability, Chapter

row = Chapter(Area.LISTING, section="3.3").row
DELTAS = (Capability.SINCE_REVISION,)


def ids_of(answer: pb.MachineList) -> list[str]:
    """The ids of an answer."""
    return [machine.id for machine in answer.machines]


def no_doubles(answer: pb.MachineList, where: str) -> set[str]:
    """The ids of an answer, none of them twice."""
    found = ids_of(answer)
    check(len(found) == len(set(found)), f"{where} has an id twice")
    return set(found)


async def revision(p: Probe) -> bytes:
    """The cursor of now."""
    cursor = (await p.list()).revision
    check(cursor, "List returns an empty revision although SinceRevision is claimed")
    return cursor


@row("B901", slots=2, alone=Alone.LANE)
async def filters_by_state(p: Probe) -> None:
    """A state filter gives exactly those states.

    Why: shards ask for the states they need, at every reconcile.
    Does: each single-state filter, then a union of three.
    Passes: only the asked states; the union equals the sum; no id twice.
    """
    await p.idle()
    await p.bound()
    found: dict[int, set[str]] = {}
    for state in range(1, 9):
        answer = await p.list([state])
        found[state] = no_doubles(answer, f"List({word(state)})")
        strangers = {word(m.state) for m in answer.machines if m.state != state}
        check(not strangers, f"List({word(state)}) has machines that are {sorted(strangers)}")
    wanted = (SPECULATIVE, IDLE, CONFIGURED)
    union = no_doubles(await p.list(wanted), "List of three states")
    total = set().union(*(found[state] for state in wanted))
    check(union == total, f"the union has {len(union)} machines, its parts {len(total)}")
    everything = no_doubles(await p.list(), "List")
    check(everything == set().union(*found.values()), "the parts are not the whole")


@row("B902", slots=0)
async def caps_are_kept(p: Probe) -> None:
    """max_results is a cap, and 0 is none.

    Why: a reader that asked for a page must be able to hold it.
    Does: max_results 1, 2, 3, 0.
    Passes: never above the cap; a subset of the full list; at least one if there is any; 0 = all.
    """
    everything = no_doubles(await p.list(), "List")
    if not everything:
        raise CannotRunError("List shows no machine; there is nothing to cap")
    for cap in (1, 2, 3):
        page = no_doubles(await p.list(most=cap), f"List of {cap}")
        check(len(page) <= cap, f"max_results {cap} gave {len(page)} machines")
        check(page, f"max_results {cap} gave nothing")
        check(page <= everything, f"max_results {cap} gave machines that List has not")
    check(no_doubles(await p.list(most=0), "List(0)") == everything, "max_results 0 is not all")


@row("B903", needs=DELTAS)
async def a_change_is_in_the_delta(p: Probe) -> None:
    """A change moves the revision and is in the delta.

    Why: a shard that follows deltas never lists again.
    Does: a mutation.
    Passes: the revision has changed; the delta since the old one holds the machine.
    """
    walker = p.slot()
    before = await revision(p)
    await walker.create()
    answer = await p.list(since=before)
    check(answer.revision != before, "the revision did not change although a machine did")
    check(walker.id in ids_of(answer), "the delta lacks the machine that changed")


@row("B904", slots=0, needs=DELTAS, alone=Alone.LANE)
async def nothing_new_is_nothing(p: Probe) -> None:
    """The delta since now is empty.

    Why: a delta that always has something is a full list in disguise.
    Does: delta since now.
    Passes: empty.
    """
    for _ in range(3):
        answer = await p.list(since=await revision(p))
        check(not answer.machines, f"the delta since now has {len(answer.machines)} machines")


@row("B905", slots=4, needs=DELTAS)
async def every_cursor_misses_nothing(p: Probe) -> None:
    """The delta of any cursor holds every later change.

    Why: a reader may be behind by any number of changes.
    Does: four mutations, five cursors.
    Passes: all revisions differ; the delta of any cursor holds every machine changed later.
    """
    cursors, walkers = [await revision(p)], [p.slot() for _ in range(4)]
    for walker in walkers:
        await walker.create()
        cursors.append(await revision(p))
    check(len(set(cursors)) == 5, "two of five revisions are equal although machines changed")
    for n, cursor in enumerate(cursors):
        missing = {w.id for w in walkers[n:]} - set(ids_of(await p.list(since=cursor)))
        check(not missing, f"the delta of cursor {n} lacks {len(missing)} changed machines")


@row("B906", slots=0)
async def junk_cursors_give_everything(p: Probe) -> None:
    """A cursor that makes no sense gives the full list.

    Why: after a lost store every cursor is junk, and the reader must get well by itself.
    Does: cursor unset, empty, text, binary, 4 KiB of junk.
    Passes: the full list, no error.
    """
    everything = no_doubles(await p.list(), "List")
    if not everything:
        raise CannotRunError("List shows no machine; there is nothing to compare")
    junk = p.random.randbytes(4096)
    for cursor in (b"", b"not-a-cursor", b"\x00\xff\x10\x80", junk):
        found = no_doubles(await p.list(since=cursor), "List with a junk cursor")
        check(found == everything, f"cursor {cursor[:12]!r} gave {len(found)} machines, not all")


@row("B907", slots=5, needs=DELTAS, alone=Alone.LANE)
async def delta_in_pages(p: Probe) -> None:
    """A delta can be read in pages.

    Why: after a long absence a delta is as large as the fleet.
    Does: five mutations, delta in pages of two.
    Passes: no id on both page 0 and page 1; if page 1 brings new ids the walk must end complete; a
    provider that echoes the head is judged by its uncapped delta.
    """
    before = await revision(p)
    walkers = [p.slot() for _ in range(5)]
    for walker in walkers:
        await walker.create()
    wanted = {walker.id for walker in walkers}
    missing = wanted - set(ids_of(await p.list(since=before)))
    check(not missing, f"the delta lacks {len(missing)} changed machines")
    pages: list[set[str]] = []
    cursor = before
    for _ in range(8):
        page = await p.list(most=2, since=cursor)
        check(len(page.machines) <= 2, f"a page of two has {len(page.machines)} machines")
        if not page.machines:
            break
        pages.append(set(ids_of(page)))
        cursor = page.revision
    check(pages, "the first page of the delta is empty")
    if len(pages) > 1:
        twice = pages[0] & pages[1]
        check(not twice, f"{sorted(twice)} is on page 0 and on page 1")
        missing = wanted - set().union(*pages)
        check(not missing, f"the walk over pages lost {len(missing)} of five changes")


@row("B908", slots=0, needs=DELTAS, alone=Alone.LANE)
async def quiet_is_quiet(p: Probe) -> None:
    """While nothing changes the delta stays empty.

    Why: background refreshes that move the revision make every shard read everything again.
    Does: 750 ms of quiet polling.
    Passes: the delta stays empty.
    """
    start = await revision(p)
    ends = time.monotonic() + 0.75
    while time.monotonic() < ends:
        answer = await p.list(since=start)
        check(not answer.machines, f"{len(answer.machines)} machines changed by themselves")
        await asyncio.sleep(0.05)


@row("B909", slots=0, needs=DELTAS, alone=Alone.LANE)
async def almost_a_cursor(p: Probe) -> None:
    """Only an exact cursor is a cursor.

    Why: a cursor that is understood by half leaves changes out.
    Does: exact cursor; cursor + `!`; `~` + cursor; cursor + 0x00 0xff; last bit flipped.
    Passes: empty; the full list for the next three; for the last no error and no unknown id.
    """
    cursor = await revision(p)
    everything = no_doubles(await p.list(), "List")
    cursor = await revision(p)
    check(not (await p.list(since=cursor)).machines, "the exact cursor gives a delta")
    for wrong in (cursor + b"!", b"~" + cursor, cursor + b"\x00\xff"):
        found = no_doubles(await p.list(since=wrong), "List")
        check(found == everything, f"cursor {wrong!r} gave {len(found)} machines, not all")
    flipped = cursor[:-1] + bytes([cursor[-1] ^ 1])
    strangers = set(ids_of(await p.list(since=flipped))) - everything
    check(not strangers, f"a flipped cursor gave unknown ids: {sorted(strangers)[:3]}")

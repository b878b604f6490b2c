"""Scale and soak: the same promises with 8,000 slots and under steady work (B11xx)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from bigfleet_conformance.behaviours.listing import no_doubles, revision
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.oracles import (
    IDLE,
    SPECULATIVE,
    price_misfit,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.harness.watch import never
from bigfleet_conformance.registry import Alone, Area, Capability, Chapter, LaneName, Profile

row = Chapter(
    Area.SCALE,
    section="3.5",
    profiles=(Profile.SCALE,),
    lane=LaneName.SCALE,
    needs=(Capability.SCALE,),
).row
DELTAS = (Capability.SINCE_REVISION,)


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    """Seconds of one call."""
    began = time.monotonic()
    await call()
    return time.monotonic() - began


def percentile(seconds: Sequence[float], share: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@row("B1101", slots=0, alone=Alone.LANE)
async def a_large_inventory_is_whole(p: Probe) -> None:
    """A large inventory is listed whole and well formed.

    Why: a shard plans with what List says, all of it.
    Does: full List.
    Passes: at least the seeded number; each with id, state, instance_type, zone, capacity_type and
    cost in bounds.
    """
    machines = await p.sweep()
    seeded = p.pace.scale_seed
    check(len(machines) >= seeded, f"List has {len(machines)} machines, {seeded} were seeded")
    for machine in machines:
        check(machine.id and machine.state, f"{machine.id!r} lacks id or state")
        check(machine.instance_type, f"{machine.id} has no instance_type")
        check(machine.zone, f"{machine.id} has no zone")
        check(machine.capacity_type, f"{machine.id} has no capacity_type")
    never(machines, price_misfit)


@row("B1102", slots=20, needs=DELTAS, alone=Alone.LANE)
async def a_small_change_is_a_small_delta(p: Probe) -> None:
    """Twenty changes are a delta of twenty.

    Why: the cost of following is the cost of change, not of size.
    Does: configure 20 machines.
    Passes: the delta is exactly those 20.
    """
    walkers = await asyncio.gather(*(p.idle() for _ in range(20)))
    before = await revision(p)
    await asyncio.gather(*(walker.configure(p.binding()) for walker in walkers))
    found = no_doubles(await p.list(since=before), "the delta")
    wanted = {walker.id for walker in walkers}
    check(found == wanted, f"the delta has {len(found)} machines, 20 changed")


@row("B1103", slots=0, needs=DELTAS, alone=Alone.LANE)
async def pages_of_a_large_inventory(p: Probe) -> None:
    """A large inventory can be read in pages.

    Why: a reader may not want 8,000 records at once.
    Does: pages 0 and 1 of 500.
    Passes: caps kept, no id twice, subset of the whole; complete if the provider continues.
    """
    everything = no_doubles(await p.list(), "List")
    seen: set[str] = set()
    cursor = b""
    for number in range(len(everything) // 500 + 2):
        page = await p.list(most=500, since=cursor)
        ids = no_doubles(page, f"page {number}")
        check(len(ids) <= 500, f"a page of 500 has {len(ids)} machines")
        twice = ids & seen
        check(not twice, f"{len(twice)} ids of page {number} were on a page before")
        check(ids <= everything, f"page {number} has machines that List has not")
        new = bool(ids)
        seen |= ids
        cursor = page.revision
        if not new:
            break
    if len(seen) > 500:
        check(seen == everything, f"the pages have {len(seen)} of {len(everything)} machines")


@row("B1104", slots=8)
async def rounds_under_load(p: Probe) -> None:
    """Eight machines keep going round, and every rest is clean.

    Why: what goes wrong once in a hundred rounds goes wrong every minute in a fleet.
    Does: eight machines Configure and Drain for the soak time.
    Passes: at least one round; every IDLE rest clean.
    """
    ends = time.monotonic() + p.pace.soak_s

    async def rounds() -> int:
        walker = await p.idle()
        done = 0
        while done == 0 or time.monotonic() < ends:
            await walker.configure(p.binding("", round=str(done)))
            await walker.drain()
            is_clean(await walker.see())
            done += 1
        return done

    done = await asyncio.gather(*(rounds() for _ in range(8)))
    check(min(done) >= 1, "a machine did not finish one round")


@row("B1105", slots=200)
async def lives_under_load(p: Probe) -> None:
    """Machines come and go, and the fleet keeps its size.

    Why: a slot lost with every tenth machine is a fleet that shrinks by itself.
    Does: Create and Delete one machine after another for the soak time (without Delete: Create
    only, up to 200).
    Passes: resident = created - deleted; size of the fleet unchanged.
    """
    size = len((await p.list()).machines)
    ends = time.monotonic() + p.pace.soak_s
    deletes = p.claims(Capability.DELETE)
    walkers = [p.slot() for _ in range(20 if deletes else 200)]
    created = deleted = 0
    while created == 0 or (time.monotonic() < ends and (deletes or created < len(walkers))):
        walker = walkers[created % len(walkers)]
        await walker.create()
        created += 1
        if deletes:
            await walker.delete()
            deleted += 1
    machines = {m.id: m for m in (await p.list()).machines}
    check(len(machines) == size, f"the fleet had {size} machines and has {len(machines)}")
    states = [machines[walker.id].state for walker in walkers]
    resident = sum(state != SPECULATIVE for state in states)
    check(resident == created - deleted, f"{resident} are resident, {created - deleted} should be")


@row("B1106", slots=60, alone=Alone.RUN)
async def answers_are_quick(p: Probe) -> None:
    """Answers stay quick in a large inventory.

    Why: a shard's cycle waits for them.
    Does: 120 Gets, 120 full Lists, 60 Creates.
    Passes: p99 Get <= 250 ms, Create <= 250 ms, List <= 2 s.
    """
    walkers = [p.slot() for _ in range(60)]
    gets = [await timed(lambda w=w: p.see(w.id)) for w in walkers * 2]  # type: ignore[misc]
    lists = [await timed(p.list) for _ in range(120)]
    creates = []
    for walker in walkers:
        answer = await walker.try_create()
        answer.must_be_ok()
        creates.append(answer.seconds)
    for name, seconds, limit in (
        ("Get", gets, 0.25),
        ("Create", creates, 0.25),
        ("List", lists, 2),
    ):
        p99 = percentile(seconds, 0.99)
        check(p99 <= limit, f"{name} takes {p99 * 1000:.0f} ms (p99), at most {limit * 1000:.0f}")


@row("B1107", slots=0, alone=Alone.RUN)
async def one_list_is_quick(p: Probe) -> None:
    """A full List takes at most three seconds.

    Why: it is the first thing a shard does.
    Does: one full List after warm-up.
    Passes: <= 3 s.
    """
    await p.list()
    took = await timed(p.list)
    check(took <= 3.0, f"a full List takes {took:.1f} s")


@row("B1108", slots=16, alone=Alone.LANE)
async def sixteen_creates(p: Probe) -> None:
    """Sixteen Creates at once are all taken.

    Why: a fleet grows in bursts.
    Does: 16 parallel Creates of different machines.
    Passes: all acknowledged, ids distinct, all IDLE within 30 s.
    """
    await sixteen_at_once(p)


async def sixteen_at_once(p: Probe) -> None:
    """Sixteen different machines created at the same moment."""
    walkers = [p.slot() for _ in range(16)]
    answers = await asyncio.gather(*(walker.try_create() for walker in walkers))
    ids = {answer.must_be_ok().operation_id for answer in answers}
    check(len(ids) == 16 and "" not in ids, f"16 Creates have {len(ids)} ids")
    await asyncio.gather(*(walker.until(IDLE, within_s=30.0) for walker in walkers))


@row("B1109", slots=8)
async def rest_under_load(p: Probe) -> None:
    """Idle machines rest while others work.

    Why: one machine's work must not be seen on another.
    Does: eight IDLE machines watched for a quarter of the soak time (0.5-3 s).
    Passes: no transitional state, no FAILED.
    """
    walkers = [await p.idle() for _ in range(8)]
    ends = time.monotonic() + min(3.0, max(0.5, p.pace.soak_s / 4))
    while time.monotonic() < ends:
        for walker in walkers:
            state = (await walker.see()).state
            check(state == IDLE, f"a resting machine shows {word(state)}")
        await asyncio.sleep(p.pace.poll_s)

"""A very large inventory, and fences that do not grow without end (B2020, B2021)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.behaviours.crashes import state_files
from bigfleet_conformance.behaviours.listing import no_doubles, revision
from bigfleet_conformance.behaviours.scale import percentile, sixteen_at_once, timed
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Answer, Code, Token
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.registry import Alone, Area, Capability, Chapter, LaneName, Profile
from bigfleet_conformance.runner.source import BootPlan

row = Chapter(
    Area.ADDITIONAL,
    section="3.5",
    profiles=(Profile.SCALE,),
    lane=LaneName.LARGE,
    needs=(Capability.SCALE,),
).row
MEBIBYTE = 1 << 20
LIST_METHOD = "/bigfleet.v1alpha1.CapacityProvider/List"
IN_FLIGHT = 40


@row("B2020", slots=36, alone=Alone.RUN)
async def a_hundred_thousand(p: Probe) -> None:
    """A hundred thousand machines work.

    Why: one region of one cloud has as many.
    Does: boot with 100,000 slots.
    Passes: port open within 20 s; full List complete <= 10 s; Get p95 <= 250 ms during a List;
    delta of 20 changes exact and <= 250 ms; 16 parallel Creates IDLE within 30 s; resident memory
    <= 1 GiB.
    """
    slots = p.pace.large_seed
    subject = await p.workshop.boot(BootPlan(LaneName.LARGE, 5, slots, name="large"))
    q = subject.probe(p)
    took = subject.instance.boot_s
    check(took <= 20.0, f"the port was open after {took:.1f} s, at most 20")
    began = time.monotonic()
    everything = no_doubles(await q.list(), "List")
    took = time.monotonic() - began
    check(took <= 10.0, f"a full List takes {took:.1f} s, at most 10")
    check(len(everything) >= slots, f"List has {len(everything)} of {slots} machines")
    await reads_beside_lists(q)
    await exact_delta(q)
    await sixteen_at_once(q)
    resident = subject.instance.resident_bytes()
    if resident is not None:
        check(resident <= 1024 * MEBIBYTE, f"{resident // MEBIBYTE} MiB resident, at most 1024")
    await subject.kill()


async def reads_beside_lists(q: Probe) -> None:
    """Gets while full Lists are under way, which are not decoded: that would be our own time."""
    assert isinstance(q.link, ChannelLink)
    raw: grpc.aio.UnaryUnaryMultiCallable[pb.ListFilter, bytes]
    raw = q.link.channel(connection=1).unary_unary(
        LIST_METHOD, request_serializer=pb.ListFilter.SerializeToString
    )

    async def lists() -> None:
        while True:
            await raw(pb.ListFilter(), timeout=120)

    machine = q.slot().id
    reads: list[float] = []
    async with q.background(lists):
        ends = time.monotonic() + 3.0
        while len(reads) < 40 or time.monotonic() < ends:
            reads.append(await timed(lambda: q.see(machine)))
            await asyncio.sleep(q.pace.poll_s)
    p95 = percentile(reads, 0.95)
    check(p95 <= 0.25, f"Get takes {p95 * 1000:.0f} ms (p95) during a List, at most 250")


async def exact_delta(q: Probe) -> None:
    """Twenty changes are a delta of twenty, and quick."""
    before = await revision(q) if q.claims(Capability.SINCE_REVISION) else b""
    walkers = await asyncio.gather(*(q.idle() for _ in range(20)))
    if not before:
        return
    began = time.monotonic()
    delta = no_doubles(await q.list(since=before), "the delta")
    took = time.monotonic() - began
    check(delta == {w.id for w in walkers}, f"the delta has {len(delta)} machines, 20 changed")
    check(took <= 0.25, f"a delta of 20 takes {took * 1000:.0f} ms, at most 250")


@row("B2021", slots=8)
async def fences_are_bounded(p: Probe) -> None:
    """Marks of real machines stay, those of unknown ids are bounded.

    Why: a client with a bug must not fill a provider's disk.
    Does: 5,000 tokens of rising epochs on eight machines and 5,000 on ids that do not exist, shard
    ids and unknown ids of 200 characters; clean stop; restart.
    Passes: the state has grown by <= 1 MiB and resident memory by <= 32 MiB; every mark of a real
    machine and of the newest 1,000 unknown ids still holds.
    """
    folder = p.workshop.new_folder("fences")
    plan = BootPlan(LaneName.LARGE, 24, 64, state=folder / "state", name="fences")
    await (await p.workshop.boot(plan)).stop()
    size = total(folder)
    subject = await p.workshop.boot(plan.at(25))
    q = subject.probe(p)
    shards = [long_name(p.shard(), n) for n in range(8)]
    walkers = [q.slot() for _ in range(8)]
    await many(lambda n: q.create(walkers[n % 8].id, Token(shards[n % 8], 1 + n // 8, 1)), 400)
    resident = subject.instance.resident_bytes()
    await many(lambda n: q.create(walkers[n % 8].id, Token(shards[n % 8], 101 + n // 8, 1)), 5000)
    ghosts = [long_name("ghost", n) for n in range(5000)]
    for answer in await many(lambda n: q.create(ghosts[n], Token(shards[0], 5, 5)), 5000):
        answer.must_be(Code.NOT_FOUND)
    grown = subject.instance.resident_bytes()
    if resident is not None and grown is not None:
        more = (grown - resident) / MEBIBYTE
        check(more <= 32, f"10,000 tokens cost {more:.0f} MiB of memory, at most 32")
    await subject.stop()
    more = (total(folder) - size) / MEBIBYTE
    check(more <= 1, f"10,000 tokens cost {more:.1f} MiB of state, at most 1")
    subject = await p.workshop.boot(plan.at(26))
    q = subject.probe(p)
    for walker, shard in zip(walkers, shards, strict=True):
        (await q.create(walker.id, Token(shard, 400, 1))).must_be_fenced()
    newest = ghosts[-1000:]
    for answer in await many(lambda n: q.create(newest[n], Token(shards[0], 5, 5)), 1000):
        answer.must_be_fenced()
    await subject.kill()


def long_name(stem: str, number: int) -> str:
    """A name of 200 characters."""
    return f"{stem}-{number}-".ljust(200, "x")


def total(folder: Path) -> int:
    """Bytes of a state."""
    return sum(file.stat().st_size for file in state_files(folder))


async def many(call: Callable[[int], Awaitable[Answer]], count: int) -> Sequence[Answer]:
    """Many calls, a few at a time; no call is sent before those of earlier groups were answered."""
    answers: list[Answer] = []
    for first in range(0, count, IN_FLIGHT):
        group = range(first, min(first + IN_FLIGHT, count))
        answers += await asyncio.gather(*(call(n) for n in group))
    return answers

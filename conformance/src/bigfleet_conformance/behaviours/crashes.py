"""Locks, damaged state, cursors, work in flight, hosts and marks over crashes (B2016, B2017, B2023,
B2027, B2030, B2031)."""

import asyncio
import time
from pathlib import Path

from bigfleet_conformance.behaviours.durability import (
    Before,
    bindings_hold,
    crash_story,
    ids_hold,
    inventory_holds,
    leave_marks,
    marks_hold,
    plan,
    prepare,
)
from bigfleet_conformance.behaviours.listing import ids_of, revision
from bigfleet_conformance.errors import BootError, Finding, check
from bigfleet_conformance.harness.calls import Token
from bigfleet_conformance.harness.oracles import (
    CREATING,
    DELETING,
    DRAINING,
    FAILED,
    IDLE,
    SPECULATIVE,
    word,
)
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.registry import Area, Capability, Chapter, LaneName, Profile

row = Chapter(
    Area.ADDITIONAL,
    section="7.2",
    profiles=(Profile.DURABLE,),
    lane=LaneName.DURABLE,
    needs=(Capability.DURABLE,),
).row
CRASH_TIMEOUT_S = 10.0


@row("B2016", slots=1)
async def one_process_per_state(p: Probe) -> None:
    """Two processes never share a state.

    Why: two writers give one slot two hosts.
    Does: a second process on the same `--state` while the first runs; then SIGKILL of the first and
    a third start.
    Passes: the second exits non-zero within 20 s, naming the path; the first is undisturbed; the
    third starts without help.
    """
    folder = p.workshop.new_folder("locked")
    first = await p.workshop.boot(plan(folder, 14, name="lock-first"))
    q = first.probe(p)
    walker = await q.idle()
    try:
        second = await p.workshop.boot_instance(plan(folder, 15, name="lock-second"))
    except BootError as error:
        check(error.exit_code, f"the second process did not end with an error: {error}")
        check(str(folder / "state") in str(error), f"the refusal does not name the path: {error}")
    else:
        await second.kill()
        raise Finding("a second process runs on the state of the first")
    check(first.instance.alive(), "the first process ended")
    await walker.configure(p.binding())
    await first.kill()
    third = await p.workshop.boot(plan(folder, 15, name="lock-third"))
    await third.probe(p).see(walker.id)
    await third.kill()


def state_files(folder: Path) -> list[Path]:
    """The files of a state, the largest first."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return sorted(files, key=lambda file: file.stat().st_size, reverse=True)


def damage(file: Path, how: str) -> None:
    """Spoil a file in one of three ways."""
    raw = bytearray(file.read_bytes())
    if how == "head":
        raw[:512] = b"\xa5" * min(512, len(raw))
    elif how == "middle":
        middle = max(0, len(raw) // 2 - 2048)
        raw[middle : middle + 4096] = b"\x5a" * len(raw[middle : middle + 4096])
    else:
        del raw[len(raw) // 2 :]
    file.write_bytes(raw)


@row("B2017", slots=2)
async def damaged_state_is_refused(p: Probe) -> None:
    """A damaged state is refused, not replaced.

    Why: a provider that starts empty has forgotten every machine it pays for.
    Does: clean stop; then the largest file of the state with its first 512 bytes overwritten, 4 KiB
    in the middle overwritten, or cut to half (each on a copy).
    Passes: refuses to start, non-zero, naming the file, bytes left as they are, no new seed; or
    starts with B1001-B1004 still true.
    """
    folder = p.workshop.new_folder("damaged")
    subject = await p.workshop.boot(plan(folder, 16, name="damage"))
    before = await prepare(p, subject, folder)
    code = await subject.stop()
    check(code == 0, f"SIGTERM ended the provider with exit code {code}")
    for offset, how in enumerate(("head", "middle", "half")):
        await refused_or_right(p, before, how, 17 + offset)


async def refused_or_right(p: Probe, before: Before, how: str, offset: int) -> None:
    """One damaged copy: refused with the bytes untouched, or nothing lost."""
    folder = p.workshop.copy_of(before.folder)
    file = state_files(folder)[0]
    damage(file, how)
    raw = file.read_bytes()
    try:
        subject = await p.workshop.boot(plan(folder, offset, name=f"damage-{how}"))
    except BootError as error:
        check(error.exit_code, f"damaged ({how}): it neither starts nor ends: {error}")
        check(
            file.name in str(error) or str(folder / "state") in str(error),
            f"damaged ({how}): the refusal does not name the file: {error}",
        )
        check(file.read_bytes() == raw, f"damaged ({how}): the bytes were changed")
        return
    q = subject.probe(p)
    try:
        states = {m.id: int(m.state) for m in (await q.list()).machines}
        inventory_holds(before, states)
        await marks_hold(q, before)
        await ids_hold(q, before)
        await bindings_hold(q, before)
    except Finding as finding:
        raise Finding(f"damaged ({how}), and it starts with less than it had: {finding}") from None
    finally:
        await subject.kill()


@row("B2023", slots=4, needs=(Capability.SINCE_REVISION,))
async def cursors_survive(p: Probe) -> None:
    """A cursor from before a crash misses nothing.

    Why: the shard goes on with the cursor it has.
    Does: cursors taken before and between changes; SIGKILL; reboot; deltas since each.
    Passes: every change since the cursor is there (a full list is allowed, a missing change is
    not).
    """
    folder = p.workshop.new_folder("cursors")
    subject = await p.workshop.boot(plan(folder, 20, name="cursors"))
    q = subject.probe(p)
    walkers = [q.slot() for _ in range(4)]
    cursors = []
    for walker in walkers:
        cursors.append(await revision(q))
        await walker.create()
    await subject.kill()
    after = await p.workshop.boot(plan(folder, 21, name="cursors-after"))
    q = after.probe(p)
    for n, cursor in enumerate(cursors):
        missing = {w.id for w in walkers[n:]} - set(ids_of(await q.list(since=cursor)))
        check(not missing, f"the delta of cursor {n} lacks {len(missing)} changes from before")
    await after.kill()


@row("B2027", slots=3, needs=(Capability.SLOW,))
async def crashes_in_flight(p: Probe) -> None:
    """Work that a crash interrupted ends.

    Why: a provider is restarted in the middle of something, always.
    Does: slow provider with state, `--transition-timeout=10s`: SIGKILL during CREATING, DRAINING
    and DELETING, reboot.
    Passes: each ends in its target or in FAILED with last_error within the transition timeout + 5
    s, with its old id; DRAINING kept its binding; never a transitional state forever.
    """
    folder = p.workshop.new_folder("in-flight")
    first = plan(
        folder,
        22,
        slow_ms=int(p.pace.substrate_s * 1000),
        transition_timeout_s=min(CRASH_TIMEOUT_S, p.pace.interrupted_s),
        name="in-flight",
    )
    subject = await p.workshop.boot(first)
    q = subject.probe(p)
    binding = p.binding("", key="value")
    creating, draining, deleting = q.slot(), await q.bound(binding), await q.idle()
    work = [(creating, creating.try_create, CREATING, IDLE)]
    work.append((draining, draining.try_drain, DRAINING, IDLE))
    if p.claims(Capability.DELETE):
        work.append((deleting, deleting.try_delete, DELETING, SPECULATIVE))
    answers = await asyncio.gather(*(send() for _, send, _, _ in work))
    ids = [answer.must_be_ok().operation_id for answer in answers]
    for walker, _, passing, _ in work:
        state = (await walker.see()).state
        check(state == passing, f"{walker.id} is {word(state)}, not {word(passing)}")
    await subject.kill()
    after = await p.workshop.boot(first.at(23))
    q = after.probe(p)
    now = await q.see(draining.id)
    check(now.state != DRAINING or binding.shown_by(now), "DRAINING lost its binding in the crash")
    ends = time.monotonic() + min(CRASH_TIMEOUT_S, p.pace.interrupted_s) + 5.0
    for (walker, send, _, target), id in zip(work, ids, strict=True):
        limit = max(0.1, ends - time.monotonic())
        ended = await q.until(walker.id, target, FAILED, within_s=limit)
        if ended.state == FAILED:
            check(ended.last_error, f"{walker.id} is FAILED with an empty last_error")
            continue
        walker.probe = q
        again = (await send()).must_be_ok().operation_id
        check(again == id, f"{walker.id}: id {id!r} became {again!r} in the crash")
    await after.kill()


@row("B2030", slots=0)
async def hosts_survive(p: Probe) -> None:
    """A crash changes nothing of what a machine is and where it runs.

    Why: the cluster knows the node by its host; under another name it is a stranger there.
    Does: List before the crash and after it.
    Passes: host, instance_type, zone and capacity_type of every machine are identical.
    """
    story = await crash_story(p)
    for id, was in story.before.records.items():
        now = story.records.get(id)
        check(now is not None, f"{id} is gone")
        if now is None:
            continue
        check(now.host == was.host, f"{id} ran on {was.host.ref!r}, now on {now.host.ref!r}")
        facts = [(m.instance_type, m.zone, int(m.capacity_type)) for m in (was, now)]
        check(facts[0] == facts[1], f"{id} was {facts[0]}, now it is {facts[1]}")


@row("B2031", slots=0)
async def marks_without_work_survive(p: Probe) -> None:
    """A mark that moved without starting anything survives a crash too.

    Why: a shard that was answered has been heard, whatever the answer was.
    Does: before the crash a refused Drain, a repeated Create and a Create on an unknown machine,
    each from a shard of its own with (5,5); after it the same, then (5,6).
    Passes: all fenced; then none.
    """
    story = await crash_story(p)
    q, before = story.after.probe(p), story.before
    for answer in await leave_marks(q, before.first, before.shard):
        answer.must_be_fenced()
    shards = [f"{before.shard}-{name}" for name in ("refused", "repeat")]
    for shard in shards:
        (await q.create(before.first, Token(shard, 5, 6))).must_be_ok()

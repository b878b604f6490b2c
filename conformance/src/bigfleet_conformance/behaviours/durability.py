"""Durability and restart: what was acknowledged survives SIGKILL (B10xx).

One story serves most rows: shard durA creates machine 1 with (3,7); machine 2 is created and bound
with two metadata keys; the inventory is noted; the process is killed and another one started on
another port with the same state.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Answer, Binding, Token
from bigfleet_conformance.harness.oracles import CONFIGURED, CONFIGURING, FAILED, IDLE, word
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.registry import Area, Capability, Chapter, LaneName, Profile
from bigfleet_conformance.runner.source import BootPlan
from bigfleet_conformance.runner.workshop import Subject

chapter = Chapter(
    Area.DURABILITY,
    section="7.2",
    profiles=(Profile.DURABLE,),
    lane=LaneName.DURABLE,
    needs=(Capability.DURABLE,),
)
row = chapter.row
BOUND = Binding("durable-cluster", {"assigned": "7", "empty": ""})
SEEDS = 64


@dataclass(frozen=True, slots=True)
class Before:
    """What was acknowledged before the process ended."""

    folder: Path
    shard: str
    first: str
    second: str
    operation: str
    ids: frozenset[str]
    records: dict[str, pb.Machine]

    @property
    def states(self) -> dict[str, int]:
        """Every machine's state."""
        return {id: int(record.state) for id, record in self.records.items()}


@dataclass(frozen=True, slots=True)
class RestartStory:
    """What was, and the process that came after."""

    before: Before
    after: Subject
    records: dict[str, pb.Machine]
    revision: bytes


def plan(folder: Path, offset: int, **options: object) -> BootPlan:
    """An instance with state."""
    return BootPlan(
        LaneName.DURABLE,
        offset,
        SEEDS,
        state=folder / "state",
        **options,  # type: ignore[arg-type]
    )


async def prepare(p: Probe, subject: Subject, folder: Path) -> Before:
    """The world before the crash."""
    q = subject.probe(p)
    first, second, shard = q.slot(), q.slot(), f"{p.shard()}-durA"
    one = (await first.try_create(Token(shard, 3, 7))).must_be_ok()
    two = (await second.try_create(Token(shard, 3, 20))).must_be_ok()
    await first.until(IDLE)
    await second.until(IDLE)
    bound = (await second.try_configure(BOUND, Token(shard, 3, 21))).must_be_ok()
    await second.until(CONFIGURED)
    await leave_marks(q, first.id, shard)
    records = {m.id: m for m in await q.sweep()}
    ids = frozenset({one.operation_id, two.operation_id, bound.operation_id})
    return Before(folder, shard, first.id, second.id, bound.operation_id, ids, records)


async def leave_marks(p: Probe, machine: str, shard: str) -> list[Answer]:
    """Tokens that move a mark and start nothing: a refusal, a repeat, an unknown machine."""
    return [
        await p.drain(machine, Token(f"{shard}-refused", 5, 5)),
        await p.create(machine, Token(f"{shard}-repeat", 5, 5)),
        await p.create(f"{machine}-unknown", Token(f"{shard}-unknown", 5, 5)),
    ]


async def crash_story(p: Probe) -> RestartStory:
    """Told once for all rows that look at it."""

    async def tell() -> RestartStory:
        folder = p.workshop.new_folder("durable")
        subject = await p.workshop.boot(plan(folder, 2))
        before = await prepare(p, subject, folder)
        await subject.kill()
        after = await p.workshop.boot(plan(folder, 3))
        answer = await after.probe(p).list()
        records = {m.id: m for m in answer.machines}
        return RestartStory(before, after, records, answer.revision)

    return await p.workshop.once("durable", tell)


async def marks_hold(p: Probe, before: Before) -> None:
    """durA is fenced exactly as it was."""
    (await p.create(before.first, Token(before.shard, 3, 7))).must_be_fenced()
    (await p.create(before.first, Token(before.shard, 3, 8))).must_be_ok()


async def ids_hold(p: Probe, before: Before) -> None:
    """A repeat has the id from before."""
    answer = await p.configure(before.second, Token(f"{before.shard}-r", 9, 9), BOUND)
    got = answer.must_be_ok().operation_id
    check(got == before.operation, f"Configure had id {before.operation!r}, now {got!r}")


async def bindings_hold(p: Probe, before: Before) -> None:
    """Cluster and metadata are there."""
    now = await p.see(before.second)
    check(now.cluster == BOUND.cluster, f"bound to {BOUND.cluster!r}, now {now.cluster!r}")
    check(BOUND.shown_by(now), "the metadata is not what was acknowledged")


def inventory_holds(before: Before, states: dict[str, int]) -> None:
    """The same machines in the same states."""
    changed = [id for id in before.states if states.get(id) != before.states[id]]
    foreign = states.keys() - before.states.keys()
    check(
        not changed and not foreign,
        f"{len(changed)} machines are gone or in another state, {len(foreign)} are new",
    )


@row("B1001", slots=0)
async def marks_survive(p: Probe) -> None:
    """Marks survive a crash, pair by pair.

    Why: the shard that was fenced out before the crash is still there after it.
    Does: durA repeats (3,7) on machine 1, then sends (3,8).
    Passes: fenced; accepted, because durA's higher token was another machine's.
    """
    story = await crash_story(p)
    await marks_hold(story.after.probe(p), story.before)


@row("B1002", slots=0)
async def operation_ids_survive(p: Probe) -> None:
    """Operation ids survive a crash.

    Why: the shard repeats what it got no answer for, and must recognise it.
    Does: Configure of machine 2 repeated.
    Passes: the operation id from before.
    """
    story = await crash_story(p)
    await ids_hold(story.after.probe(p), story.before)


@row("B1003", slots=0)
async def bindings_survive(p: Probe) -> None:
    """Bindings survive a crash.

    Why: the metadata is all a restarted shard knows about why it took the machine.
    Does: Get machine 2.
    Passes: cluster and metadata equal.
    """
    story = await crash_story(p)
    await bindings_hold(story.after.probe(p), story.before)


@row("B1004", slots=0)
async def the_inventory_survives(p: Probe) -> None:
    """The inventory survives a crash.

    Why: a machine that vanishes from List is paid for and used by no cluster.
    Does: List.
    Passes: the map id -> state is identical.
    """
    story = await crash_story(p)
    inventory_holds(story.before, {id: int(m.state) for id, m in story.records.items()})


@row("B1005", slots=1)
async def ids_are_not_used_again(p: Probe) -> None:
    """No operation id is used again after a crash.

    Why: an id that comes back makes an old answer look like a new one.
    Does: List; a fresh Create.
    Passes: revision non-empty where SinceRevision is claimed; the id is none of the earlier ones.
    """
    story = await crash_story(p)
    q = story.after.probe(p)
    if p.claims(Capability.SINCE_REVISION):
        check(story.revision, "List has an empty revision after the restart")
    fresh = (await q.slot().create()).operation_id
    check(fresh and fresh not in story.before.ids, f"id {fresh!r} was used before the crash")


@row("B1006", needs=(Capability.FAULT,))
async def interrupted_work_ends(p: Probe) -> None:
    """A Configure that a crash interrupted ends.

    Why: CONFIGURING forever is capacity that cannot be used.
    Does: fault subject: a machine is seen CONFIGURING (`fault-timeout`, 30 s), SIGKILL, reboot.
    Passes: FAILED with last_error within the time-out + 5 s of the Configure.
    """
    folder = p.workshop.new_folder("interrupted")
    limit = p.pace.interrupted_s
    first = plan(folder, 12, transition_timeout_s=limit, name="interrupted")
    subject = await p.workshop.boot(first, fault=True)
    q = subject.probe(p)
    walker = await q.idle()
    began = time.monotonic()
    (await walker.try_configure(p.binding("fault-timeout"))).must_be_ok()
    await walker.until(CONFIGURING)
    await subject.kill()
    q = (await p.workshop.boot(first.at(13), fault=True)).probe(p)
    left = limit + 5.0 - (time.monotonic() - began)
    ended = await q.until(walker.id, FAILED, CONFIGURED, within_s=max(left, 0.1))
    check(ended.state == FAILED, f"ended {word(ended.state)} although the node never came")
    check(ended.last_error, "FAILED with an empty last_error")


@row("B1007", slots=1)
async def unknown_shards_are_welcome(p: Probe) -> None:
    """A shard that is new after a restart is accepted.

    Why: shards come and go; first contact sets the mark.
    Does: unknown shard durB, (1,1), fresh machine.
    Passes: accepted.
    """
    story = await crash_story(p)
    q = story.after.probe(p)
    walker = q.slot()
    (await walker.try_create(Token(f"{p.shard()}-durB", 1, 1))).must_be_ok()
    await walker.until(IDLE)

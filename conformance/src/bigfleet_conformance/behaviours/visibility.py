"""What an instant fake hides: bindings in flight, acks, hosts, stable fields (B2001-B2008).

Slow rows run on an instance whose substrate takes half a second per transition; there a
transitional state must be seen.
"""

import asyncio
import statistics
from collections.abc import Awaitable, Callable

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.behaviours.scale import percentile, timed
from bigfleet_conformance.behaviours.shape import parsed
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Answer, Binding
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DELETING,
    DRAINING,
    IDLE,
    SPECULATIVE,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Alone, Area, Capability, Chapter, LaneName

row = Chapter(Area.ADDITIONAL, section="3.5").row
slow_row = Chapter(Area.ADDITIONAL, section="3.5", lane=LaneName.SLOW, needs=(Capability.SLOW,)).row
READ_LIMIT_S = 0.25


async def seen_by_get_and_list(p: Probe, machine: str, until: int) -> list[pb.Machine]:
    """Records by Get and List in turn, until the machine settles."""
    found: list[pb.Machine] = []
    while not found or found[-1].state != until:
        found.append(await p.see(machine))
        if found[-1].state != until:
            found.append(await p.listed_once(machine))
        check(len(found) < 5000, f"{machine} does not reach {word(until)}")
        check(found[-1].state != 8, f"{machine} became FAILED: {found[-1].last_error!r}")
        await asyncio.sleep(p.pace.poll_s)
    return found


@slow_row("B2001")
async def binding_is_visible_in_flight(p: Probe) -> None:
    """The binding is visible from the ack of Configure on.

    Why: a shard that restarts during a join would give the machine away again.
    Does: Configure on a slow provider, Get and List until settled.
    Passes: CONFIGURING is seen; every such record, and the ack, has the cluster and the metadata
    verbatim.
    """
    walker = await p.idle()
    binding = p.binding("", stamp="1", empty="")
    ack = (await walker.try_configure(binding)).must_be_ok()
    records = await seen_by_get_and_list(p, walker.id, CONFIGURED)
    flying = [record for record in records if record.state == CONFIGURING]
    check(flying, "CONFIGURING was never seen although the join takes half a second")
    for record in (ack.machine, *flying, records[-1]):
        check(binding.shown_by(record), f"{word(record.state)} without the binding as it was sent")


@slow_row("B2002")
async def binding_stays_until_drained(p: Probe) -> None:
    """The binding stays until the drain has ended, and goes at once.

    Why: until then pods of that cluster still run there.
    Does: Drain on a slow provider.
    Passes: DRAINING is seen; every such record keeps cluster and metadata; both go in the same step
    as the change to IDLE.
    """
    binding = p.binding("", stamp="1")
    walker = await p.bound(binding)
    (await walker.try_drain()).must_be_ok()
    records = await seen_by_get_and_list(p, walker.id, IDLE)
    flying = [record for record in records if record.state == DRAINING]
    check(flying, "DRAINING was never seen although the drain takes half a second")
    for record in flying:
        check(binding.shown_by(record), "DRAINING without the binding")
    for record in records:
        if record.state == IDLE:
            is_clean(record)


@slow_row("B2003", slots=5, alone=Alone.RUN)
async def acks_do_not_wait(p: Probe) -> None:
    """A mutation is acknowledged at once.

    Why: a shard drives thousands of machines; it cannot wait for any.
    Does: five of each mutation on a slow provider, Get and List beside them.
    Passes: median time to the ack <= 250 ms and below the substrate's time; the machine is then
    transitional; reads answer within 250 ms (p95).
    """
    walkers = [p.slot() for _ in range(5)]
    reads: list[float] = []

    async def read() -> None:
        while True:
            reads.append(await timed(lambda: p.see(walkers[0].id)))
            reads.append(await timed(lambda: p.list([CREATING])))
            await asyncio.sleep(p.pace.poll_s)

    moves: list[tuple[Callable[[Walker], Awaitable[Answer]], int, int]] = [
        (lambda w: w.try_create(), CREATING, IDLE),
        (lambda w: w.try_configure(p.binding()), CONFIGURING, CONFIGURED),
        (lambda w: w.try_drain(), DRAINING, IDLE),
    ]
    if p.claims(Capability.DELETE):
        moves.append((lambda w: w.try_delete(), DELETING, SPECULATIVE))
    async with p.background(read):
        for send, passing, target in moves:
            await acked_at_once(p, walkers, send, passing)
            await asyncio.gather(*(walker.until(target) for walker in walkers))
    check(len(reads) >= 40, f"only {len(reads)} reads were made")
    p95 = percentile(reads, 0.95)
    check(p95 <= READ_LIMIT_S, f"reads take {p95 * 1000:.0f} ms (p95) beside mutations")


async def acked_at_once(
    p: Probe,
    walkers: list[Walker],
    send: Callable[[Walker], Awaitable[Answer]],
    passing: int,
) -> None:
    """Five acks, each before the work is done."""
    seconds = []
    for walker in walkers:
        answer = await send(walker)
        answer.must_be_ok()
        seconds.append(answer.seconds)
        state = (await walker.see()).state
        check(state == passing, f"after the ack the machine is {word(state)}")
    median = statistics.median(seconds)
    limit = min(0.25, p.pace.substrate_s)
    check(median <= limit, f"an ack takes {median * 1000:.0f} ms, at most {limit * 1000:.0f}")


@row("B2004", slots=1)
async def acks_show_the_machine(p: Probe) -> None:
    """Every ack carries the machine as it was accepted.

    Why: the shard books what the ack shows, before its next List.
    Does: acks of all four mutations and of their repeats.
    Passes: each carries the machine: right id, transitional or target state of that mutation,
    cluster on Configure, fields equal to a Get made then.
    """
    walker = p.slot()
    binding = p.binding()
    moves: list[tuple[Callable[[], Awaitable[Answer]], tuple[int, int]]] = [
        (walker.try_create, (CREATING, IDLE)),
        (lambda: walker.try_configure(binding), (CONFIGURING, CONFIGURED)),
        (walker.try_drain, (DRAINING, IDLE)),
    ]
    if p.claims(Capability.DELETE):
        moves.append((walker.try_delete, (DELETING, SPECULATIVE)))
    for send, states in moves:
        first = (await send()).must_be_ok()
        await shown(p, first, walker.id, states, binding)
        await walker.until(states[1])
        again = (await send()).must_be_ok()
        await shown(p, again, walker.id, states, binding)


async def shown(
    p: Probe, ack: pb.TransitionAck, id: str, states: tuple[int, int], binding: Binding
) -> None:
    """An ack's snapshot is right, and agrees with a Get."""
    check(ack.HasField("machine"), "the ack carries no machine")
    snapshot = ack.machine
    check(snapshot.id == id, f"the ack carries machine {snapshot.id!r}")
    check(
        snapshot.state in states,
        f"the ack shows {word(snapshot.state)}, not {word(states[0])} or {word(states[1])}",
    )
    if CONFIGURED in states:
        check(snapshot.cluster == binding.cluster, f"the ack shows cluster {snapshot.cluster!r}")
    now = await p.see(id)
    if now.state == snapshot.state:
        for field in ("cluster", "instance_type", "zone", "capacity_type", "shard_metadata"):
            check(getattr(now, field) == getattr(snapshot, field), f"ack and Get differ in {field}")


@row("B2005", also_slow=True)
async def repeats_do_not_rewrite(p: Probe) -> None:
    """A repeated Configure does not change the binding.

    Why: the machine joins the first cluster whatever is asked later.
    Does: Configure repeated with another cluster, blob and metadata, in flight (when Slow) and at
    CONFIGURED.
    Passes: OK, the first id; ack, Get and List show the first payload; after CONFIGURED no
    transitional state is seen.
    """
    walker = await p.idle()
    binding = p.binding("first-cluster", key="first")
    other = Binding("other-cluster", {"key": "other", "more": "1"}, b"other")
    first = (await walker.try_configure(binding)).must_be_ok().operation_id

    async def again() -> None:
        ack = (await walker.try_configure(other)).must_be_ok()
        check(ack.operation_id == first, f"id {first!r} became {ack.operation_id!r}")
        records = [ack.machine] if ack.HasField("machine") else []
        for record in (*records, await walker.see(), await p.listed_once(walker.id)):
            check(binding.shown_by(record), f"the repeat rewrote the binding: {record.cluster!r}")

    if p.slow:
        await again()
    await walker.until(CONFIGURED)
    async with p.watch(walker.id, 0.005) as trace:
        await again()
        await p.stays(walker.id)
    trace.must_not_move("a repeated Configure at CONFIGURED")


@slow_row("B2006")
async def host_appears_once(p: Probe) -> None:
    """A host appears once and is that host.

    Why: the node is matched by the ref that was seen first.
    Does: host polled through Create on a slow provider.
    Passes: empty in CREATING; or set there once and equal until the machine leaves IDLE for
    DELETING.
    """
    walker = p.slot()
    async with p.watch(walker.id, 0.005) as trace:
        await walker.create()
        await p.stays(walker.id, 0.1)
    trace.must_have_seen(CREATING)
    refs = {sample.host.ref for sample in trace.in_state(CREATING)} - {""}
    refs |= {sample.host.ref for sample in trace.in_state(IDLE)}
    check("" not in refs, "IDLE without a host")
    check(len(refs) == 1, f"the host changed on the way: {sorted(refs)}")


@row("B2007")
async def identity_is_constant(p: Probe) -> None:
    """Host and kind of a machine do not change.

    Why: needs were matched against them.
    Does: every read over Create, two rounds, and a second life after Delete if there is one.
    Passes: host.ref constant over one life; instance_type, zone, capacity_type constant over the
    slot's life, SPECULATIVE included.
    """
    walker = p.slot()
    kinds: set[tuple[str, str, int]] = set()

    async def life() -> None:
        refs: set[str] = set()
        async with p.watch(walker.id, 0.005) as trace:
            await walker.create()
            for turn in range(2):
                await walker.configure(p.binding(f"cluster-{turn}"))
                await walker.drain()
        for sample in trace.samples:
            kinds.add((sample.instance_type, sample.zone, sample.capacity_type))
            if sample.state not in (SPECULATIVE, CREATING):
                refs.add(sample.host.ref)
        check(len(refs) == 1 and "" not in refs, f"host.ref changed in one life: {sorted(refs)}")

    await life()
    if p.claims(Capability.DELETE):
        await walker.delete()
        await life()
    check(len(kinds) == 1, f"type, zone or capacity type changed: {sorted(kinds)}")


@row("B2008")
async def shapes_are_complete(p: Probe) -> None:
    """Every machine says how large it is.

    Why: what has no cpu fits no need.
    Does: sweep in every state reached.
    Passes: resources hold cpu and memory, both parse and are above 0; allocatable, when set, has
    cpu and memory, parses and is above 0.
    """
    walker = p.slot()
    for step in (None, walker.create, lambda: walker.configure(p.binding()), walker.drain):
        if step is not None:
            await step()
        machines = await p.sweep()
        check(walker.id in {m.id for m in machines}, "the machine is missing in List")
        for machine in machines:
            complete(machine)


def complete(machine: pb.Machine) -> None:
    """cpu and memory, both above 0, in resources and in allocatable if there is one."""
    for name, shape in (("resources", machine.resources), ("allocatable", machine.allocatable)):
        if name == "allocatable" and not shape.resources:
            continue
        for key in ("cpu", "memory"):
            check(key in shape.resources, f"{machine.id}: {name} has no {key}")
            value = parsed(machine, key, shape.resources[key])
            check(value > 0, f"{machine.id}: {name} {key} is {shape.resources[key]!r}")

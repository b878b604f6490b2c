"""Lost hosts, healing, late joins, stock-outs, failures that keep what was there (B2014, B2015,
B2018, B2028, B2029, B2032).

Run on the fault subject, like area B7xx.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bigfleet_conformance.behaviours.failure import failed
from bigfleet_conformance.behaviours.listing import revision
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.oracles import CONFIGURED, CONFIGURING, FAILED, IDLE, SPECULATIVE
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Area, Capability, Chapter, LaneName, Profile
from bigfleet_conformance.runner.source import BootPlan

row = Chapter(
    Area.ADDITIONAL,
    section="3.5",
    profiles=(Profile.FAULT,),
    lane=LaneName.FAULT,
    needs=(Capability.FAULT,),
).row
HEAL_S = 2.0
HEALED_WITHIN_S = 7.0
READY_S = 1.2


@row("B2014", slots=2, selectors=("fault-lose-idle", "fault-lose-host"))
async def lost_hosts_are_noticed(p: Probe) -> None:
    """A host that is gone is noticed.

    Why: a dead host that looks alive is demand that is never met.
    Does: the substrate loses the host of an IDLE (`fault-lose-idle`) and of a CONFIGURED machine
    (`fault-lose-host`).
    Passes: within 30 s at a reconcile interval of 500 ms both are FAILED with last_error on Get,
    List and delta; never IDLE with a dead host.
    """
    deltas = p.claims(Capability.SINCE_REVISION)
    before = await revision(p) if deltas else b""
    idle = await p.bound(p.binding("fault-lose-idle"))
    await idle.drain()
    bound = await p.bound(p.binding("fault-lose-host"))
    ends = time.monotonic() + p.pace.loss_window_s
    for walker in (idle, bound):
        await failed(p, walker, max(0.1, ends - time.monotonic()))
        record = await p.listed_once(walker.id)
        check(record.state == FAILED and record.last_error, "List shows the lost host as alive")
        if deltas:
            delta = {m.id: int(m.state) for m in (await p.list(since=before)).machines}
            check(delta.get(walker.id) == FAILED, "the delta does not show the loss")
    for walker in (idle, bound):
        await p.stays(walker.id)


@row("B2015", slots=2, needs=(Capability.HEAL,), selectors=("fault-lose-host",))
async def failed_slots_heal(p: Probe) -> None:
    """A FAILED slot becomes usable again, as a new life.

    Why: without healing a fleet loses a slot with every fault.
    Does: machines FAILED by a refused Create and by a lost host, with `--heal-after=2s`.
    Passes: within 7 s of the failure SPECULATIVE without host, cluster, metadata, last_error; old
    tokens stay fenced; a new Create gets a new id; on the lost-host machine it reaches IDLE on a
    new host, on the fault slot it ends FAILED again.
    """
    plan = BootPlan(
        LaneName.FAULT,
        8,
        64,
        transition_timeout_s=2.0,
        reconcile_interval_s=0.5,
        heal_after_s=HEAL_S,
        name="heal",
    )
    async with own_boot(p, plan) as q:
        await asyncio.gather(heals_a_lost_host(q), heals_a_refused_create(q))


@asynccontextmanager
async def own_boot(p: Probe, plan: BootPlan) -> AsyncIterator[Probe]:
    """An instance with options of its own; a target that cannot be booted is looked at as it is."""
    if p.workshop.fault_source is None:
        yield p
        return
    subject = await p.workshop.boot(plan, fault=True)
    yield subject.probe(p)
    await subject.kill()


async def healed(q: Probe, walker: Walker) -> None:
    """SPECULATIVE, with nothing left of the last life."""
    ends = time.monotonic() + HEALED_WITHIN_S
    while True:
        record = await walker.see()
        if record.state == SPECULATIVE:
            break
        check(time.monotonic() < ends, f"{walker.id} is not healed after {HEALED_WITHIN_S:g} s")
        await asyncio.sleep(q.pace.poll_s)
    check(not record.host.ref, f"the healed slot keeps host {record.host.ref!r}")
    is_clean(record)


async def heals_a_lost_host(q: Probe) -> None:
    """The next life is on another host."""
    walker = q.slot()
    first = await walker.create()
    await walker.configure(q.binding("fault-lose-host"))
    old = (await walker.see()).host.ref
    await failed(q, walker, q.pace.loss_window_s)
    await healed(q, walker)
    (await walker.try_create(walker.at(1, 1))).must_be_fenced()
    second = await walker.create()
    check(second.operation_id != first.operation_id, "the new Create has the old id")
    new = (await walker.see()).host.ref
    check(new and new != old, f"the new life is on the old host {old!r}")


async def heals_a_refused_create(q: Probe) -> None:
    """A fault that lasts fails again."""
    walker = q.faulty_slot("error")
    first = (await walker.try_create()).must_be_ok()
    await failed(q, walker, q.pace.settle_s)
    await healed(q, walker)
    (await walker.try_create(walker.at(1, 1))).must_be_fenced()
    second = (await walker.try_create()).must_be_ok()
    check(second.operation_id != first.operation_id, "the new Create has the old id")
    await failed(q, walker, q.pace.settle_s)


@row("B2018", selectors=("fault-join-late",))
async def late_nodes_are_waited_for(p: Probe) -> None:
    """A node that joins late is waited for.

    Why: registered is not Ready; pods cannot run there yet.
    Does: Configure to `fault-join-late`: the node registers after 0.3 s and is Ready after 1.2 s
    (own boot, `--transition-timeout=10s`).
    Passes: CONFIGURING until Ready (never CONFIGURED before 1.1 s), binding visible; CONFIGURED
    within 2 s after.
    """
    plan = BootPlan(LaneName.FAULT, 9, 64, transition_timeout_s=10.0, name="join-late")
    async with own_boot(p, plan) as q:
        walker = await q.idle()
        binding = p.binding("fault-join-late")
        began = time.monotonic()
        async with q.watch(walker.id, 0.01) as trace:
            (await walker.try_configure(binding)).must_be_ok()
            await walker.until(CONFIGURED, within_s=READY_S + 2.0)
            took = time.monotonic() - began
        check(took >= READY_S - 0.1, f"CONFIGURED after {took:.2f} s; Ready is at 1.2 s")
        trace.must_have_seen(CONFIGURING)
        for sample in trace.in_state(CONFIGURING):
            check(binding.shown_by(sample), "CONFIGURING without the binding")


@row("B2028", slots=0, selectors=("conformance.fault/create=stockout",))
async def stock_outs_are_named(p: Probe) -> None:
    """A stock-out says that it is one.

    Why: the shard tries another type; on any other error it would try again.
    Does: Create on a slot labelled `conformance.fault/create=stockout`.
    Passes: FAILED with a last_error that starts with `OutOfCapacity:`, the same on Get and List.
    """
    walker = p.faulty_slot("stockout")
    (await walker.try_create()).must_be_ok()
    record = await failed(p, walker, p.pace.settle_s)
    check(
        record.last_error.startswith("OutOfCapacity:"),
        f"last_error is {record.last_error!r} and does not start with OutOfCapacity:",
    )
    listed = await p.listed_once(walker.id)
    check(listed.last_error == record.last_error, "List and Get differ in last_error")


@row("B2029")
async def a_failed_drain_is_a_failure(p: Probe) -> None:
    """A drain that failed is a failure, and the machine keeps its binding.

    Why: pods may still run there; IDLE would sell the machine to another cluster.
    Does: bind to `fault-drain-error` with metadata, Drain with grace 0, watched for 1 s after it
    ended.
    Passes: FAILED with last_error; host, cluster and metadata as before the Drain; IDLE is never
    seen.
    """
    binding = p.binding("fault-drain-error", key="value")
    walker = await p.bound(binding)
    before = await walker.see()
    async with p.watch(walker.id, 0.005) as trace:
        (await walker.try_drain(grace=0)).must_be_ok()
        ended = await walker.until(FAILED, IDLE)
        await asyncio.sleep(1.0)
    check(IDLE not in trace.path and ended.state == FAILED, "a failed drain showed IDLE")
    trace.must_pass_only((CONFIGURED, 6, FAILED), "the failed Drain")
    now = await p.stays(walker.id)
    check(now.state == FAILED and now.last_error, "FAILED with an empty last_error")
    check(now.host == before.host, "the failed drain lost the host")
    check(binding.shown_by(now), "the failed drain lost the binding")
    after = trace.path[trace.path.index(FAILED) :]
    check(after == [FAILED], "the failed drain started over")


@row("B2032", slots=2, selectors=("fault-lose-host",))
async def a_failure_keeps_what_was_there(p: Probe) -> None:
    """A machine that failed still says where it ran and for whom.

    Why: what was lost, and in which cluster, is what a person and the shard have to know.
    Does: Configure to `fault-error`; a CONFIGURED machine loses its host (`fault-lose-host`).
    Passes: both are FAILED with host, cluster and metadata as they were.
    """
    refused, lost = await p.idle(), await p.idle()
    hosts = [(await walker.see()).host for walker in (refused, lost)]
    bindings = [p.binding(name, kept="yes") for name in ("fault-error", "fault-lose-host")]
    (await refused.try_configure(bindings[0])).must_be_ok()
    await lost.configure(bindings[1])
    for walker, host, binding in zip((refused, lost), hosts, bindings, strict=True):
        record = await failed(p, walker, p.pace.loss_window_s)
        check(record.host == host, f"it ran on {host.ref!r}, now it says {record.host.ref!r}")
        check(record.cluster == binding.cluster, f"FAILED with cluster {record.cluster!r}")
        check(binding.shown_by(record), "FAILED without the metadata of its binding")

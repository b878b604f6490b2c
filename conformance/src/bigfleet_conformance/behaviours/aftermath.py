"""A FAILED machine stays as it is: no mutation moves it, no restart rewrites it (B2037, B2038).

Run on the fault subject, like area B7xx. A machine fails in five ways, because what a provider lets
pass hangs on how it got there: a failed Create invites another one, a lost host a Delete.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.behaviours.durability import plan
from bigfleet_conformance.behaviours.failure import TIMEOUT_S, failed
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.oracles import FAILED, word
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Area, Capability, Chapter, LaneName, Profile

fault_row = Chapter(
    Area.ADDITIONAL,
    section="3.5",
    profiles=(Profile.FAULT,),
    lane=LaneName.FAULT,
    needs=(Capability.FAULT,),
).row
durable_row = Chapter(
    Area.ADDITIONAL,
    section="3.5",
    profiles=(Profile.DURABLE,),
    lane=LaneName.DURABLE,
    needs=(Capability.DURABLE, Capability.FAULT),
).row
LOSSES = ("fault-lose-idle", "fault-lose-host")
RECONCILE_S = 0.5
# Long enough for a look at all hosts, a second one, and one more.
AFTER_START_S = 3 * RECONCILE_S
# Far longer than the behaviour may take: a slot that is SPECULATIVE after a start was not healed.
NO_HEAL_S = 600.0


async def refused_create(p: Probe) -> Walker:
    """Nothing was ever made."""
    walker = p.faulty_slot("error")
    (await walker.try_create()).must_be_ok()
    return walker


async def refused_configure(p: Probe) -> Walker:
    """A host that never joined its cluster."""
    walker = await p.idle()
    (await walker.try_configure(p.binding("fault-error", kept="yes"))).must_be_ok()
    return walker


async def failed_drain(p: Probe) -> Walker:
    """A node that may still run pods."""
    walker = await p.bound(p.binding("fault-drain-error", kept="yes"))
    (await walker.try_drain()).must_be_ok()
    return walker


async def lost_idle(p: Probe) -> Walker:
    """A free host that is gone."""
    walker = await p.bound(p.binding("fault-lose-idle", kept="no"))
    await walker.drain()
    return walker


async def lost_bound(p: Probe) -> Walker:
    """A bound host that is gone."""
    return await p.bound(p.binding("fault-lose-host", kept="yes"))


WAYS: Sequence[Callable[[Probe], Awaitable[Walker]]] = (
    refused_create,
    refused_configure,
    failed_drain,
    lost_idle,
    lost_bound,
)


def same_failure(was: pb.Machine, now: pb.Machine, after: str) -> None:
    """State, reason, host, cluster and metadata are those of the failure."""
    check(now.state == FAILED, f"{was.id} was FAILED and is {word(now.state)} after {after}")
    check(
        now.last_error == was.last_error,
        f"{was.id} failed with {was.last_error!r} and says {now.last_error!r} after {after}",
    )
    check(
        now.host == was.host,
        f"{was.id} ran on {was.host.ref!r} and says {now.host.ref!r} after {after}",
    )
    check(
        now.cluster == was.cluster and now.shard_metadata == was.shard_metadata,
        f"{was.id} was bound to {was.cluster!r} and says {now.cluster!r}, with "
        f"{len(now.shard_metadata)} of {len(was.shard_metadata)} metadata keys, after {after}",
    )


@fault_row("B2037", slots=4, selectors=LOSSES)
async def failed_machines_take_no_mutation(p: Probe) -> None:
    """A FAILED machine takes no mutation.

    Why: it is unknown what is left on its host; a Delete that is accepted may leave it running
    and unseen, and a Create may start a second one.
    Does: machines FAILED by a refused Create, a refused Configure, a failed Drain and a lost host,
    IDLE and CONFIGURED; all four mutations on each, at once after the failure.
    Passes: plain refusals (Delete UNIMPLEMENTED where it is not offered); state, last_error, host,
    cluster and metadata unchanged.
    """
    await asyncio.gather(*(takes_nothing(p, fail) for fail in WAYS))


async def takes_nothing(p: Probe, fail: Callable[[Probe], Awaitable[Walker]]) -> None:
    """One machine, looked at when it has just failed: healing comes later, and makes it legal."""
    walker = await fail(p)
    was = await failed(p, walker, p.pace.loss_window_s)
    for answer in (
        await walker.try_create(),
        await walker.try_configure(p.binding("healthy-cluster", kept="no")),
        await walker.try_drain(),
        await walker.try_delete(),
    ):
        answer.must_be_refused()
    same_failure(was, await p.stays(walker.id), "four refusals")


@durable_row("B2038", slots=4, selectors=LOSSES)
async def failures_survive(p: Probe) -> None:
    """A restart changes nothing of a FAILED machine.

    Why: what failed, where and for whom is all that is left to find a host that may still run.
    Does: fault subject with state, `--heal-after=600s`: machines FAILED by a refused Create, a
    refused Configure, a failed Drain and a lost host, IDLE and CONFIGURED; SIGTERM and
    reboot, SIGKILL and reboot.
    Passes: after each start all are FAILED with last_error, host, cluster and metadata as they
    were, on List at once and on Get for as long as three looks at all hosts take.
    """
    first = plan(
        p.workshop.new_folder("failed"),
        31,
        transition_timeout_s=TIMEOUT_S,
        reconcile_interval_s=RECONCILE_S,
        heal_after_s=NO_HEAL_S,
        name="failed",
    )
    subject = await p.workshop.boot(first, fault=True)
    q = subject.probe(p)
    records = await asyncio.gather(*(fail_for_good(q, fail) for fail in WAYS))
    await subject.stop()
    subject = await p.workshop.boot(first.at(32), fault=True)
    await failures_hold(subject.probe(p), records, "a stop and a start")
    await subject.kill()
    subject = await p.workshop.boot(first.at(33), fault=True)
    await failures_hold(subject.probe(p), records, "a crash and a start")
    await subject.kill()


async def fail_for_good(p: Probe, fail: Callable[[Probe], Awaitable[Walker]]) -> pb.Machine:
    """The record of a machine that failed."""
    return await failed(p, await fail(p), p.pace.loss_window_s)


async def failures_hold(p: Probe, records: Sequence[pb.Machine], after: str) -> None:
    """Right after the start, and when the provider has looked at its hosts."""
    listed = {m.id: m for m in (await p.list()).machines}
    for was in records:
        check(was.id in listed, f"{was.id} was FAILED and is gone after {after}")
        same_failure(was, listed[was.id], after)
    seen = await asyncio.gather(*(p.stays(was.id, AFTER_START_S) for was in records))
    for was, now in zip(records, seen, strict=True):
        same_failure(was, now, after)

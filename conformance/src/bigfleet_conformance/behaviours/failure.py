"""Timeouts and failure: a substrate that fails is never a lie about a machine (B7xx).

Run on the fault subject, whose substrate fails on command: by the label of a slot or the name of
the cluster. The transition timeout there is two seconds.
"""

import asyncio
import time

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    CONFIGURING,
    DRAINING,
    FAILED,
    IDLE,
    word,
)
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Area, Capability, Chapter, LaneName, Profile

row = Chapter(
    Area.FAILURE,
    section="3.5",
    profiles=(Profile.FAULT,),
    lane=LaneName.FAULT,
    needs=(Capability.FAULT,),
).row
TIMEOUT_S = 2.0
SLACK_S = 3.0


async def failed(p: Probe, walker: Walker, within_s: float) -> pb.Machine:
    """Wait for FAILED, which always says why."""
    record = await walker.until(FAILED, within_s=within_s)
    check(record.last_error, f"{walker.id} is FAILED with an empty last_error")
    return record


async def fail_configure(p: Probe, cluster: str, within_s: float) -> tuple[Walker, pb.Machine]:
    """A machine whose Configure failed."""
    walker = await p.idle()
    (await walker.try_configure(p.binding(cluster))).must_be_ok()
    return walker, await failed(p, walker, within_s)


@row("B701")
async def failing_configure(p: Probe) -> None:
    """A Configure that fails ends FAILED with a reason.

    Why: a machine that silently goes back to IDLE is tried again forever.
    Does: Configure to cluster `fault-error`.
    Passes: FAILED with last_error; not CONFIGURING again within 300 ms.
    """
    walker, _ = await fail_configure(p, "fault-error", p.pace.settle_s)
    now = await p.stays(walker.id, 0.3)
    check(now.state == FAILED, f"FAILED became {word(now.state)}")


@row("B702", slots=0)
async def failing_create(p: Probe) -> None:
    """A Create that fails ends FAILED with a reason.

    Why: the shard has to take another slot, and a person has to know why.
    Does: Create on a slot labelled `conformance.fault/create=error`.
    Passes: FAILED with last_error.
    """
    walker = p.faulty_slot("error")
    (await walker.try_create()).must_be_ok()
    await failed(p, walker, p.pace.settle_s)


@row("B703")
async def hanging_configure(p: Probe) -> None:
    """A transition that hangs is ended by its time-out.

    Why: a machine in CONFIGURING forever is capacity that cannot be used.
    Does: Configure to `fault-timeout`, which hangs until cancelled.
    Passes: FAILED with last_error within the timeout + 3 s.
    """
    await fail_configure(p, "fault-timeout", TIMEOUT_S + SLACK_S)


@row("B704")
async def late_success(p: Probe) -> None:
    """A success that comes after the time-out is dropped.

    Why: the shard has taken another machine by then.
    Does: Configure to `fault-slow-ok`, which ignores the cancel and succeeds 1 s late.
    Passes: FAILED, and still FAILED after the late success.
    """
    walker, _ = await fail_configure(p, "fault-slow-ok", TIMEOUT_S + SLACK_S)
    now = await p.stays(walker.id, 2.0)
    check(now.state == FAILED, f"the late success made it {word(now.state)}")


@row("B705")
async def failed_machines_are_not_configured(p: Probe) -> None:
    """A FAILED machine is not configured.

    Why: it is unknown what is left on its host.
    Does: Configure on a FAILED machine.
    Passes: plain refusal; state and last_error unchanged.
    """
    walker, before = await fail_configure(p, "fault-error", p.pace.settle_s)
    (await walker.try_configure(p.binding("healthy-cluster"))).must_be_refused()
    now = await p.stays(walker.id)
    check(now.state == FAILED, f"FAILED became {word(now.state)}")
    check(now.last_error == before.last_error, f"last_error became {now.last_error!r}")


@row("B706")
async def failing_drain(p: Probe) -> None:
    """A Drain that fails ends.

    Why: a drain that starts over forever holds the machine and its cluster.
    Does: bind to `fault-drain-error`, Drain with grace 0.
    Passes: IDLE, or FAILED with last_error; never DRAINING again.
    """
    walker = await p.bound(p.binding("fault-drain-error"))
    (await walker.try_drain(grace=0)).must_be_ok()
    ended = await walker.until(IDLE, FAILED)
    if ended.state == FAILED:
        check(ended.last_error, "FAILED with an empty last_error")
    async with p.watch(walker.id, 0.01) as trace:
        await asyncio.sleep(0.5)
    check(DRAINING not in trace.path, "the failed Drain started over")


@row("B707")
async def failed_machines_are_shown(p: Probe) -> None:
    """A FAILED machine is shown with its reason, everywhere the same.

    Why: what List hides, no process repairs.
    Does: three Gets and List(FAILED) of a FAILED machine.
    Passes: the same last_error each time.
    """
    walker, first = await fail_configure(p, "fault-error", p.pace.settle_s)
    for _ in range(3):
        now = await walker.see()
        check(now.state == FAILED, f"Get shows {word(now.state)}")
        check(now.last_error == first.last_error, f"last_error became {now.last_error!r}")
    listed = [m for m in (await p.list([FAILED])).machines if m.id == walker.id]
    check(len(listed) == 1, "List(FAILED) does not show the machine")
    check(listed[0].last_error == first.last_error, "List and Get differ in last_error")


@row("B708")
async def no_success_without_a_ready_node(p: Probe) -> None:
    """A machine is CONFIGURED only when its node is Ready.

    Why: pods wait for the node, not for the provider's hope.
    Does: Configure to `fault-readiness-block`: the host is up, the node never Ready.
    Passes: never CONFIGURED before the timeout less 0.5 s; then FAILED with last_error.
    """
    walker = await p.idle()
    began = time.monotonic()
    (await walker.try_configure(p.binding("fault-readiness-block"))).must_be_ok()
    record = await p.until(walker.id, FAILED, CONFIGURED, within_s=TIMEOUT_S + SLACK_S)
    took = time.monotonic() - began
    check(record.state != CONFIGURED, "CONFIGURED although the node was never Ready")
    check(record.last_error, "FAILED with an empty last_error")
    check(took >= TIMEOUT_S - 0.5, f"FAILED after {took:.1f} s; the node had {TIMEOUT_S:g} s")
    check(record.state != CONFIGURING, "still CONFIGURING")

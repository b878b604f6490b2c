"""Calls against work in flight, and calls that are cancelled (B2012, B2013)."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.behaviours.concurrency import one_id
from bigfleet_conformance.behaviours.scale import percentile, timed
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
from bigfleet_conformance.harness.probe import BURST, Probe, is_clean
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Alone, Area, Capability, Chapter, LaneName

row = Chapter(Area.ADDITIONAL, section="3.5", lane=LaneName.SLOW, needs=(Capability.SLOW,)).row
READ_LIMIT_S = 0.25


@row("B2012", slots=2, alone=Alone.RUN)
async def bursts_against_work_in_flight(p: Probe) -> None:
    """Work in flight is disturbed by nothing.

    Why: a shard that got no answer repeats while the machine is on its way.
    Does: slow provider, bursts against work in flight: repeats of Create, Configure, Drain, Delete;
    Drain during CONFIGURING, Configure during DRAINING, Delete during CREATING.
    Passes: repeats: the one id; others: plain refusals; each transition ends once, in its own
    target, with its own binding and one host, within twice the substrate's time + 2 s; reads answer
    within 250 ms (p95).
    """
    walker, binding = p.slot(), p.binding()
    reads: list[float] = []

    async def read() -> None:
        while True:
            reads.append(await timed(walker.see))
            await asyncio.sleep(p.pace.poll_s)

    deletes = p.claims(Capability.DELETE)
    async with p.background(read):
        against_create = (lambda: walker.try_delete(walker.elsewhere())) if deletes else None
        await in_flight(p, walker, walker.try_create, (CREATING, IDLE), against_create)
        await in_flight(
            p,
            walker,
            lambda token=None: walker.try_configure(binding, token),
            (CONFIGURING, CONFIGURED),
            lambda: walker.try_drain(walker.elsewhere()),
        )
        now = await p.stays(walker.id, p.pace.substrate_s + 0.2)
        check(binding.shown_by(now), f"CONFIGURED with another binding: {now.cluster!r}")
        await in_flight(
            p,
            walker,
            walker.try_drain,
            (DRAINING, IDLE),
            lambda: walker.try_configure(p.binding("another-cluster"), walker.elsewhere()),
        )
        is_clean(await p.stays(walker.id, p.pace.substrate_s + 0.2))
        if deletes:
            await in_flight(p, walker, walker.try_delete, (DELETING, SPECULATIVE), None)
    check(len(reads) >= 40, f"only {len(reads)} reads were made")
    p95 = percentile(reads, 0.95)
    check(p95 <= READ_LIMIT_S, f"reads take {p95 * 1000:.0f} ms (p95) beside work in flight")


async def in_flight(
    p: Probe,
    walker: Walker,
    send: Callable[..., Awaitable[Answer]],
    states: tuple[int, int],
    against: Callable[[], Awaitable[Answer]] | None,
) -> None:
    """One transition with a burst of repeats and of calls that do not belong there."""
    passing, target = states
    before = await walker.see()
    began = time.monotonic()
    async with p.watch(walker.id, 0.01) as flight:
        first = await send()
        first.must_be_ok()
        repeats = [send(walker.elsewhere()) for _ in range(BURST)]
        strangers = [against() for _ in range(BURST)] if against else []
        answers = await asyncio.gather(*repeats, *strangers)
        one_id([first, *answers[: len(repeats)]])
        for answer in answers[len(repeats) :]:
            answer.must_be_refused()
        limit = 2 * p.pace.substrate_s + 2.0
        left = max(0.1, limit - (time.monotonic() - began))
        await walker.until(target, within_s=left)
    flight.must_pass_only((before.state, passing, target), "a transition under a burst")
    # Work that was started twice ends a second time: on another host, or in another state.
    async with p.watch(walker.id, 0.01) as trace:
        await asyncio.sleep(p.pace.substrate_s + 0.2)
    trace.must_pass_only((target,), f"the rest after {word(passing)}")
    seen = [*flight.samples, *trace.samples]
    refs = {sample.host.ref for sample in seen if sample.host.ref}
    check(len(refs) <= 1, f"one transition showed {len(refs)} hosts: {sorted(refs)}")


@row("B2013", slots=20)
async def cancelled_calls(p: Probe) -> None:
    """A cancelled call leaves a machine untouched or on its way.

    Why: a shard that dies in the middle of a call is not a reason to lose a machine.
    Does: 20 mutations cancelled by the client 0-50 ms after sending, Lists cancelled half way.
    Passes: each machine is either untouched or runs to its target with the full binding, never
    between; a repeat with a newer token gives OK; the provider goes on serving.
    """
    fresh = [p.slot() for _ in range(8)]
    idle = list(await asyncio.gather(*(p.idle() for _ in range(6))))
    bound = list(await asyncio.gather(*(p.bound() for _ in range(6))))
    binding = p.binding("cancelled-cluster", key="value")
    await asyncio.gather(
        *(cancel(p, w, "Create", Binding()) for w in fresh),
        *(cancel(p, w, "Configure", binding) for w in idle),
        *(cancel(p, w, "Drain", Binding()) for w in bound),
        *(cancel_list(p) for _ in range(4)),
    )
    for walker in fresh:
        await ends_or_rests(p, walker, SPECULATIVE, IDLE)
        (await walker.try_create()).must_be_ok()
    for walker in idle:
        now = await ends_or_rests(p, walker, IDLE, CONFIGURED)
        if now.state == CONFIGURED:
            check(binding.shown_by(now), "CONFIGURED with half a binding after a cancelled call")
        (await walker.try_configure(binding)).must_be_ok()
    for walker in bound:
        now = await ends_or_rests(p, walker, CONFIGURED, IDLE)
        if now.state == IDLE:
            is_clean(now)
        (await walker.try_drain()).must_be_ok()
    for walkers, target in ((fresh, IDLE), (idle, CONFIGURED), (bound, IDLE)):
        await asyncio.gather(*(walker.until(target) for walker in walkers))
    await p.sweep()


async def ends_or_rests(p: Probe, walker: Walker, start: int, target: int) -> pb.Machine:
    """A machine is where it was, or gets to its target."""
    await walker.until(start, target)
    return await p.stays(walker.id, 0.05)


async def cancel(p: Probe, walker: Walker, method: str, binding: Binding) -> None:
    """Send a mutation and cancel it between 0 and 50 ms later."""
    token = walker.next()
    triple = {
        "machine_id": walker.id,
        "shard_id": token.shard,
        "shard_epoch": token.epoch,
        "sequence_number": token.sequence,
    }
    stub = p.link.stub(token.shard)
    call: grpc.aio.Call
    if method == "Create":
        call = stub.Create(pb.CreateRequest(**triple))  # type: ignore[arg-type]
    elif method == "Configure":
        request = pb.ConfigureRequest(**triple)  # type: ignore[arg-type]
        request.cluster_id, request.bootstrap_blob = binding.cluster, binding.blob
        request.shard_metadata.update(binding.metadata)
        call = stub.Configure(request)
    else:
        call = stub.Drain(pb.DrainRequest(**triple))  # type: ignore[arg-type]
    await asyncio.sleep(p.random.uniform(0.0, 0.05))
    await gone(call)


async def cancel_list(p: Probe) -> None:
    """Send a List and cancel it half way."""
    call = p.link.stub().List(pb.ListFilter())
    await asyncio.sleep(p.random.uniform(0.0, 0.01))
    await gone(call)


async def gone(call: grpc.aio.Call) -> None:
    """Cancel a call, and wait for its end, whatever had become of it."""
    call.cancel()
    await call.code()

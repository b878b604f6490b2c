"""Lifecycle and state machine: what a machine shows at rest and on its way (B1xx)."""

from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    CONFIGURING,
    DELETING,
    DRAINING,
    IDLE,
    ROUND,
    SPECULATIVE,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean, is_resting
from bigfleet_conformance.harness.watch import path_of, stray, words
from bigfleet_conformance.registry import Area, Capability, Chapter, Profile

row = Chapter(Area.LIFECYCLE, section="3.5").row


@row("B101")
async def rests_are_clean(p: Probe) -> None:
    """Rounds of Configure and Drain leave nothing behind.

    Why: a leftover of the last round is read as the binding of the next one.
    Does: Create, then four Configure and Drain rounds on one machine.
    Passes: at every IDLE rest cluster, metadata and last_error are empty; at every CONFIGURED rest
    the cluster is set.
    """
    walker = await p.idle()
    is_clean(await walker.see())
    for turn in range(2 if p.pace.few_rounds else 4):
        binding = p.binding(f"round-{turn}", turn=str(turn))
        await walker.configure(binding)
        bound = await walker.see()
        check(bound.cluster == binding.cluster, f"CONFIGURED with cluster {bound.cluster!r}")
        check(not bound.last_error, f"CONFIGURED with last_error {bound.last_error!r}")
        await walker.drain()
        is_clean(await walker.see())


@row("B103", also_slow=True)
async def configure_shows_configuring_only(p: Probe) -> None:
    """During Configure nothing but CONFIGURING is seen.

    Why: a shard takes any other state for another operation.
    Does: samples the state every millisecond during Configure.
    Passes: in flight nothing but CONFIGURING is seen; the machine ends CONFIGURED.
    """
    walker = await p.idle()
    async with p.watch(walker.id) as trace:
        ack = (await walker.try_configure(p.binding())).must_be_ok()
        await walker.until(CONFIGURED)
    trace.must_pass_only((IDLE, CONFIGURING, CONFIGURED), "Configure")
    check(trace.path[-1] == CONFIGURED, f"ended {word(trace.path[-1])}")
    if ack.HasField("machine"):
        shown = ack.machine.state
        check(shown in (IDLE, CONFIGURING, CONFIGURED), f"the ack shows {word(shown)}")
    if p.slow:
        trace.must_have_seen(CONFIGURING)


@row("B104", also_slow=True)
async def drain_shows_draining_only(p: Probe) -> None:
    """During Drain nothing but DRAINING is seen.

    Why: a machine that looks bound or free while it drains is given away too early.
    Does: samples the state every millisecond during Drain.
    Passes: in flight nothing but DRAINING is seen; the machine ends IDLE.
    """
    walker = await p.bound()
    async with p.watch(walker.id) as trace:
        ack = (await walker.try_drain()).must_be_ok()
        await walker.until(IDLE)
    trace.must_pass_only((CONFIGURED, DRAINING, IDLE), "Drain")
    check(trace.path[-1] == IDLE, f"ended {word(trace.path[-1])}")
    if ack.HasField("machine"):
        shown = ack.machine.state
        check(shown in (CONFIGURED, DRAINING, IDLE), f"the ack shows {word(shown)}")
    if p.slow:
        trace.must_have_seen(DRAINING)


@row("B105", also_slow=True)
async def every_step_is_an_edge(p: Probe) -> None:
    """Every step of a machine is an edge of the state graph.

    Why: the shard's accounting follows that graph and no other.
    Does: traces the state over Create, Configure and Drain, the acks included.
    Passes: it starts at SPECULATIVE and every step is a legal edge; a transitional state may be
    missed, none may be foreign.
    """
    walker = p.slot()
    async with p.watch(walker.id) as trace:
        snapshots = [await walker.create(), await walker.configure(p.binding())]
        snapshots.append(await walker.drain())
    check(trace.path[0] == SPECULATIVE, f"a fresh machine is {word(trace.path[0])}")
    wrong = stray(trace.path, ROUND)
    check(not wrong, f"{wrong} is not a legal step; the path was {words(trace.path)}")
    own = ((SPECULATIVE, 2, IDLE), (IDLE, CONFIGURING, CONFIGURED), (CONFIGURED, DRAINING, IDLE))
    for ack, legal in zip(snapshots, own, strict=True):
        if ack.HasField("machine"):
            shown = ack.machine.state
            check(shown in legal, f"an ack shows {word(shown)}; legal are {words(legal)}")
    if p.slow:
        trace.must_have_seen(CONFIGURING)
        trace.must_have_seen(DRAINING)


@row("B106", also_slow=True)
async def cluster_follows_the_binding(p: Probe) -> None:
    """The cluster is there exactly as long as the binding.

    Why: demand is counted by the cluster a machine names.
    Does: reads the cluster before, during and after a binding.
    Passes: empty at IDLE, set in CONFIGURING if seen, equal to the request at CONFIGURED, empty
    after the Drain.
    """
    walker = await p.idle()
    check(not (await walker.see()).cluster, "IDLE with a cluster before the first Configure")
    binding = p.binding()
    async with p.watch(walker.id) as trace:
        await walker.configure(binding)
    for sample in trace.in_state(CONFIGURING):
        check(sample.cluster == binding.cluster, f"CONFIGURING with cluster {sample.cluster!r}")
    if p.slow:
        trace.must_have_seen(CONFIGURING)
    now = await walker.see()
    check(now.cluster == binding.cluster, f"CONFIGURED with cluster {now.cluster!r}")
    await walker.drain()
    now = await walker.see()
    check(not now.cluster, f"IDLE after the Drain with cluster {now.cluster!r}")


@row("B107")
async def host_is_there_from_idle_on(p: Probe) -> None:
    """There is a host from IDLE on, and none before.

    Why: a node is matched to its machine by the host's ref.
    Does: reads the host at each rest of a walk.
    Passes: unset at SPECULATIVE; set at IDLE, CONFIGURED and IDLE again; a settled read never shows
    a transitional state.
    """
    walker = p.slot()
    fresh = await walker.see()
    check(not fresh.host.ref, f"SPECULATIVE with host {fresh.host.ref!r}")
    await walker.create()
    for rest in ("IDLE", "CONFIGURED", "IDLE again"):
        if rest == "CONFIGURED":
            await walker.configure(p.binding())
        elif rest == "IDLE again":
            await walker.drain()
        now = await p.stays(walker.id, 0.1)
        is_resting(now)
        check(now.host.ref, f"{rest} without a host")


@row("B108", also_slow=True)
async def rest_is_rest(p: Probe) -> None:
    """A settled machine stays as it is.

    Why: a machine that flickers is counted twice or not at all.
    Does: watches a machine for 300 ms at CONFIGURED and at IDLE.
    Passes: the state stays; none of the four transitional states appears.
    """
    walker = await p.bound()
    for rest in (CONFIGURED, IDLE):
        if rest == IDLE:
            await walker.drain()
        async with p.watch(walker.id, 0.005) as trace:
            await p.stays(walker.id, 0.3)
        trace.must_not_move(f"a rest at {word(rest)}")
        check(trace.path == [rest], f"expected {word(rest)} all the time, saw {words(trace.path)}")


@row("B109", also=(Profile.CLOUD,), needs=(Capability.DELETE,), also_slow=True)
async def delete_shows_deleting_only(p: Probe) -> None:
    """Delete passes through DELETING to an empty slot.

    Why: only an empty slot may be sold again.
    Does: traces the state of a Delete.
    Passes: nothing but DELETING in flight; ends SPECULATIVE without a host.
    """
    walker = await p.idle()
    async with p.watch(walker.id) as trace:
        (await walker.try_delete()).must_be_ok()
        await walker.until(SPECULATIVE)
    trace.must_pass_only((IDLE, DELETING, SPECULATIVE), "Delete")
    if p.slow:
        trace.must_have_seen(DELETING)
    last = trace.samples[-1]
    check(path_of([last]) == [SPECULATIVE], f"ended {word(last.state)}")
    check(not last.host.ref, f"SPECULATIVE with host {last.host.ref!r}")

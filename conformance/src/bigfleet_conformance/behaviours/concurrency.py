"""Concurrency and idempotency: many calls at once are one operation (B4xx)."""

import asyncio
from collections.abc import Sequence

from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Answer, Binding
from bigfleet_conformance.harness.oracles import CONFIGURED, CONFIGURING, IDLE, SPECULATIVE, word
from bigfleet_conformance.harness.probe import BURST, Probe, is_clean
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Area, Capability, Chapter, Profile

row = Chapter(Area.CONCURRENCY, section="3.5").row


def one_id(answers: Sequence[Answer]) -> str:
    """The single non-empty id of all that were accepted; none may be fenced."""
    for answer in answers:
        answer.must_not_be_fenced()
    ids = {answer.must_be_ok().operation_id for answer in answers if answer.ok}
    check(ids, f"none of {len(answers)} calls was accepted: {answers[0].detail}")
    check(len(ids) == 1, f"one operation has {len(ids)} ids: {sorted(ids)[:4]}")
    check("" not in ids, "the operation id is empty")
    return ids.pop()


async def configure_burst(
    p: Probe, walker: Walker, binding: Binding, connections: int = 1
) -> list[Answer]:
    """Identical Configures at once, each from a shard of its own."""
    return list(
        await asyncio.gather(
            *(
                p.configure(walker.id, walker.elsewhere(), binding, connection=n % connections)
                for n in range(BURST)
            )
        )
    )


@row("B401", also_slow=True)
async def burst_of_creates(p: Probe) -> None:
    """Sixteen Creates at once make one machine.

    Why: two hosts for one slot is money that no report shows.
    Does: burst of identical Creates, each call from a shard id of its own.
    Passes: one non-empty id over all successes, none fenced, machine listed once, IDLE.
    """
    walker = p.slot()
    calls = (walker.try_create(walker.elsewhere()) for _ in range(BURST))
    one_id(await asyncio.gather(*calls))
    await walker.until(IDLE)
    check((await p.listed_once(walker.id)).state == IDLE, "List shows another state than Get")
    is_clean(await walker.see())


@row("B402", also_slow=True)
async def burst_of_configures(p: Probe) -> None:
    """Sixteen Configures at once bind once.

    Why: a shard that repeats must not restart the join.
    Does: burst of identical Configures.
    Passes: one id, none fenced; machine listed once, CONFIGURED, binding right.
    """
    walker = await p.idle()
    binding = p.binding()
    one_id(await configure_burst(p, walker, binding))
    await walker.until(CONFIGURED)
    record = await p.listed_once(walker.id)
    check(record.state == CONFIGURED, f"List shows {word(record.state)}")
    check(binding.shown_by(record), f"List shows cluster {record.cluster!r}, another binding")


@row("B403", also_slow=True)
async def burst_of_drains(p: Probe) -> None:
    """Sixteen Drains at once drain once.

    Why: a second drain would hit the machine's next binding.
    Does: burst of identical Drains.
    Passes: one id, not Create's, none fenced; machine listed once, IDLE, binding cleared.
    """
    walker = p.slot()
    created = (await walker.create()).operation_id
    await walker.configure(p.binding())
    calls = (walker.try_drain(walker.elsewhere()) for _ in range(BURST))
    drained = one_id(await asyncio.gather(*calls))
    check(drained != created, f"Drain and Create share the id {created!r}")
    await walker.until(IDLE)
    is_clean(await p.listed_once(walker.id))


@row("B404", also_slow=True)
async def configure_and_drain_at_once(p: Probe) -> None:
    """Configure and Drain at once end in one of the two, whole.

    Why: between two owners of a machine there must be no third state.
    Does: Configure and Drain at once on CONFIGURED.
    Passes: the loser is not fenced; settles IDLE and cleared, or CONFIGURED and intact, and stays
    for 300 ms.
    """
    binding = p.binding()
    walker = await p.bound(binding)
    answers = await asyncio.gather(
        walker.try_configure(binding, walker.elsewhere()), walker.try_drain(walker.elsewhere())
    )
    for answer in answers:
        answer.must_not_be_fenced()
    await walker.until(IDLE, CONFIGURED)
    now = await p.stays(walker.id, 0.3)
    if now.state == IDLE:
        is_clean(now)
    else:
        check(now.state == CONFIGURED, f"settled {word(now.state)}")
        check(binding.shown_by(now), "CONFIGURED with half a binding")


@row("B405", also_slow=True)
async def old_and_new_epoch_at_once(p: Probe) -> None:
    """Of two epochs at once only the new one passes.

    Why: this is what a shard's fail-over looks like to a provider.
    Does: mark (1,1000); 12 old tokens (1,i) and 12 new ones (2,100+i) in parallel.
    Passes: every old one fenced, at least one new accepted; then (1,9) fenced, (2,9999) accepted.
    """
    walker = p.slot()
    (await walker.try_create(walker.at(1, 1000))).must_be_ok()
    old = [walker.try_create(walker.at(1, n)) for n in range(12)]
    new = [walker.try_create(walker.at(2, 100 + n)) for n in range(12)]
    mixed = [call for pair in zip(old, new, strict=True) for call in pair]
    answers = await asyncio.gather(*mixed)
    for answer in answers[0::2]:
        answer.must_be_fenced()
    check(any(a.ok for a in answers[1::2]), "no token of the new epoch was accepted")
    (await walker.try_create(walker.at(1, 9))).must_be_fenced()
    (await walker.try_create(walker.at(2, 9999))).must_be_ok()


@row("B406", also_slow=True)
async def burst_over_two_connections(p: Probe) -> None:
    """Two connections see one operation.

    Why: state that belongs to a connection is lost when a shard dials again.
    Does: the Configure burst over two connections.
    Passes: one id; later repeats on both return it.
    """
    walker = await p.idle()
    binding = p.binding()
    first = one_id(await configure_burst(p, walker, binding, connections=2))
    for connection in (0, 1):
        again = await p.configure(walker.id, walker.elsewhere(), binding, connection=connection)
        got = again.must_be_ok().operation_id
        check(got == first, f"connection {connection} answers id {got!r} instead of {first!r}")
    await walker.until(CONFIGURED)


@row("B407", slots=8)
async def machines_in_parallel(p: Probe) -> None:
    """Eight machines created at once are eight operations.

    Why: a fleet grows in parallel.
    Does: eight machines created in parallel.
    Passes: eight distinct ids, all IDLE, no cluster or metadata on any.
    """
    walkers = [p.slot() for _ in range(8)]
    acks = await asyncio.gather(*(walker.create() for walker in walkers))
    ids = {ack.operation_id for ack in acks}
    check(len(ids) == 8 and "" not in ids, f"eight machines have the ids {sorted(ids)}")
    for walker in walkers:
        is_clean(await walker.see())


@row("B408", also_slow=True)
async def snapshots_of_a_burst(p: Probe) -> None:
    """Every ack of a burst shows the operation it belongs to.

    Why: the shard books what the ack shows.
    Does: Configure burst, ack snapshots.
    Passes: one id; each snapshot is CONFIGURING or CONFIGURED, and CONFIGURED ones carry the
    cluster (an absent snapshot is judged by B2004).
    """
    walker = await p.idle()
    binding = p.binding()
    answers = await configure_burst(p, walker, binding)
    one_id(answers)
    for answer in answers:
        if not answer.ok or not answer.must_be_ok().HasField("machine"):
            continue
        shown = answer.must_be_ok().machine
        check(shown.state in (CONFIGURING, CONFIGURED), f"an ack shows {word(shown.state)}")
        if shown.state == CONFIGURED:
            check(shown.cluster == binding.cluster, f"an ack shows cluster {shown.cluster!r}")
    await walker.until(CONFIGURED)


@row("B409", also=(Profile.CLOUD,), needs=(Capability.DELETE,), also_slow=True)
async def burst_of_deletes(p: Probe) -> None:
    """Sixteen Deletes at once give back once.

    Why: a second Delete would take the slot's next host.
    Does: burst of Deletes.
    Passes: one id; settles SPECULATIVE, listed once.
    """
    walker = await p.idle()
    calls = (walker.try_delete(walker.elsewhere()) for _ in range(BURST))
    one_id(await asyncio.gather(*calls))
    await walker.until(SPECULATIVE)
    record = await p.listed_once(walker.id)
    check(record.state == SPECULATIVE, f"List shows {word(record.state)}")

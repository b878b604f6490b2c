"""Transition matrix and errors: what is refused, how, and what a repeat gives (B2xx)."""

import grpc

from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Binding, Code
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    IDLE,
    INT64_MAX,
    TRANSITIONAL,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.registry import Area, Chapter, Profile

row = Chapter(Area.TRANSITIONS, section="3.5").row
UNKNOWN = "no-such-machine"
TOO_LARGE = (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)


@row("B201")
async def create_on_configured(p: Probe) -> None:
    """Create on a CONFIGURED machine is refused.

    Why: a second Create would take a host from under a running node.
    Does: Create on CONFIGURED.
    Passes: plain refusal; state and cluster unchanged.
    """
    walker = await p.bound()
    before = await walker.see()
    (await walker.try_create()).must_be_refused()
    await p.untouched(before)


@row("B202")
async def configure_on_speculative(p: Probe) -> None:
    """Configure on a SPECULATIVE machine is refused.

    Why: there is no host that could join a cluster.
    Does: Configure on SPECULATIVE.
    Passes: plain refusal; no cluster or metadata leaks in.
    """
    walker = p.slot()
    before = await walker.see()
    (await walker.try_configure(p.binding())).must_be_refused()
    await p.untouched(before)
    is_clean(await walker.see())


@row("B203")
async def drain_on_idle(p: Probe) -> None:
    """Drain on an IDLE machine does nothing.

    Why: a late Drain must not disturb a machine that is free.
    Does: Drain on IDLE.
    Passes: success without effect, or plain refusal; stays IDLE.
    """
    walker = await p.idle()
    before = await walker.see()
    answer = await walker.try_drain()
    if not answer.ok:
        answer.must_be_refused()
    await p.untouched(before)


@row("B204", slots=2, also=(Profile.CLOUD,))
async def delete_out_of_position(p: Probe) -> None:
    """Delete is for IDLE machines.

    Why: a Delete that takes a bound machine takes its pods with it.
    Does: Delete on SPECULATIVE and on CONFIGURED.
    Passes: UNIMPLEMENTED or plain refusal, on SPECULATIVE also success without effect; the states
    are unchanged.
    """
    empty, bound = p.slot(), await p.bound()
    for walker in (empty, bound):
        before = await walker.see()
        answer = await walker.try_delete()
        if p.owned:
            answer.must_be(Code.UNIMPLEMENTED, why="owned hardware is not given back")
        elif not (answer.ok and walker is empty):
            answer.must_be_refused()
        await p.untouched(before)


@row("B205")
async def repeats_start_nothing(p: Probe) -> None:
    """A repeat at the target starts nothing.

    Why: shards repeat after every lost answer; a repeat that works again breaks a running node.
    Does: Configure again at CONFIGURED, Create again at IDLE.
    Passes: OK; the ack of Configure shows CONFIGURED; no transitional state appears.
    """
    walker = await p.idle()
    async with p.watch(walker.id) as trace:
        again = (await walker.try_create()).must_be_ok()
        await p.stays(walker.id, 0.1)
    trace.must_not_move("a repeated Create at IDLE")
    check(again.machine.state not in TRANSITIONAL, f"ack shows {word(again.machine.state)}")
    binding = p.binding()
    await walker.configure(binding)
    async with p.watch(walker.id) as trace:
        again = (await walker.try_configure(binding)).must_be_ok()
        await p.stays(walker.id, 0.1)
    trace.must_not_move("a repeated Configure at CONFIGURED")
    shown = again.machine.state
    check(shown == CONFIGURED, f"the ack of the repeated Configure shows {word(shown)}")


@row("B206")
async def repeats_have_the_first_id(p: Probe) -> None:
    """A repeat returns the operation id of its original.

    Why: the id is how a shard knows that two answers are one operation.
    Does: Create twice and Configure twice, ids compared.
    Passes: each repeat has the non-empty id of its original; Create's id differs from Configure's.
    """
    walker = p.slot()
    binding = p.binding()
    created = (await walker.create()).operation_id
    again = (await walker.try_create()).must_be_ok().operation_id
    check(created and created == again, f"Create answered {created!r}, its repeat {again!r}")
    configured = (await walker.configure(binding)).operation_id
    again = (await walker.try_configure(binding)).must_be_ok().operation_id
    check(configured and configured == again, f"Configure {configured!r}, its repeat {again!r}")
    check(created != configured, f"Create and Configure share the id {created!r}")


@row("B207", slots=0)
async def unknown_machine(p: Probe) -> None:
    """A machine that does not exist is NOT_FOUND and stays so.

    Why: a shard with an old picture must learn that the slot is gone, not make a new one.
    Does: Create, Configure and Drain on an unknown id.
    Passes: NOT_FOUND; a later Get is still NOT_FOUND.
    """
    ghost = p.machine(f"{UNKNOWN}-{p.shard()}")
    for answer in (
        await ghost.try_create(),
        await ghost.try_configure(p.binding()),
        await ghost.try_drain(),
    ):
        answer.must_be(Code.NOT_FOUND)
    check(await p.get(ghost.id) is Code.NOT_FOUND, "the unknown machine exists after the calls")


@row("B208", slots=0)
async def empty_id(p: Probe) -> None:
    """An empty id is INVALID_ARGUMENT.

    Why: an empty id is a bug of the caller, not a machine that is missing.
    Does: Get, Create, Configure and Drain with an empty id.
    Passes: INVALID_ARGUMENT.
    """
    unknown = p.machine("")
    got = await p.get("")
    name = got.name if isinstance(got, grpc.StatusCode) else "a record"
    check(got is Code.INVALID_ARGUMENT, f"Get with an empty id gave {name}")
    for answer in (
        await unknown.try_create(),
        await unknown.try_configure(p.binding()),
        await unknown.try_drain(),
    ):
        answer.must_be(Code.INVALID_ARGUMENT)


@row("B209")
async def large_metadata(p: Probe) -> None:
    """512 KiB of metadata is stored whole or refused whole.

    Why: half a map is worse than none.
    Does: Configure with 512 metadata keys of 1 KiB.
    Passes: OK and verbatim, or INVALID_ARGUMENT with the machine IDLE and nothing leaked.
    """
    binding = Binding(metadata={f"key-{n:03}": chr(97 + n % 26) * 1024 for n in range(512)})
    await whole_or_not_at_all(p, binding, (Code.INVALID_ARGUMENT,))


@row("B210")
async def negative_grace(p: Probe) -> None:
    """A negative grace is refused or means now.

    Why: a drain must not hang on a number that makes no sense.
    Does: Drain with grace -5, then a proper Drain if the machine is still bound.
    Passes: INVALID_ARGUMENT and still CONFIGURED, or OK and IDLE with the binding cleared; the
    proper Drain clears it too.
    """
    walker = await p.bound()
    before = await walker.see()
    answer = await walker.try_drain(grace=-5)
    if answer.ok:
        await walker.until(IDLE)
    else:
        answer.must_be(Code.INVALID_ARGUMENT)
        await p.untouched(before)
        await walker.drain()
    is_clean(await walker.see())


@row("B211", slots=3)
async def negative_token(p: Probe) -> None:
    """A negative token is a bad argument, not a stale one.

    Why: fenced makes a shard stop; a bad number must not.
    Does: Create with (-1,1), (1,-1) and (-7,-3) from fresh shards.
    Passes: INVALID_ARGUMENT and untouched, or OK and IDLE; never fenced.
    """
    for epoch, sequence in ((-1, 1), (1, -1), (-7, -3)):
        walker = p.slot()
        before = await walker.see()
        answer = await walker.try_create(walker.at(epoch, sequence))
        if answer.ok:
            await walker.until(IDLE)
        else:
            answer.must_be(Code.INVALID_ARGUMENT)
            await p.untouched(before, 0.1)


@row("B212")
async def largest_token(p: Probe) -> None:
    """The largest numbers of a token work.

    Why: epochs may be times, and a token that overflows locks a shard out forever.
    Does: Configure with epoch and sequence at the int64 maximum.
    Passes: accepted, cluster set; the replay and (max-1, max) are fenced.
    """
    walker = await p.idle()
    binding = p.binding()
    (await walker.try_configure(binding, walker.at(INT64_MAX, INT64_MAX))).must_be_ok()
    now = await walker.until(CONFIGURED)
    check(now.cluster == binding.cluster, f"CONFIGURED with cluster {now.cluster!r}")
    for epoch, sequence in ((INT64_MAX, INT64_MAX), (INT64_MAX - 1, INT64_MAX)):
        (await walker.try_configure(binding, walker.at(epoch, sequence))).must_be_fenced()


@row("B213")
async def large_blob(p: Probe) -> None:
    """A blob of 3 MiB is delivered or refused before anything moves.

    Why: a machine that moved and then refused its bootstrap data is lost.
    Does: Configure with a 3 MiB blob.
    Passes: OK, or INVALID_ARGUMENT or RESOURCE_EXHAUSTED with the machine IDLE.
    """
    await whole_or_not_at_all(p, Binding(blob=b"x" * (3 << 20)), TOO_LARGE)


@row("B214")
async def rounds_have_ids_of_their_own(p: Probe) -> None:
    """Every round has an operation id of its own.

    Why: an id that comes back makes an old answer look like a new one.
    Does: Create, Configure, Drain, Configure, Drain.
    Passes: five distinct ids; repeating the last Drain returns its id.
    """
    walker = p.slot()
    ids = [(await walker.create()).operation_id]
    for _ in range(2):
        ids.append((await walker.configure(p.binding())).operation_id)
        ids.append((await walker.drain()).operation_id)
    check(all(ids) and len(set(ids)) == 5, f"five operations have the ids {ids}")
    again = (await walker.try_drain()).must_be_ok().operation_id
    check(again == ids[-1], f"the last Drain had id {ids[-1]!r}, its repeat {again!r}")


@row("B215", slots=0, also=(Profile.CLOUD,))
async def unknown_machine_for_get_and_delete(p: Probe) -> None:
    """Get and Delete do not know a machine that does not exist.

    Why: NOT_FOUND is how a shard forgets a slot.
    Does: Get and Delete on an unknown id.
    Passes: NOT_FOUND; Delete may be UNIMPLEMENTED.
    """
    ghost = p.machine(f"{UNKNOWN}-{p.shard()}")
    got = await p.get(ghost.id)
    check(got is Code.NOT_FOUND, f"Get of an unknown machine gave {got}")
    deleted = await ghost.try_delete()
    if p.owned:
        deleted.must_be(Code.UNIMPLEMENTED, why="owned hardware is not given back")
    else:
        deleted.must_be(Code.NOT_FOUND, Code.UNIMPLEMENTED)
    check(await p.get(ghost.id) is Code.NOT_FOUND, "the unknown machine exists after Delete")


async def whole_or_not_at_all(
    p: Probe, binding: Binding, refusals: tuple[grpc.StatusCode, ...]
) -> None:
    """Configure either binds with all it was given, or leaves the machine IDLE and clean."""
    walker = await p.idle()
    answer = await walker.try_configure(binding)
    if answer.ok:
        await walker.until(CONFIGURED)
        check(
            binding.shown_by(await walker.see()), "the record does not carry the binding verbatim"
        )
    else:
        answer.must_be(*refusals)
        now = await p.stays(walker.id)
        check(now.state == IDLE, f"refused, but the machine is {word(now.state)}")
        is_clean(now)

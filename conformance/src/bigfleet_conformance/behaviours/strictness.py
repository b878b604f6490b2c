"""What a lenient provider gets away with: filters beside caps and cursors, tokens that are zero in
part, ids of a second life (B2033 to B2036)."""

import grpc

from bigfleet_conformance.behaviours.listing import ids_of, no_doubles, revision
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Code, Token
from bigfleet_conformance.harness.oracles import CONFIGURED, IDLE, SPECULATIVE, word
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.registry import Area, Capability, Chapter, Profile

row = Chapter(Area.ADDITIONAL, section="3.3").row
INT32_MIN = -(2**31)


@row("B2033", slots=2)
async def filters_come_first(p: Probe) -> None:
    """A state filter holds beside a cap and beside a cursor.

    Why: a page that was cut before it was filtered looks as if there were no such machine.
    Does: List(CONFIGURED) with caps 1 and 2 while a machine is CONFIGURED; with deltas, a machine
    that became IDLE since the cursor is asked for as IDLE and as SPECULATIVE.
    Passes: each page has at least one machine, at most the cap, all CONFIGURED; the delta of IDLE
    holds the machine and only IDLE ones, that of SPECULATIVE only SPECULATIVE ones.
    """
    await p.bound()
    for cap in (1, 2):
        answer = await p.list([CONFIGURED], most=cap)
        found = no_doubles(answer, f"List(CONFIGURED) of {cap}")
        check(found, f"List(CONFIGURED) with max_results {cap} is empty; a machine is CONFIGURED")
        check(len(found) <= cap, f"max_results {cap} gave {len(found)} machines")
        strangers = {word(m.state) for m in answer.machines if m.state != CONFIGURED}
        check(not strangers, f"List(CONFIGURED) of {cap} has machines that are {strangers}")
    if not p.claims(Capability.SINCE_REVISION):
        return
    before = await revision(p)
    walker = await p.idle()
    for state in (IDLE, SPECULATIVE):
        delta = await p.list([state], since=before)
        strangers = {word(m.state) for m in delta.machines if m.state != state}
        check(not strangers, f"the delta of {word(state)} has machines that are {strangers}")
        here = walker.id in ids_of(delta)
        check(here == (state == IDLE), f"the delta of {word(state)} is wrong about the machine")


@row("B2034", slots=0)
async def negative_caps_are_refused_or_no_caps(p: Probe) -> None:
    """A negative max_results is refused, or is no cap.

    Why: a page that was cut by a negative number looks like the whole inventory.
    Does: List with max_results -1 and with the smallest number there is.
    Passes: INVALID_ARGUMENT, or the same machines as without a cap.
    """
    for cap in (-1, INT32_MIN):
        answer = await p.try_list(most=cap)
        if isinstance(answer, grpc.StatusCode):
            check(answer is Code.INVALID_ARGUMENT, f"List of {cap} machines gave {answer.name}")
            continue
        missing = {m.id for m in await p.sweep()} - set(ids_of(answer))
        check(not missing, f"List with max_results {cap} lacks {len(missing)} machines")


@row("B2035", also=(Profile.CLOUD,), needs=(Capability.DELETE,), section="3.5")
async def a_second_life_has_ids_of_its_own(p: Probe) -> None:
    """Create and Delete of a second life have new ids.

    Why: an id that comes back makes an old answer look like a new one.
    Does: Create, Delete, Create, Delete; the last Delete repeated.
    Passes: four distinct ids; the repeat has the id of the second Delete.
    """
    walker = p.slot()
    ids = [
        (await walker.create()).operation_id,
        (await walker.delete()).operation_id,
        (await walker.create()).operation_id,
        (await walker.delete()).operation_id,
    ]
    check(len(set(ids)) == 4, f"two of the four ids are equal: {ids}")
    again = (await walker.try_delete()).must_be_ok().operation_id
    check(again == ids[-1], f"the repeated Delete has {again!r}, its original {ids[-1]!r}")


@row("B2036", slots=2, section="7.2")
async def only_the_whole_zero_token_is_free(p: Probe) -> None:
    """A token that is zero only in part is fenced like any other.

    Why: a program that finds a token that passes the fence can send it forever.
    Does: a named shard sends (0,0) twice, then (0,1); a shard without a name sends (5,5) twice,
    then (5,6).
    Passes: accepted, fenced, accepted. On an mTLS target: the nameless ones PERMISSION_DENIED.
    """
    named = p.slot()
    (await named.try_create(named.at(0, 0))).must_be_ok()
    (await named.try_create(named.at(0, 0))).must_be_fenced()
    (await named.try_create(named.at(0, 1))).must_be_ok()
    other = p.slot()
    first, second, third = [
        await other.try_create(Token("", epoch, sequence))
        for epoch, sequence in ((5, 5), (5, 5), (5, 6))
    ]
    if p.setting.mutual_tls:
        for answer in (first, second, third):
            answer.must_be(Code.PERMISSION_DENIED)
        return
    first.must_be_ok()
    second.must_be_fenced()
    third.must_be_ok()

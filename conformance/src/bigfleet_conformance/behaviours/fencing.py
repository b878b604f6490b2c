"""Fencing: per shard and machine, strictly rising, before everything else (B3xx)."""

from collections.abc import Awaitable, Callable

from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import ZERO, Answer, Code, Token
from bigfleet_conformance.harness.oracles import FenceOracle, word
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Area, Capability, Chapter

row = Chapter(Area.FENCING, section="7.2").row


async def judged(walker: Walker, oracle: FenceOracle, shard: str, epoch: int, seq: int) -> None:
    """One repeated Create with a token, judged by the oracle of its pair."""
    answer = await walker.try_create(Token(shard, epoch, seq))
    if oracle.accepts(shard, walker.id, epoch, seq):
        answer.must_be_ok()
    else:
        answer.must_be_fenced()


@row("B301", slots=0)
async def fence_comes_before_existence(p: Probe) -> None:
    """The fence is asked before existence.

    Why: an old shard must hear that it is old, whatever it asks for.
    Does: Create (5,5) on a machine that does not exist; all four mutations with (1,1); then (9,9).
    Passes: NOT_FOUND; all four fenced (Delete may be UNIMPLEMENTED); NOT_FOUND.
    """
    ghost = p.machine(f"no-such-machine-{p.shard()}")
    (await ghost.try_create(ghost.at(5, 5))).must_be(Code.NOT_FOUND)
    old = ghost.at(1, 1)
    for answer in (
        await ghost.try_create(old),
        await ghost.try_configure(p.binding(), old),
        await ghost.try_drain(old),
    ):
        answer.must_be_fenced()
    deleted = await ghost.try_delete(old)
    if p.owned:
        deleted.must_be(Code.UNIMPLEMENTED, why="owned hardware is not given back")
    elif p.claims(Capability.DELETE):
        deleted.must_be_fenced()
    else:
        deleted.must_be(Code.FAILED_PRECONDITION, Code.UNIMPLEMENTED)
    (await ghost.try_create(ghost.at(9, 9))).must_be(Code.NOT_FOUND)


@row("B302", slots=4)
async def fence_is_per_pair(p: Probe) -> None:
    """Every pair of shard and machine has a mark of its own.

    Why: workers of one shard send without a lock; tokens of different machines arrive out of order.
    Does: three shards on several machines; then one shard with A at (5,30) and B at (5,7).
    Passes: no fencing across shards or machines; each pair's own equal, older or lower-epoch token
    is fenced.
    """
    a, b, c, d = p.slot(), p.slot(), p.slot(), p.slot()
    oracle = FenceOracle()
    shards = [p.shard() for _ in range(3)]
    for walker in (a, b):
        for shard, epoch, seq in zip(shards, (9, 2, 1), (90, 5, 1), strict=True):
            await judged(walker, oracle, shard, epoch, seq)
    one = p.shard()
    await judged(c, oracle, one, 5, 30)
    await judged(d, oracle, one, 5, 7)
    for walker, seq in ((c, 30), (d, 7)):
        for epoch, number in ((5, seq), (5, seq - 1), (4, seq + 100), (5, seq + 1), (6, 0)):
            await judged(walker, oracle, one, epoch, number)


@row("B303")
async def fence_orders_by_epoch_then_sequence(p: Probe) -> None:
    """Tokens are ordered by epoch, then sequence.

    Why: a restarted shard counts from 1 again, in a higher epoch.
    Does: a table of 16 tokens around the mark (2,5), with epoch rises to sequence 0.
    Passes: accepted and fenced exactly by (epoch, sequence) order.
    """
    walker, oracle, shard = p.slot(), FenceOracle(), p.shard()
    table = (
        *((2, 5), (2, 5), (2, 4), (1, 9), (1, 5), (2, 6), (2, 5), (2, 6)),
        *((3, 0), (3, 0), (2, 99), (3, 1), (4, 0), (3, 50), (4, 0), (4, 1)),
    )
    for epoch, sequence in table:
        await judged(walker, oracle, shard, epoch, sequence)


@row("B305")
async def stale_calls_do_not_disturb_reads(p: Probe) -> None:
    """Stale mutations move nothing, and reads know no fence.

    Why: a stopped shard still looks; a stale one must not touch.
    Does: four stale mutations between Get, List and filtered List.
    Passes: every read answers; the machine has not moved.
    """
    walker = await p.bound()
    before = await walker.see()
    old = walker.at(1, 1)

    async def look() -> None:
        await walker.see()
        await p.listed_once(walker.id)
        found = [m.id for m in (await p.list([before.state])).machines]
        check(walker.id in found, f"the machine is missing in List({word(before.state)})")

    await look()
    stale: list[Callable[[], Awaitable[Answer]]] = [
        lambda: walker.try_create(old),
        lambda: walker.try_configure(p.binding("stale-cluster"), old),
        lambda: walker.try_drain(old),
    ]
    for send in stale:
        (await send()).must_be_fenced()
        await look()
    deleted = await walker.try_delete(old)
    if deleted.code is not Code.UNIMPLEMENTED or p.claims(Capability.DELETE):
        deleted.must_be_fenced()
    await look()
    await p.untouched(before)


@row("B306")
async def fence_comes_before_the_repeat_of_configure(p: Probe) -> None:
    """A stale repeat of Configure is fenced, a fresh one gets the first id.

    Why: an old shard must not learn ids of the new one.
    Does: Configure (5,5); again with (1,1); again with (5,6).
    Passes: fenced; then OK with the first id.
    """
    walker = await p.idle()
    binding = p.binding()
    first = (await walker.try_configure(binding, walker.at(5, 5))).must_be_ok().operation_id
    check(first, "Configure answered with an empty operation id")
    (await walker.try_configure(binding, walker.at(1, 1))).must_be_fenced()
    again = (await walker.try_configure(binding, walker.at(5, 6))).must_be_ok().operation_id
    check(again == first, f"Configure had id {first!r}, its repeat {again!r}")


@row("B307")
async def fence_comes_before_the_repeat_of_drain(p: Probe) -> None:
    """A stale repeat of Drain is fenced, a fresh one gets the first id.

    Why: the same as for Configure, on the way back.
    Does: Drain (5,5); again with (1,1); again with (5,6).
    Passes: fenced; then OK with the first id, which is not Create's.
    """
    walker = p.slot()
    created = (await walker.create()).operation_id
    await walker.configure(p.binding())
    first = (await walker.try_drain(walker.at(5, 5))).must_be_ok().operation_id
    check(first, "Drain answered with an empty operation id")
    check(first != created, f"Drain and Create share the id {first!r}")
    (await walker.try_drain(walker.at(1, 1))).must_be_fenced()
    again = (await walker.try_drain(walker.at(5, 6))).must_be_ok().operation_id
    check(again == first, f"Drain had id {first!r}, its repeat {again!r}")


@row("B308", slots=2)
async def zero_token_is_not_fenced(p: Probe) -> None:
    """The all-zero token is not fenced.

    Why: tools without a shard identity exist; on mTLS no caller is anonymous.
    Does: Create twice with the all-zero token, and once on another machine.
    Passes: all accepted. On an mTLS target: all PERMISSION_DENIED.
    """
    a, b = p.slot(), p.slot()
    answers: list[Answer] = []
    for walker in (a, a, b):
        answers.append(await walker.try_create(ZERO))
    for answer in answers:
        if p.setting.mutual_tls:
            answer.must_be(Code.PERMISSION_DENIED)
        else:
            answer.must_be_ok()


@row("B309")
async def one_shard_one_life(p: Probe) -> None:
    """A shard with rising sequence is never fenced, its first token for ever.

    Why: this is every shard's daily life.
    Does: one shard: Create and two rounds of Configure, Drain, rising sequence.
    Passes: all accepted; the first token is now fenced.
    """
    walker = p.slot()
    await walker.create()
    for _ in range(2):
        await walker.configure(p.binding())
        await walker.drain()
    (await walker.try_create(walker.at(1, 1))).must_be_fenced()


@row("B310")
async def a_new_life_keeps_the_mark(p: Probe) -> None:
    """A new life or round does not reset the mark.

    Why: a message that was under way for a minute must not hit the slot's next user.
    Does: with Delete: Create, Delete, Create in epoch 1, then the old tokens, then (2,1). Without:
    Create, Configure, Drain, Configure in epoch 1, then the same.
    Passes: old tokens fenced, (2,1) accepted.
    """
    walker = p.slot()
    lives = p.claims(Capability.DELETE)

    async def last(token: Token) -> Answer:
        if lives:
            return await walker.try_create(token)
        return await walker.try_configure(p.binding(), token)

    await walker.create()
    if lives:
        await walker.delete()
        await walker.create()
    else:
        await walker.configure(p.binding())
        await walker.drain()
        await walker.configure(p.binding())
    for sequence in range(1, walker.sequence + 1):
        (await last(walker.at(1, sequence))).must_be_fenced()
    (await last(walker.at(2, 1))).must_be_ok()


@row("B311")
async def a_failed_operation_moves_the_mark(p: Probe) -> None:
    """An operation that is refused after the fence has moved the mark.

    Why: what came first must stay first, whatever became of it.
    Does: Drain (5,5) on SPECULATIVE; Create (5,4); Create (5,6).
    Passes: plain refusal; fenced; OK.
    """
    walker = p.slot()
    (await walker.try_drain(walker.at(5, 5))).must_be_refused()
    (await walker.try_create(walker.at(5, 4))).must_be_fenced()
    (await walker.try_create(walker.at(5, 6))).must_be_ok()


@row("B312")
async def random_tokens(p: Probe) -> None:
    """200 random tokens near the mark are judged right.

    Why: tables miss orders that their author did not think of.
    Does: 200 seeded random tokens near the mark.
    Passes: equals the oracle at every step.
    """
    walker, oracle, shard = p.slot(), FenceOracle(), p.shard()
    epoch, sequence = 3, 10
    for _ in range(200):
        mark = oracle.marks.get((shard, walker.id), (epoch, sequence))
        token = (max(0, mark[0] + p.random.choice((-1, 0, 0, 0, 1))), 0)
        token = (token[0], max(0, mark[1] + p.random.randint(-3, 3)))
        await judged(walker, oracle, shard, *token)

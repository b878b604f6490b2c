"""Properties and fuzzing: random walks against oracles, replayable from the seed (B12xx)."""

from bigfleet_conformance.behaviours.metadata import same
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import Answer, Binding, Code, Token
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DELETING,
    DRAINING,
    IDLE,
    SPECULATIVE,
    FenceOracle,
    word,
)
from bigfleet_conformance.harness.probe import Probe, is_clean
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import Area, Capability, Chapter

row = Chapter(Area.PROPERTIES, section="7.2").row
# kind -> (from, by way of, to)
MOVES = {
    "create": (SPECULATIVE, CREATING, IDLE),
    "configure": (IDLE, CONFIGURING, CONFIGURED),
    "drain": (CONFIGURED, DRAINING, IDLE),
    "delete": (IDLE, DELETING, SPECULATIVE),
}


def judge_fence(answer: Answer, accepted: bool) -> None:
    """Compare an answer with the oracle's word."""
    if accepted:
        answer.must_be_ok()
    else:
        answer.must_be_fenced()


@row("B1201")
async def biased_tokens(p: Probe) -> None:
    """240 biased tokens of one shard are judged right.

    Why: replays and steps back are what a network makes of a retry.
    Does: 240 biased tokens on one shard and machine, replays and steps below the mark included.
    Passes: equals the oracle at every step; a token with a negative part may be INVALID_ARGUMENT
    with the mark unmoved.
    """
    walker, oracle, shard = p.slot(), FenceOracle(), p.shard()
    used: list[tuple[int, int]] = [(1, 5)]
    for _ in range(240):
        epoch, sequence = used[-1]
        kind = p.random.randrange(6)
        if kind == 0:
            epoch, sequence = p.random.choice(used)
        elif kind == 1:
            sequence -= p.random.randint(0, 4)
        elif kind == 2:
            epoch, sequence = epoch + 1, p.random.randint(0, 3)
        elif kind == 3:
            epoch, sequence = max(0, epoch - 1), sequence + p.random.randint(1, 9)
        else:
            sequence += p.random.randint(1, 3)
        answer = await walker.try_create(Token(shard, epoch, sequence))
        if min(epoch, sequence) < 0:
            answer.must_be(Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION)
            continue
        accepted = oracle.accepts(shard, walker.id, epoch, sequence)
        judge_fence(answer, accepted)
        if accepted:
            used.append((epoch, sequence))


@row("B1202")
async def random_maps(p: Probe) -> None:
    """Random metadata comes back, and goes.

    Why: some client sends bytes that no table lists.
    Does: 20 random UTF-8 maps of 0-11 keys bound to one machine in turn.
    Passes: Get and List equal the map; nothing left after each Drain.
    """
    walker = await p.idle()
    for turn in range(2 if p.pace.few_rounds else 20):
        wanted = {
            f"{n}-{random_text(p, 12)}": random_text(p, 40) for n in range(p.random.randint(0, 11))
        }
        # Early rounds hold what careless code loses first, whatever the seed says.
        if turn < 2:
            wanted |= {"empty": "", "spaces": f"  {turn} ", f"only-{turn}": "x"}
        binding = Binding(f"map-{turn}", wanted)
        await walker.configure(binding)
        same(await walker.see(), wanted, "Get")
        same(await p.listed_once(walker.id), wanted, "List")
        await walker.drain()
        is_clean(await walker.see())


def random_text(p: Probe, longest: int) -> str:
    """Text of valid code points from every corner of Unicode."""
    corners = ((0x20, 0x7E), (0x20, 0x7E), (0x00, 0x1F), (0x80, 0x7FF), (0x1F300, 0x1F6FF))
    return "".join(
        chr(p.random.randint(*p.random.choice(corners)))
        for _ in range(p.random.randint(0, longest))
    )


@row("B1203", slots=5)
async def random_walks(p: Probe) -> None:
    """Random walks stay on the graph.

    Why: the matrix of states and calls has corners that no example visits.
    Does: five walks of nine random mutations.
    Passes: legal ones settle; at the target either answer; illegal ones are plain refusals without
    a move (80 ms); without Delete always UNIMPLEMENTED.
    """
    for _ in range(2 if p.pace.few_rounds else 5):
        walker, state = p.slot(), int(SPECULATIVE)
        for _ in range(9):
            state = await step(p, walker, state, p.random.choice(tuple(MOVES)))


async def step(p: Probe, walker: Walker, state: int, kind: str) -> int:
    """One random mutation; the state afterwards."""
    start, _, target = MOVES[kind]
    answer = await send(p, walker, kind)
    if kind == "delete" and not p.claims(Capability.DELETE):
        answer.must_be(Code.UNIMPLEMENTED)
        return state
    if state == start:
        answer.must_be_ok()
        await walker.until(target)
        return target
    if state == target and answer.ok:
        now = await p.stays(walker.id, 0.08)
        check(now.state == state, f"a {kind} at its target moved it to {word(now.state)}")
        return state
    answer.must_be_refused()
    now = await p.stays(walker.id, 0.08)
    check(now.state == state, f"an illegal {kind} moved {word(state)} to {word(now.state)}")
    return state


async def send(p: Probe, walker: Walker, kind: str) -> Answer:
    """A mutation by its name."""
    if kind == "create":
        return await walker.try_create()
    if kind == "configure":
        return await walker.try_configure(p.binding())
    if kind == "drain":
        return await walker.try_drain()
    return await walker.try_delete()


@row("B1204", slots=4)
async def tokens_of_many_pairs(p: Probe) -> None:
    """Marks of many pairs do not mix.

    Why: a fence that is too wide stops healthy shards; one that is too narrow stops none.
    Does: 200 tokens over three shards and four machines.
    Passes: fenced exactly when the oracle of that pair says so; a fresh shard's (1,1) is accepted.
    """
    walkers, shards = [p.slot() for _ in range(4)], [p.shard() for _ in range(3)]
    oracle = FenceOracle()
    for _ in range(200):
        walker, shard = p.random.choice(walkers), p.random.choice(shards)
        mark = oracle.marks.get((shard, walker.id), (2, 5))
        epoch = max(0, mark[0] + p.random.choice((-1, 0, 0, 0, 0, 1)))
        sequence = max(0, mark[1] + p.random.randint(-2, 3))
        answer = await walker.try_create(Token(shard, epoch, sequence))
        judge_fence(answer, oracle.accepts(shard, walker.id, epoch, sequence))
    for walker in walkers:
        (await walker.try_create(Token(p.shard(), 1, 1))).must_be_ok()


@row("B1205", slots=1)
async def bad_arguments(p: Probe) -> None:
    """Bad arguments are named as such, never as stale.

    Why: fenced stops a shard; a bug of the caller must not.
    Does: empty and unknown ids, negative grace, 400-800 metadata keys, 64-128 KiB blobs, random
    tokens.
    Passes: INVALID_ARGUMENT or NOT_FOUND where due, RESOURCE_EXHAUSTED allowed for what is too
    large, and never fenced.
    """
    for _ in range(6):
        token = Token(p.shard(), p.random.randint(1, 2**40), p.random.randint(1, 2**40))
        unknown, ghost = "", f"ghost-{p.random.getrandbits(64):x}"
        for machine, code in ((unknown, Code.INVALID_ARGUMENT), (ghost, Code.NOT_FOUND)):
            for answer in (
                await p.create(machine, token),
                await p.configure(machine, Token(p.shard(), 1, 1), p.binding()),
                await p.drain(machine, Token(p.shard(), 1, 1), p.random.randint(0, 9)),
            ):
                answer.must_be(code)
    walker = await p.idle()
    large = {f"k{n}": "v" * 16 for n in range(p.random.randint(400, 800))}
    blob = p.random.randbytes(p.random.randint(64, 128) * 1024)
    bound = await walker.try_configure(Binding("large", large, blob))
    if bound.ok:
        same(await walker.until(CONFIGURED), large, "Get")
        drained = await walker.try_drain(grace=-p.random.randint(1, 100))
        if not drained.ok:
            drained.must_be(Code.INVALID_ARGUMENT)
    else:
        bound.must_be(Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED)

"""Corners of the contract: revisions, bad arguments, walks, negative tokens (B2009, B2010, B2019
...), and what an observable provider shows of itself (B2026)."""

import time
from collections.abc import Awaitable, Callable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.behaviours.listing import ids_of, no_doubles, revision
from bigfleet_conformance.errors import check
from bigfleet_conformance.harness.calls import ZERO, Answer, Code
from bigfleet_conformance.harness.link import ChannelLink, open_channel
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    IDLE,
    SPECULATIVE,
    TRANSITIONAL,
    word,
)
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.registry import (
    Alone,
    Area,
    Capability,
    Chapter,
    LaneName,
    Profile,
)
from bigfleet_conformance.runner.source import BootPlan

row = Chapter(Area.ADDITIONAL, section="3.5").row
observable_row = Chapter(Area.ADDITIONAL, section="0.4", profiles=(Profile.OBSERVABLE,)).row
SERVICE = "bigfleet.v1alpha1.CapacityProvider"
SERVING = health_pb2.HealthCheckResponse.SERVING
CALL_S = 10.0


@row("B2009", needs=(Capability.SINCE_REVISION,))
async def every_change_has_a_revision(p: Probe) -> None:
    """Every change has a revision of its own.

    Why: a reader that sees the same revision believes that nothing happened.
    Does: Create, Configure, Drain, a List after each ack and each settle.
    Passes: the revision differs from every earlier one each time something changed; each delta
    holds the machine in its current state.
    """
    walker = p.slot()
    seen, state = [await revision(p)], int(SPECULATIVE)

    async def look() -> None:
        """If the machine moved since the last look, revision and delta say so."""
        nonlocal state
        answer = await p.list()
        now = next((int(m.state) for m in answer.machines if m.id == walker.id), 0)
        if now == state:
            return
        check(answer.revision not in seen, f"it became {word(now)} without a new revision")
        delta = [m for m in (await p.list(since=seen[-1])).machines if m.id == walker.id]
        check(delta, f"the machine became {word(now)}, and the delta lacks it")
        resting = now not in TRANSITIONAL
        check(
            delta[0].state == now or not resting,
            f"the delta shows {word(delta[0].state)}, List {word(now)}",
        )
        seen.append(answer.revision)
        state = now

    moves: list[tuple[Callable[[], Awaitable[Answer]], int]] = [
        (walker.try_create, IDLE),
        (lambda: walker.try_configure(p.binding()), CONFIGURED),
        (walker.try_drain, IDLE),
    ]
    for send, target in moves:
        (await send()).must_be_ok()
        await look()
        await walker.until(target)
        await look()


@row("B2010", slots=0)
async def delete_of_nothing(p: Probe) -> None:
    """Delete with an empty id is INVALID_ARGUMENT, offered or not.

    Why: a bad argument is the caller's bug, whatever the provider can do.
    Does: Delete with an empty id, with fresh, stale and zero tokens.
    Passes: INVALID_ARGUMENT, also where Delete is not offered.
    """
    unknown = p.machine("")
    tokens = [unknown.at(5, 5), unknown.at(5, 5), unknown.at(1, 1)]
    if not p.setting.mutual_tls:
        tokens.append(ZERO)
    for token in tokens:
        (await unknown.try_delete(token)).must_be(Code.INVALID_ARGUMENT)


@row("B2019", slots=9, needs=(Capability.CONTINUATION,), alone=Alone.LANE)
async def walks_are_complete(p: Probe) -> None:
    """A walk in pages misses nothing, while machines change.

    Why: a fleet does not stand still to be counted.
    Does: walk with caps 1, 7 and 500, machines changing meanwhile.
    Passes: the union has every machine that was there throughout, no id twice among the unchanged;
    the last cursor is a delta cursor that misses no change since the walk began.
    """
    for cap in (1, 7, 500):
        await walk(p, cap, [p.slot() for _ in range(3)])


async def walk(p: Probe, cap: int, changing: list[Walker]) -> None:
    """One walk; a machine is changed after the first page, in the middle and near the end."""
    everything = no_doubles(await p.list(), "List")
    moving = {walker.id for walker in changing}
    waiting = list(changing)
    pages, cursor, seen = 0, b"", dict[str, int]()
    counts: dict[str, int] = {}
    step = max(1, len(everything) // cap // (len(changing) + 1))
    while True:
        page = await p.list(most=cap, since=cursor)
        check(len(page.machines) <= cap, f"a page of {cap} has {len(page.machines)} machines")
        for machine in page.machines:
            seen[machine.id] = machine.state
            counts[machine.id] = counts.get(machine.id, 0) + 1
        cursor = page.revision
        pages += 1
        if waiting and pages % step == 0:
            await waiting.pop().create()
        if not page.machines:
            break
        check(pages <= 2 * len(everything) + 20, "the walk does not end")
    missing = everything - moving - seen.keys()
    check(not missing, f"the walk in pages of {cap} lost {len(missing)} machines")
    twice = [id for id, count in counts.items() if count > 1 and id not in moving]
    check(not twice, f"{len(twice)} unchanged machines came twice")
    for walker in waiting:
        await walker.create()
    delta = {m.id: int(m.state) for m in (await p.list(since=cursor)).machines}
    for walker in changing:
        latest = delta.get(walker.id, seen.get(walker.id))
        check(latest == IDLE, f"the walk and its delta missed that {walker.id} became IDLE")


@row("B2039", slots=4, section="7.2")
async def negative_tokens_are_compared(p: Probe) -> None:
    """A token with a negative part is compared like any other.

    Why: a provider with a second rule for some numbers fences a shard that is right.
    Does: Create with (-1,9), (2,-3) and (-7,-3) from fresh shards on fresh machines; on the last
    one (-7,-4), (-7,-2) and (-6,-9); then mark (3,3), and (-1,9), (3,-1), (-7,-3) and (3,4).
    Passes: each first token is accepted; after it exactly the tokens that are newer, by epoch and
    then by sequence, are accepted, and the others are fenced.
    """
    for epoch, sequence in ((-1, 9), (2, -3), (-7, -3)):
        walker = p.slot()
        (await walker.try_create(walker.at(epoch, sequence))).must_be_ok()
        await walker.until(IDLE)
    (await walker.try_create(walker.at(-7, -4))).must_be_fenced()
    (await walker.try_create(walker.at(-7, -2))).must_be_ok()
    (await walker.try_create(walker.at(-6, -9))).must_be_ok()
    marked = p.slot()
    (await marked.try_create(marked.at(3, 3))).must_be_ok()
    for epoch, sequence in ((-1, 9), (3, -1), (-7, -3)):
        (await marked.try_create(marked.at(epoch, sequence))).must_be_fenced()
    (await marked.try_create(marked.at(3, 4))).must_be_ok()
    await marked.until(IDLE)


@row("B2025", slots=0)
async def unknown_states_match_nothing(p: Probe) -> None:
    """A state that does not exist is refused, or matches nothing.

    Why: a filter that is ignored answers another question.
    Does: List with a state number outside the enum, alone and beside SPECULATIVE.
    Passes: INVALID_ARGUMENT; or no machine for the number alone, and beside SPECULATIVE the
    machines that are SPECULATIVE.
    """
    for states in ([99], [99, SPECULATIVE], [SPECULATIVE, 99]):
        answer = await p.try_list(states)
        if isinstance(answer, grpc.StatusCode):
            check(answer is Code.INVALID_ARGUMENT, f"List with states {states} gave {answer.name}")
            continue
        other = {word(m.state) for m in answer.machines if m.state not in states}
        check(not other, f"List with states {states} has machines that are {other}")
        if len(states) > 1:
            check(bool(answer.machines), f"List with states {states} lost the SPECULATIVE machines")


@observable_row("B2026", slots=0)
async def health_and_reflection(p: Probe) -> None:
    """Health says when a provider is useful, reflection what it is.

    Why: a chart waits for the one, a person asks the other.
    Does: health and reflection, and where the provider can be booted, health while it starts.
    Passes: `""` is SERVING as long as the process runs, the service once List shows the inventory
    and not before; reflection names the service.
    """
    assert isinstance(p.link, ChannelLink)
    await healthy(p.link.channel())
    check((await p.sweep()), "List is empty although the service is SERVING")
    await reflected(p.link.channel())
    if p.workshop.source is not None:
        await healthy_from_the_start(p)


async def health_of(channel: grpc.aio.Channel, service: str) -> int:
    """What health says of a service; 0 while nothing answers."""
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=service)
    answer = await stub.Check(request, timeout=CALL_S)
    return int(answer.status)


async def healthy(channel: grpc.aio.Channel) -> None:
    """Both names are SERVING."""
    for service in ("", SERVICE):
        try:
            status = await health_of(channel, service)
        except grpc.aio.AioRpcError as error:
            check(False, f"health of {service!r} answers {error.code().name}")
            raise
        check(status == SERVING, f"health of {service!r} is {status}, not SERVING")


async def reflected(channel: grpc.aio.Channel) -> None:
    """Reflection names the service."""
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    names: list[str] = []
    try:
        async for answer in stub.ServerReflectionInfo(iter([request]), timeout=CALL_S):
            names = [service.name for service in answer.list_services_response.service]
            break
    except grpc.aio.AioRpcError as error:
        check(False, f"reflection answers {error.code().name}")
    check(SERVICE in names, f"reflection names {names}, not {SERVICE}")


async def healthy_from_the_start(p: Probe) -> None:
    """While a provider starts, SERVING comes with the inventory and not before."""
    instance = await p.workshop.boot_instance(BootPlan(LaneName.CORE, 10, 256, name="health"))
    channel = open_channel(instance.address)
    link = ChannelLink(instance.address)
    try:
        ends = time.monotonic() + p.pace.settle_s
        while True:
            try:
                ready = await health_of(channel, SERVICE) == SERVING
            except grpc.aio.AioRpcError:
                ready = False
            if ready:
                break
            check(time.monotonic() < ends, "the service is not SERVING although the port is open")
        answer = await link.stub().List(pb.ListFilter(), timeout=CALL_S)
        check(len(ids_of(answer)) >= 256, "SERVING, but List does not show the inventory yet")
    finally:
        await channel.close()
        await link.close()
        await instance.kill()

"""Many Creates against a cloud that throttles, on virtual time: what the limiter is for."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from bigfleet_providerkit import Bucket, CallRate, KitOptions, State, Timeouts, VirtualClock
from bigfleet_providerkit.kit import Kit
from kitworld import SPEC, World, begin, slots
from roughcloud import OPS, Idempotency, RoughCloud, RoughSubstrate, classify

POLL = 2.0


async def a_storm(
    machines: int,
    calls: tuple[str | CallRate, ...],
    idempotency: Idempotency,
    worse: Callable[[RoughCloud], None],
    timeouts: Timeouts | None = None,
) -> tuple[World, RoughCloud]:
    """A provider with so many free slots, on a cloud that from now on makes trouble."""
    clouds: list[RoughCloud] = []

    async def opened(options: KitOptions, kit: Kit) -> RoughSubstrate:
        assert isinstance(kit.clock, VirtualClock)
        clouds.append(RoughCloud(kit.clock, random.Random(11), idempotency))
        return RoughSubstrate(kit, clouds[0])

    spec = replace(
        SPEC, open=opened, classify=classify, calls=calls, mix=(Bucket(slots()),),
        timeouts=timeouts or SPEC.timeouts, poll_interval=POLL,
    )  # fmt: skip
    w = await begin(spec, use_fake_backend=False, seed_count=machines, orphan_grace=0)
    worse(clouds[0])
    return w, clouds[0]


async def all_created(w: World) -> float:
    """Create every machine at once; the virtual seconds until the last one has ended."""
    began = w.clock.monotonic()
    for machine in await w.shard.machines(State.SPECULATIVE):
        await w.shard.create(machine.id)
    await w.clock.until(lambda: not w.running.backend.ledger.work, 3600)
    return w.clock.monotonic() - began


def endings(w: World) -> Counter[str]:
    """States, and for failed machines the first word of the reason."""
    return Counter(
        record.last_error.split(":")[0] if record.state is State.FAILED else record.state.word
        for record in w.running.backend.ledger.inventory
    )


def hosts_without_machine(w: World, cloud: RoughCloud) -> set[str]:
    """Hosts that are paid for and belong to no record."""
    return set(cloud.hosts) - {record.host for record in w.running.backend.ledger.inventory}


def five_per_cent_throttled(cloud: RoughCloud) -> None:
    """One call in twenty is throttled, half of them with Retry-After 1 s; 2 % find no stock."""
    cloud.latency, cloud.throttle, cloud.stock_out = 0.05, 0.05, 0.02


async def test_a_thousand_creates_survive_random_throttling() -> None:
    calls = tuple(CallRate((op,), 50.0) for op in OPS)
    w, cloud = await a_storm(1000, calls, "token", five_per_cent_throttled)
    seconds = await all_created(w)
    ends = endings(w)
    assert set(ends) == {"Idle", "OutOfCapacity"}
    assert ends["OutOfCapacity"] < 60
    assert len(cloud.hosts) == cloud.bought == ends["Idle"]
    assert not hosts_without_machine(w, cloud)
    assert cloud.calls.total() <= 8 * 1000
    assert seconds <= 120
    await w.running.stop()


async def test_at_one_call_a_second_what_gets_no_turn_fails_with_nothing_launched() -> None:
    calls = (CallRate(OPS, rate=1.0),)
    w, cloud = await a_storm(1000, calls, "name", five_per_cent_throttled)
    for machine in await w.shard.machines(State.SPECULATIVE):
        await w.shard.create(machine.id)
    # Tries end when nine tenths of the time are used; healing begins 30 s later.
    await w.advance(280)
    ends = endings(w)
    assert ends["Throttled"] > 500
    assert ends["Idle"] > 100
    failed = [m for m in await w.shard.machines(State.FAILED) if "Throttled" in m.last_error]
    assert all("nothing was launched: " in m.last_error for m in failed)
    assert any("CreateHost got no turn" in m.last_error for m in failed)
    assert not {m.id for m in failed} & {host.machine_id for host in cloud.hosts.values()}
    await w.clock.until(lambda: not w.running.backend.ledger.work, 60)
    for _ in range(100):
        await w.advance(0.5)
    assert endings(w)["Throttled"] == 0
    assert len({host.machine_id for host in cloud.hosts.values()}) == cloud.bought
    await w.running.stop()


async def test_a_create_whose_calls_were_all_throttled_fails_with_nothing_launched_and_heals() -> (
    None
):
    def nothing_gets_through(cloud: RoughCloud) -> None:
        cloud.throttle = 1.0

    w, _ = await a_storm(1, (CallRate(OPS, rate=50.0),), "token", nothing_gets_through)
    (machine,) = await w.shard.machines(State.SPECULATIVE)
    await w.shard.create(machine.id)
    await w.clock.until(lambda: not w.running.backend.ledger.work, 3600)
    failed = await w.shard.get(machine.id)
    assert failed.last_error == "Throttled: nothing was launched: too many requests"
    assert w.running.backend.ledger.late == {}
    await w.advance(35)
    assert await w.shard.state(machine.id) is State.SPECULATIVE
    await w.running.stop()


async def test_a_rate_declared_fifty_times_too_high_is_found_and_fails_no_machine() -> None:
    def one_fiftieth(cloud: RoughCloud) -> None:
        cloud.latency, cloud.rate = 0.05, 1.0
        cloud.quota_burst = cloud.quota_left = 10.0

    calls = (CallRate(OPS, rate=50.0),)
    w, cloud = await a_storm(200, calls, "token", one_fiftieth, Timeouts(create=1200, delete=1200))
    await all_created(w)
    assert set(endings(w)) == {"Idle"}
    for machine in await w.shard.machines(State.IDLE):
        await w.shard.delete(machine.id)
    await w.clock.until(lambda: not w.running.backend.ledger.work, 3600)
    assert set(endings(w)) == {"Speculative"}
    assert not cloud.hosts
    assert cloud.throttles <= 0.25 * cloud.calls.total()
    await w.running.stop()


async def test_at_the_declared_rate_two_hundred_lives_beside_another_client_see_no_429() -> None:
    def shared_with_another(cloud: RoughCloud) -> None:
        # 3,600 calls an hour, 1 a second when they are used up; another client takes 0.2 a second.
        cloud.latency, cloud.rate = 0.05, 0.8
        cloud.quota_burst = cloud.quota_left = 3600.0

    calls = (CallRate(OPS, rate=1.0, burst=3600.0),)
    slow = Timeouts(create=1200, configure=1200, drain=1200, delete=1200)
    w, cloud = await a_storm(200, calls, "name", shared_with_another, slow)
    await all_created(w)
    assert set(endings(w)) == {"Idle"}
    for machine in await w.shard.machines(State.IDLE):
        await w.shard.configure(machine.id)
    await w.clock.until(lambda: not w.running.backend.ledger.work, 3600)
    assert set(endings(w)) == {"Configured"}
    for machine in await w.shard.machines(State.CONFIGURED):
        await w.shard.drain(machine.id, grace=1000)
    await w.clock.until(lambda: not w.running.backend.ledger.work, 3600)
    for machine in await w.shard.machines(State.IDLE):
        await w.shard.delete(machine.id)
    await w.clock.until(lambda: not w.running.backend.ledger.work, 3600)
    assert set(endings(w)) == {"Speculative"}
    assert cloud.throttles == 0
    assert cloud.calls.total() <= 8 * 200
    await w.running.stop()

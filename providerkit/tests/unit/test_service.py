"""The order of checks, the codes, idempotency and the acknowledgement."""

import asyncio

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import Bucket, CapacityType, Code, Refusal, State
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.service.identity import Peer
from bigfleet_providerkit.service.requests import MutationRequest
from bigfleet_providerkit.testing import Shard
from kitworld import SPEC, slots, world

BIGGEST = 2**63 - 1
HOSTILE_IDS = ["s" * 2_000_000, "s\0", "s\r\nforged log line", "../../etc/passwd", "a b", "s" * 254]
METALS = Bucket(slots("bare_metal"), share=1)


def request(
    kind: Kind, machine: str, shard: str = "s", epoch: int = 1, sequence: int = 1
) -> MutationRequest:
    """A mutation of any kind."""
    types = {
        Kind.CREATE: pb.CreateRequest, Kind.CONFIGURE: pb.ConfigureRequest,
        Kind.DRAIN: pb.DrainRequest, Kind.DELETE: pb.DeleteRequest,
    }  # fmt: skip
    made: MutationRequest = types[kind](
        machine_id=machine, shard_id=shard, shard_epoch=epoch, sequence_number=sequence
    )
    return made


async def refused(call: "asyncio.Future[object] | object") -> Refusal:
    with pytest.raises(Refusal) as caught:
        await call  # type: ignore[misc]
    return caught.value


@pytest.mark.parametrize("kind", Kind)
async def test_an_empty_id_is_invalid_and_moves_no_mark(kind: Kind) -> None:
    async with world() as w:
        assert (await refused(w.running.service.mutate(request(kind, "")))).code is (
            Code.INVALID_ARGUMENT
        )
        assert w.running.backend.ledger.fences.mark("s", "") is None


LOWEST = -(2**63)


@pytest.mark.parametrize("first", [(-1, 9), (2, -3), (LOWEST, LOWEST)])
async def test_negative_numbers_of_tokens_are_compared_like_any_others(
    first: tuple[int, int],
) -> None:
    async with world() as w:
        service, machine = w.running.service, await w.fresh()
        kind, (epoch, sequence) = Kind.CREATE, first
        await service.mutate(request(kind, machine, epoch=epoch, sequence=sequence))
        again = request(kind, machine, epoch=epoch, sequence=sequence)
        assert (await refused(service.mutate(again))).code is Code.FAILED_PRECONDITION
        await service.mutate(request(kind, machine, epoch=epoch, sequence=sequence + 1))
        lower = request(kind, machine, epoch=LOWEST, sequence=sequence)
        assert (await refused(service.mutate(lower))).code is Code.FAILED_PRECONDITION
        await service.mutate(request(kind, machine, epoch=epoch + 1, sequence=LOWEST))


async def test_a_negative_grace_is_invalid_before_the_fence() -> None:
    async with world() as w:
        machine = await w.configured()
        for grace in (-1, -5, -(2**63)):
            bad = pb.DrainRequest(
                machine_id=machine, grace_period_seconds=grace,
                shard_id="s", shard_epoch=9, sequence_number=9,
            )  # fmt: skip
            assert (await refused(w.running.service.mutate(bad))).code is Code.INVALID_ARGUMENT
        assert w.running.backend.ledger.fences.mark("s", machine) is None


@pytest.mark.parametrize("kind", Kind)
async def test_the_fence_stands_before_existence(kind: Kind) -> None:
    async with world() as w:
        service = w.running.service
        first = await refused(service.mutate(request(kind, "nowhere", epoch=5, sequence=5)))
        assert first.code is Code.NOT_FOUND
        again = await refused(service.mutate(request(kind, "nowhere", epoch=5, sequence=5)))
        assert again.code is Code.FAILED_PRECONDITION
        newer = await refused(service.mutate(request(kind, "nowhere", epoch=9, sequence=0)))
        assert newer.code is Code.NOT_FOUND


async def test_a_refused_operation_moves_the_mark() -> None:
    async with world() as w:
        machine, service = await w.fresh(), w.running.service
        wrong = await refused(service.mutate(request(Kind.DRAIN, machine, epoch=5, sequence=5)))
        assert (wrong.code, wrong.text) == (
            Code.INTERNAL,
            "drain is not possible in state Speculative",
        )
        older = await refused(service.mutate(request(Kind.CREATE, machine, epoch=5, sequence=4)))
        assert older.code is Code.FAILED_PRECONDITION
        await service.mutate(request(Kind.CREATE, machine, epoch=5, sequence=6))


async def test_the_largest_token_is_accepted_and_its_replay_fenced() -> None:
    async with world() as w:
        machine, service = await w.fresh(), w.running.service
        most = request(Kind.CREATE, machine, epoch=BIGGEST, sequence=BIGGEST)
        await service.mutate(most)
        assert (await refused(service.mutate(most))).code is Code.FAILED_PRECONDITION


async def test_a_zero_token_is_not_fenced() -> None:
    async with world() as w:
        machine, service = await w.fresh(), w.running.service
        zero = pb.CreateRequest(machine_id=machine)
        one = pb.TransitionAck.FromString(await service.mutate(zero))
        two = pb.TransitionAck.FromString(await service.mutate(zero))
        assert one.operation_id == two.operation_id != ""


async def test_the_acknowledgement_shows_the_transitional_state_and_never_waits() -> None:
    async with world(slow_ms=5000) as w:
        machine = await w.fresh()
        ack = await w.shard.create(machine)
        assert (ack.machine.id, State(ack.machine.state)) == (machine, State.CREATING)
        await w.reach(machine, State.IDLE)
        ack = await w.shard.configure(machine, "c", {"k": "v"})
        assert (State(ack.machine.state), ack.machine.cluster) == (State.CONFIGURING, "c")
        assert dict(ack.machine.shard_metadata) == {"k": "v"}
        await w.reach(machine, State.CONFIGURED)
        assert State((await w.shard.drain(machine)).machine.state) is State.DRAINING
        await w.reach(machine, State.IDLE)
        assert State((await w.shard.delete(machine)).machine.state) is State.DELETING


async def test_a_repeat_in_flight_and_at_the_target_returns_the_first_operation() -> None:
    async with world(slow_ms=1000) as w:
        machine = await w.fresh()
        first = await w.shard.create(machine)
        in_flight = await w.shard.create(machine)
        await w.reach(machine, State.IDLE)
        at_target = await w.shard.create(machine)
        assert {first.operation_id, in_flight.operation_id, at_target.operation_id} == {
            first.operation_id
        }
        assert State(at_target.machine.state) is State.IDLE
        assert w.substrate.launches == 1
        assert w.metric("idempotent_replays_total", method="Create") == 2


async def test_a_repeated_configure_ignores_its_payload() -> None:
    async with world(slow_ms=1000) as w:
        machine = await w.idle()
        first = await w.shard.configure(machine, "one", {"a": "1"})
        again = await w.shard.configure(machine, "two", {"b": "2"}, b"other")
        assert again.operation_id == first.operation_id
        assert (again.machine.cluster, dict(again.machine.shard_metadata)) == ("one", {"a": "1"})
        after = await w.reach(machine, State.CONFIGURED)
        assert (after.cluster, dict(after.shard_metadata)) == ("one", {"a": "1"})


async def test_every_round_has_new_ids_and_create_and_drain_are_told_apart() -> None:
    async with world() as w:
        machine = await w.fresh()
        ids = [(await w.shard.create(machine)).operation_id]
        await w.reach(machine, State.IDLE)
        for _ in range(2):
            ids.append((await w.shard.configure(machine)).operation_id)
            await w.reach(machine, State.CONFIGURED)
            ids.append((await w.shard.drain(machine)).operation_id)
            await w.reach(machine, State.IDLE)
        assert len(set(ids)) == 5
        assert (await w.shard.drain(machine)).operation_id == ids[-1]
        assert (await w.shard.create(machine)).operation_id == ids[0]


async def test_a_delete_answers_its_repeat_and_a_new_life_gets_a_new_id() -> None:
    async with world() as w:
        machine = await w.idle()
        first = await w.shard.delete(machine)
        await w.reach(machine, State.SPECULATIVE)
        assert (await w.shard.delete(machine)).operation_id == first.operation_id
        create = await w.shard.create(machine)
        assert create.operation_id != first.operation_id


@pytest.mark.parametrize("burst", range(3))
async def test_a_burst_of_sixteen_gives_one_operation(burst: int) -> None:
    async with world(slow_ms=burst * 100) as w:
        machine = await w.fresh()
        shards = [Shard(w.running.service, f"shard-{n}") for n in range(16)]
        acks = await asyncio.gather(*(shard.create(machine) for shard in shards))
        assert len({ack.operation_id for ack in acks}) == 1
        await w.reach(machine, State.IDLE)
        assert w.substrate.launches == 1


async def test_a_caller_that_goes_away_leaves_no_machine_between() -> None:
    async with world(slow_ms=100) as w:
        machine = await w.fresh()
        call = asyncio.ensure_future(w.shard.create(machine))
        await asyncio.sleep(0)
        call.cancel()
        await w.advance(10)
        assert await w.shard.state(machine) is State.IDLE
        await w.shard.create(machine)


async def test_metadata_comes_back_byte_for_byte_and_goes_with_the_drain() -> None:
    metadata = {
        "nul": "a\0b",
        "empty": "",
        "": "empty key",
        "c1": "\x85\x9b",
        "emoji": "🚚",
        "k\0": "v",
    }
    async with world() as w:
        machine = await w.idle()
        await w.shard.configure(machine, "c", metadata)
        assert dict((await w.reach(machine, State.CONFIGURED)).shard_metadata) == metadata
        await w.shard.drain(machine)
        after = await w.reach(machine, State.IDLE)
        assert (after.cluster, dict(after.shard_metadata)) == ("", {})


async def test_too_much_metadata_and_too_large_a_blob_change_nothing() -> None:
    async with world(max_metadata_bytes=1000) as w:
        machine = await w.idle()
        big = await refused(w.shard.configure(machine, "c", {"k": "x" * 1000}))
        assert big.code is Code.INVALID_ARGUMENT
        blob = await refused(w.shard.configure(machine, "c", {}, b"x" * (1024 * 1024 + 1)))
        assert blob.code is Code.RESOURCE_EXHAUSTED
        assert await w.shard.state(machine) is State.IDLE


async def test_delete_is_unimplemented_on_owned_hardware_but_arguments_come_first() -> None:
    import dataclasses

    metal = dataclasses.replace(SPEC, mix=(METALS,), delete_offered=lambda offerings: False)
    async with world(metal) as w:
        machine = await w.idle(CapacityType.BARE_METAL)
        assert (await refused(w.shard.delete(machine))).code is Code.UNIMPLEMENTED
        assert (await refused(w.shard.delete(""))).code is Code.INVALID_ARGUMENT
        assert (await w.shard.get(machine)).price_per_hour == 0


async def test_a_bad_filter_is_refused_and_unknown_ids_are_not_found() -> None:
    async with world() as w:
        service = w.running.service
        unknown = pb.ListFilter(states=[99])  # type: ignore[list-item]
        assert (await refused(service.list(unknown))).code is Code.INVALID_ARGUMENT
        negative = pb.ListFilter(max_results=-1)
        assert (await refused(service.list(negative))).code is Code.INVALID_ARGUMENT
        assert (await refused(service.get(pb.MachineRef(id="x")))).code is Code.NOT_FOUND
        assert (await refused(service.get(pb.MachineRef()))).code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize("hostile", HOSTILE_IDS, ids=lambda text: f"{len(text)} characters")
async def test_ids_that_break_the_rules_are_refused_in_few_words_and_move_no_mark(
    hostile: str,
) -> None:
    async with world() as w:
        service, ledger = w.running.service, w.running.backend.ledger
        machine = (await w.shard.machines())[0].id
        for bad in (
            request(Kind.CREATE, machine, shard=hostile),
            pb.ConfigureRequest(
                machine_id=machine, shard_id="s", shard_epoch=1, sequence_number=1,
                cluster_id=hostile,
            ),
        ):  # fmt: skip
            refusal = await refused(service.mutate(bad))
            assert refusal.code is Code.INVALID_ARGUMENT
            assert len(refusal.text) < 1000
        assert ledger.fences.mark("s", machine) is None
        assert ledger.fences.mark(hostile, machine) is None


@pytest.mark.parametrize("hostile", ["m" * 2_000_000, "m\0", "m\r\nLevel: info"])
async def test_machine_ids_that_cannot_be_kept_are_refused_before_the_fence(hostile: str) -> None:
    async with world() as w:
        service = w.running.service
        bad = pb.CreateRequest(machine_id=hostile, shard_id="s", shard_epoch=1, sequence_number=1)
        for call in (service.mutate(bad), service.get(pb.MachineRef(id=hostile))):
            refusal = await refused(call)
            assert refusal.code is Code.INVALID_ARGUMENT
            assert len(refusal.text) < 1000
        assert w.running.backend.ledger.fences.mark("s", hostile) is None


async def test_a_certificate_without_a_name_is_refused_before_the_request_is_looked_at() -> None:
    nameless = Peer("")
    async with world() as w:
        service = w.running.service
        bad = pb.CreateRequest(shard_id="s" * 2_000_000, sequence_number=-1)
        for call in (
            service.mutate(bad, nameless),
            asyncio.to_thread(service.read_one, pb.MachineRef(), nameless),
            asyncio.to_thread(service.read_many, pb.ListFilter(max_results=-1), nameless),
            service.mutate(bad, Peer("bigfleet://shard/other")),
        ):
            refusal = await refused(call)
            assert refusal.code is Code.PERMISSION_DENIED
            assert len(refusal.text) < 1000


async def test_a_store_that_cannot_be_written_answers_unavailable_and_applies_nothing() -> None:
    from bigfleet_providerkit.store.memory import MemoryStore

    store = MemoryStore()
    async with world(store=store) as w:
        machine = await w.fresh()
        store.fail_with = "database or disk is full"
        full = await refused(w.shard.create(machine))
        assert full.code is Code.UNAVAILABLE
        assert await w.shard.state(machine) is State.SPECULATIVE
        assert w.running.backend.ledger.fences.mark("shard-a", machine) is None
        assert "disk is full" in w.running.readiness()
        assert w.substrate.launches == 0
        store.fail_with = ""
        await w.advance(2)
        assert w.running.readiness() == ""
        await w.shard.create(machine)
        await w.reach(machine, State.IDLE)


async def test_an_end_waits_for_a_full_store_and_is_not_lost() -> None:
    from bigfleet_providerkit.store.memory import MemoryStore

    store = MemoryStore()
    async with world(store=store, slow_ms=1000) as w:
        machine = await w.fresh()
        await w.shard.create(machine)
        await w.advance(0.5)
        store.fail_with = "database or disk is full"
        await w.advance(5)
        assert await w.shard.state(machine) is State.CREATING
        store.fail_with = ""
        await w.reach(machine, State.IDLE, 60)

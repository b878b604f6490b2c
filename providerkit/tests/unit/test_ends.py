"""How transitions end: classes of errors, retries, time-outs, late results."""

import asyncio
import dataclasses

import pytest

from bigfleet_providerkit import (
    Code,
    Gone,
    Host,
    HostCommand,
    HostResult,
    InvalidRequest,
    Launch,
    MemorySubstrate,
    OutOfCapacity,
    QuotaExceeded,
    Refusal,
    Retryable,
    State,
    SubstrateError,
    Unauthorized,
)
from bigfleet_providerkit.errors import LONGEST_ERROR, error_line
from kitworld import World, world


async def failed_create(w: World, *errors: SubstrateError) -> str:
    machine = await w.fresh()
    w.substrate.fail_next("create", *errors)
    await w.shard.create(machine)
    return (await w.reach(machine, State.FAILED)).last_error


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (OutOfCapacity("no stock"), "OutOfCapacity: no stock"),
        (QuotaExceeded("20 of 20"), "QuotaExceeded: 20 of 20"),
        (InvalidRequest("no image"), "InvalidRequest: no image"),
        (Unauthorized("ec2:Run"), "Unauthorized: ec2:Run"),
        (SubstrateError("odd"), "Unavailable: odd"),
    ],
)
async def test_a_final_class_fails_at_once_with_its_word(error: SubstrateError, first: str) -> None:
    async with world() as w:
        assert await failed_create(w, error) == first
        assert w.metric("transitions_total", kind="create", outcome="failed") == 1


async def test_a_retryable_error_is_tried_again_with_growing_pauses() -> None:
    async with world() as w:
        machine = await w.fresh()
        w.substrate.fail_next("create", *(Retryable("busy") for _ in range(5)))
        began = w.clock.now()
        await w.shard.create(machine)
        await w.reach(machine, State.IDLE)
        assert 0 < w.clock.now() - began < 0.5 + 1 + 2 + 4 + 8 + 1


async def test_the_substrates_wish_is_obeyed() -> None:
    async with world() as w:
        machine = await w.fresh()
        w.substrate.fail_next("create", Retryable("slow down", throttled=True, after=100))
        began = w.clock.now()
        await w.shard.create(machine)
        await w.reach(machine, State.IDLE)
        assert w.clock.now() - began >= 100


@pytest.mark.parametrize(("throttled", "word"), [(True, "Throttled:"), (False, "Unavailable:")])
async def test_tries_end_when_most_of_the_time_is_used(throttled: bool, word: str) -> None:
    async with world(create_timeout=100) as w:
        began = w.clock.now()
        errors = [Retryable("busy", throttled=throttled) for _ in range(500)]
        last_error = await failed_create(w, *errors)
        assert last_error.startswith(word)
        assert 40 < w.clock.now() - began <= 90


async def test_gone_is_success_for_a_delete_and_failure_elsewhere() -> None:
    async with world() as w:
        machine = await w.idle()
        w.substrate.fail_next("delete", Gone("not there"))
        await w.shard.delete(machine)
        await w.reach(machine, State.SPECULATIVE)
        other = await w.idle()
        w.substrate.fail_next("configure", Gone("not there"))
        await w.shard.configure(other)
        assert (await w.reach(other, State.FAILED)).last_error.startswith("HostLost:")


async def test_a_failed_drain_is_a_failure_and_keeps_what_the_machine_had() -> None:
    async with world() as w:
        machine = await w.configured("c", key="value")
        before = await w.shard.get(machine)
        w.substrate.fail_next("drain", InvalidRequest("stuck"))
        await w.shard.drain(machine)
        after = await w.reach(machine, State.FAILED)
        assert (after.cluster, after.host) == (before.cluster, before.host)
        assert after.shard_metadata == before.shard_metadata
        with pytest.raises(Refusal) as refusal:
            await w.shard.configure(machine)
        assert refusal.value.code is Code.INTERNAL


class Stubborn(MemorySubstrate):
    """Ignores its cancellation and succeeds late."""

    async def launch(self, order: Launch) -> Host:
        ends = self._kit.clock.monotonic() + 50
        while (left := ends - self._kit.clock.monotonic()) > 0:
            try:
                await self._kit.clock.sleep(left)
            except asyncio.CancelledError:
                continue
        return await super().launch(order)


async def test_a_late_result_is_dropped_and_what_it_made_is_removed() -> None:
    async with world(create_timeout=10, failed_cleanup_after=0) as w:
        w.substrate.__class__ = Stubborn
        machine = await w.fresh()
        began = w.clock.now()
        await w.shard.create(machine)
        failed = await w.reach(machine, State.FAILED)
        assert w.clock.now() - began == pytest.approx(10)
        assert failed.last_error == (
            "Timeout: create did not end within 10s: waiting for the host to run"
        )
        await w.advance(100)
        assert await w.shard.state(machine) is State.FAILED
        assert w.substrate.launches == 1
        assert w.substrate.hosts == {}
        assert w.metric("transitions_total", kind="create", outcome="discarded") == 1
        assert w.metric("transition_timeouts_total", kind="create") == 1


class Hanging(MemorySubstrate):
    """Makes the host, then never answers."""

    async def launch(self, order: Launch) -> Host:
        await super().launch(order)
        await self._kit.clock.sleep(1e6)
        raise AssertionError("cancelled before")

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        await self._kit.clock.sleep(1e6)
        raise AssertionError("cancelled before")


async def test_a_host_whose_launch_was_abandoned_is_removed_by_the_next_pass() -> None:
    async with world(create_timeout=10, failed_cleanup_after=0) as w:
        w.substrate.__class__ = Hanging
        machine = await w.fresh()
        await w.shard.create(machine)
        await w.reach(machine, State.FAILED)
        assert len(w.substrate.hosts) == 1
        await w.running.reconcile()
        assert w.substrate.hosts == {}


async def test_a_drain_ends_after_its_grace_and_a_minute() -> None:
    async with world() as w:
        machine = await w.configured()
        w.substrate.__class__ = Hanging
        began = w.clock.now()
        await w.shard.drain(machine, grace=30)
        await w.reach(machine, State.FAILED)
        assert w.clock.now() - began == pytest.approx(90)


async def test_a_node_that_is_never_ready_ends_as_not_ready() -> None:
    async with world(configure_timeout=20, poll_interval=1) as w:
        machine = await w.idle()

        async def never(host: Host, cluster: str) -> bool:
            return False

        w.substrate.node_ready = never  # type: ignore[method-assign]
        await w.shard.configure(machine, "c")
        failed = await w.reach(machine, State.FAILED)
        assert failed.last_error.startswith("NotReady: the node is not Ready in cluster c")


async def test_a_node_is_looked_for_under_the_name_its_host_was_launched_with() -> None:
    async with world() as w:
        machine = await w.fresh()
        created = await w.shard.create(machine)
        await w.reach(machine, State.IDLE)
        names = []

        async def look(host: Host, cluster: str) -> bool:
            names.append(host.node_name)
            return True

        w.substrate.node_ready = look  # type: ignore[method-assign]
        await w.shard.configure(machine, "c")
        await w.reach(machine, State.CONFIGURED)
        assert names == [f"bf-{created.operation_id}"]


async def test_a_bug_in_a_substrate_ends_as_failed_and_is_counted() -> None:
    async with world() as w:
        machine = await w.fresh()
        w.substrate.fail_next("create", ZeroDivisionError("oops"))  # type: ignore[arg-type]
        await w.shard.create(machine)
        failed = await w.reach(machine, State.FAILED)
        assert failed.last_error == "Unavailable: create met a bug: ZeroDivisionError: oops"
        assert w.metric("panics_total") == 1


@pytest.mark.parametrize(("visible_after", "ends"), [(10, State.IDLE), (1e9, State.FAILED)])
async def test_a_new_host_may_be_invisible_for_the_consistency_window(
    visible_after: float, ends: State
) -> None:
    async with world() as w:
        steps = w.running.backend.steps
        steps._settings = dataclasses.replace(steps._settings, consistency_window=30.0)
        launch, began = w.substrate.launch, w.clock.now()

        async def lagging(order: Launch) -> Host:
            host = await launch(order)
            if w.clock.now() - began < visible_after:
                raise Gone(f"no host {host.ref}")
            return host

        w.substrate.launch = lagging  # type: ignore[method-assign]
        machine = await w.fresh()
        await w.shard.create(machine)
        await w.reach(machine, ends)
        assert w.substrate.launches == 1
        assert 10 <= w.clock.now() - began <= 120


def test_last_error_is_one_bounded_line() -> None:
    line = error_line(InvalidRequest("two\nlines " + "x" * 5000))
    assert line.startswith("InvalidRequest: two lines xxx")
    assert len(line) == LONGEST_ERROR
    assert "\n" not in line

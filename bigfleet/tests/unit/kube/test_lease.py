"""Leader election on virtual time: at most one leads, and the next one leads soon."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest

from bigfleet.kube import (
    PATIENT,
    AlreadyExistsError,
    Body,
    ClusterConfig,
    ConflictError,
    KubeClient,
    LeaderElection,
    LeaseTimes,
    NotFoundError,
    Resource,
    UnreachableError,
)
from bigfleet.kube.errors import ApiStatus
from bigfleet.kube.transport import ApiTransport
from kube_clients import LoopClock
from sim.loop import virtual_loop

T = TypeVar("T")


class Leases:
    """The one lease of a cluster."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def write(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """What an API server does with a merge patch that is bound to a version."""
        assert self.lease is not None
        if change["metadata"]["resourceVersion"] != str(self.version):
            raise ConflictError(ApiStatus(code=409, reason="Conflict", message="modified"))
        return self.put({**self.lease["spec"], **change["spec"]})

    def put(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": "lock", "namespace": "ours", "resourceVersion": str(self.version)}
        self.lease = {"metadata": metadata, "spec": spec}
        return self.lease


class Replica(KubeClient):
    """One replica's way to the lease, which can be cut; every call takes 20 ms."""

    def __init__(self, leases: Leases, name: str, times: LeaseTimes | None = None) -> None:
        config = ClusterConfig("http://nowhere", namespace="ours")
        super().__init__(ApiTransport(config, clock=LoopClock(), chance=Random(1)))
        self.leases = leases
        self.cut_off = False
        self.led: list[tuple[float, float]] = []
        self.election = LeaderElection(self, "lock", name, times=times)

    async def get(
        self, resource: Resource[T], name: str, namespace: str = "", *, deadline: float = 30
    ) -> T:
        await self._travel(deadline)
        if self.leases.lease is None:
            raise NotFoundError(ApiStatus(code=404))
        return msgspec.convert(self.leases.lease, resource.struct)

    async def create(
        self, resource: Resource[T], body: Body, namespace: str = "", *, deadline: float = 30
    ) -> T:
        await self._travel(deadline)
        if self.leases.lease is not None:
            raise AlreadyExistsError(ApiStatus(code=409))
        assert isinstance(body, Mapping)
        spec = body["spec"]
        assert isinstance(spec, dict)
        return msgspec.convert(self.leases.put(spec), resource.struct)

    async def merge_patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, object],
        namespace: str = "",
        *,
        subresource: str = "",
        deadline: float = 30,
    ) -> T:
        await self._travel(deadline)
        return msgspec.convert(self.leases.write(patch), resource.struct)

    async def _travel(self, deadline: float) -> None:
        await asyncio.sleep(deadline if self.cut_off else 0.02)
        if self.cut_off:
            raise UnreachableError("cut off")

    async def work(self) -> None:
        """What a leader does: notes from when until when."""
        start = self.clock.monotonic()
        try:
            await asyncio.Event().wait()
        finally:
            self.led.append((start, self.clock.monotonic()))

    def start(self) -> "asyncio.Task[None]":
        return asyncio.ensure_future(self.election.run(self.work))


def on_virtual_time(story: Callable[[], Coroutine[Any, Any, T]], seed: int) -> T:
    return virtual_loop(seed).run(story())


async def end(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


SEEDS = pytest.mark.parametrize("seed", range(5))


@SEEDS
def test_of_two_one_leads(seed: int) -> None:
    async def story() -> None:
        leases = Leases()
        one, two = Replica(leases, "one"), Replica(leases, "two")
        tasks = one.start(), two.start()
        await asyncio.sleep(30)
        assert one.election.is_leader != two.election.is_leader
        holder = "one" if one.election.is_leader else "two"
        assert one.election.holder == two.election.holder == holder
        assert [one.election.stands_by, two.election.stands_by].count(True) == 1
        await end(*tasks)
        assert len(one.led) + len(two.led) <= 2

    on_virtual_time(story, seed)


@SEEDS
def test_a_leader_that_ends_in_order_is_followed_within_a_second(seed: int) -> None:
    async def story() -> float:
        leases = Leases()
        one, two = Replica(leases, "one"), Replica(leases, "two")
        first = one.start()
        await one.election.wait_leading()
        second = two.start()
        await asyncio.sleep(10)
        ended = two.clock.monotonic()
        await end(first)
        await two.election.wait_leading()
        took = two.clock.monotonic() - ended
        await end(second)
        return took

    assert on_virtual_time(story, seed) < 1


@SEEDS
def test_a_leader_that_is_cut_off_stops_before_the_next_begins_and_that_is_soon(seed: int) -> None:
    async def story() -> None:
        leases = Leases()
        one, two = Replica(leases, "one"), Replica(leases, "two")
        first = one.start()
        await one.election.wait_leading()
        second = two.start()
        await asyncio.sleep(9.3)
        one.cut_off = True
        cut = two.clock.monotonic()
        await two.election.wait_leading()
        began = two.clock.monotonic()
        assert began - cut < 5
        assert one.led, "the old leader still acts"
        assert one.led[0][1] <= began
        one.cut_off = False
        await asyncio.sleep(10)
        assert two.election.is_leader
        assert not one.election.is_leader
        await end(first, second)

    on_virtual_time(story, seed)


@pytest.mark.parametrize("after", [0.0, 0.13, 0.29, 0.41, 0.57, 0.73])
def test_after_a_crash_the_next_one_waits_for_the_lease_to_end_and_no_longer(after: float) -> None:
    async def story() -> float:
        leases = Leases()
        one, two = Replica(leases, "one", PATIENT), Replica(leases, "two", PATIENT)
        first = one.start()
        await one.election.wait_leading()
        second = two.start()
        await asyncio.sleep(10 + after)
        one.cut_off = True
        crashed = two.clock.monotonic()
        await two.election.wait_leading()
        took = two.clock.monotonic() - crashed
        await end(first, second)
        return took

    # The last renewal is seen at most one look later; reading and taking it are two calls.
    assert on_virtual_time(story, 1) <= PATIENT.duration + PATIENT.retry + 0.1


def test_work_that_ends_gives_the_lease_back_and_its_mistake_comes_out() -> None:
    async def story() -> None:
        leases = Leases()
        one = Replica(leases, "one")

        async def fails() -> None:
            await asyncio.sleep(3)
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            await one.election.run(fails)
        assert leases.lease is not None
        assert leases.lease["spec"]["holderIdentity"] == ""
        assert not one.election.is_leader

    on_virtual_time(story, 1)


def test_a_restart_under_the_same_name_leads_again_at_once() -> None:
    async def story() -> None:
        leases = Leases()
        first = Replica(leases, "one")
        running = first.start()
        await first.election.wait_leading()
        first.cut_off = True
        again = Replica(leases, "one")
        started = again.clock.monotonic()
        second = again.start()
        await again.election.wait_leading()
        assert again.clock.monotonic() - started < 0.2
        await end(running, second)

    on_virtual_time(story, 1)

"""Explanations on demand: one at a time, once per plan, within their time, ended when told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from bigfleet.decision import Carry, Policy
from bigfleet.explanation import Situation
from bigfleet.model import CapacityType, Machine, Need
from bigfleet.model.columns import Offering
from bigfleet.shard.explain.need_explanations import MOST_SECONDS, Basis, NeedExplanations
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from living import Living
from worlds import NOW, S, machine, need

T = TypeVar("T")


@dataclass
class SteadyClock:
    """Time that passes when a decision is made."""

    seconds: float = 0.0

    def now(self) -> int:
        return NOW

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Stage:
    """Explanations with a clock and a place to compute that tests look into."""

    per_decision: float = 0.1
    clock: SteadyClock = field(default_factory=SteadyClock)
    decisions: int = 0
    running: int = 0
    most_running: int = 0
    let_go: asyncio.Event | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.explanations = NeedExplanations(self.offload, self.clock, self.wait_for_cycle)

    def wait_for_cycle(self, _seconds: float) -> None:
        self.decisions += 1
        self.clock.seconds += self.per_decision

    async def offload(self, function: Callable[[], T]) -> T:
        self.running += 1
        self.begun.set()
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            if self.let_go is not None:
                await self.let_go.wait()
            return function()
        finally:
            self.running -= 1

    async def of(self, basis: Basis, row: int = 0) -> pb.NeedExplanation:
        return await self.explanations.of(basis, row, self.explanations.deadline())


def basis_of(
    machines: list[Machine],
    needs: list[Need],
    vain: tuple[int, ...] = (),
    failing: frozenset[Offering] = frozenset(),
) -> Basis:
    plan = Living().plan(machines, needs, NOW)
    situation = Situation(plan.fleet, plan.demand, Policy(), Carry(), NOW)
    return Basis(situation, plan, np.array(vain, np.int64), failing)


def starved() -> Basis:
    return basis_of([machine("m-1")], [need(cpu=8, unit=4), need(cpu=12, unit=4, priority=9)])


async def test_an_explanation_is_worked_out_once_per_plan() -> None:
    stage, basis = Stage(), starved()
    first = await stage.of(basis)
    made = stage.decisions
    assert first.blockers
    assert await stage.of(basis) == first
    assert stage.decisions == made
    await stage.of(starved())
    assert stage.decisions > made


async def test_one_need_is_explained_at_a_time() -> None:
    stage, basis = Stage(), starved()
    found = await asyncio.gather(*(stage.of(basis, row) for row in (0, 1, 0)))
    assert all(not one.incomplete for one in found)
    assert stage.most_running == 1


async def test_what_takes_too_long_is_marked_and_tried_again_when_asked_again() -> None:
    stage, basis = Stage(per_decision=MOST_SECONDS), starved()
    first = await stage.of(basis)
    assert stage.decisions == 1
    assert first.not_tried > 0
    assert not first.remedies
    stage.per_decision = 0.0
    again = await stage.of(basis)
    assert not again.not_tried
    assert again.remedies


async def test_a_shard_that_stops_ends_the_search() -> None:
    stage, basis = Stage(), starved()
    stage.explanations.stop()
    found = await stage.of(basis)
    assert found.incomplete
    assert stage.decisions == 0


async def test_a_caller_that_hangs_up_ends_the_search_and_makes_room_for_the_next() -> None:
    stage, basis = Stage(let_go=asyncio.Event()), starved()
    call = asyncio.ensure_future(stage.of(basis))
    await stage.begun.wait()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert stage.let_go is not None
    stage.let_go.set()
    assert (await stage.of(basis)).blockers


async def test_too_many_callers_get_an_incomplete_answer_at_once() -> None:
    stage, basis = Stage(let_go=asyncio.Event()), starved()
    calls = [asyncio.ensure_future(stage.of(basis)) for _ in range(16)]
    await stage.begun.wait()
    assert (await stage.of(basis)).incomplete
    assert stage.let_go is not None
    stage.let_go.set()
    assert all(not found.incomplete for found in await asyncio.gather(*calls))


async def test_machines_whose_creates_fail_serve_nothing_in_an_explanation() -> None:
    asked = need(cpu=4)
    coming = machine("m-1", S.CREATING, serves=asked)
    offering: Offering = ("p", "t4", "z-1", CapacityType.ON_DEMAND)
    slot = machine("m-2", S.SPECULATIVE)
    basis = basis_of([coming, slot], [asked], vain=(0,), failing=frozenset({offering}))
    found = await Stage().of(basis)
    assert [b.kind for b in found.blockers] == [pb.BLOCKER_KIND_STOCK_OUT]
    assert any("in stock again" in remedy.change and remedy.met for remedy in found.remedies)

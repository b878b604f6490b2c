"""Preparing what is measured: a file or a made workload becomes a world that can be timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bigfleet.scenario.document import Scenario
    from bigfleet_lab.bench.benchmark import Measurement
    from bigfleet_lab.simulate.workloads import ExpectedResult

Prepared = Callable[[int, int, Callable[[], None]], "Measurement"]
"""Given cycles, a seed, and what to call after each cycle: the measurement."""


def measure_file(path: Path, workers: int, steady: bool | None) -> Prepared:
    """The world of a scenario file; nothing is known about its right result."""
    from bigfleet.scenario.document import read_scenario

    return _prepared(read_scenario(path), workers, steady, None)


def measure_workload(
    name: str, machines: int, workers: int, steady: bool | None, seed: int
) -> Prepared:
    """The world of a made workload, whose result is checked in every cycle."""
    from bigfleet_lab.simulate.workloads import make_workload

    workload = make_workload(name, machines, seed)
    return _prepared(workload.scenario, workers, steady, workload.expected)


def first_cycle_seconds(machines: int) -> float:
    """Seconds of this process' first import of the engine and its first cycle."""
    begin = time.perf_counter()
    from bigfleet.decision import Engine
    from bigfleet.scenario.state import ScenarioState
    from bigfleet_lab.simulate.workloads import make_workload

    imported = time.perf_counter() - begin
    world = ScenarioState.of(make_workload("gangs", machines).scenario)
    begin = time.perf_counter()
    Engine().decide(world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now)
    return imported + time.perf_counter() - begin


def _prepared(
    scenario: Scenario, workers: int, steady: bool | None, expected: ExpectedResult | None
) -> Prepared:
    from bigfleet.scenario.state import ScenarioState, scenario_policy
    from bigfleet_lab.bench.benchmark import is_steady, measure

    world = ScenarioState.of(scenario, scenario_policy(workers))
    changes = is_steady(scenario.name) if steady is None else steady

    def run(cycles: int, seed: int, on_cycle: Callable[[], None]) -> Measurement:
        return measure(
            world,
            cycles,
            steady=changes,
            clock=time.perf_counter,
            seed=seed,
            expected=expected,
            on_cycle=on_cycle,
        )

    return run

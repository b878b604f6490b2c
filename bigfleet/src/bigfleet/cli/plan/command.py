"""`bigfleet plan`: one cycle on a scenario file, printed so that a person understands it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bigfleet.cli.extras import ENGINE, require
from bigfleet.cli.help_format import examples
from bigfleet.cli.output import Form, Output, Quiet, print_document, stage
from bigfleet.cli.warm_up import wake

EXAMPLES = examples(
    "bigfleet plan --scenario examples/first-fleet.json",
    "bigfleet plan --scenario examples/short-of-gpus.json --explain 2",
    "bigfleet plan --scenario fleet.json --output json",
)


def plan(
    scenario: Annotated[Path, typer.Option(help="The scenario file.", metavar="FILE")],
    explain: Annotated[
        int | None,
        typer.Option(help="Explain one need, by its place in the file from 0.", metavar="NEED"),
    ] = None,
    output: Form = Output.TABLE,
    workers: Annotated[int, typer.Option(help="Workers of phase 1.", min=1, max=64)] = 1,
    quiet: Quiet = False,
) -> None:
    """Decide once for a fleet and its demand, and say what and why."""
    require("bigfleet plan", "shard", *ENGINE)
    with stage(f"Reading {scenario}", quiet=quiet):
        from bigfleet.scenario.document import read_scenario
        from bigfleet.scenario.state import ScenarioState, scenario_policy

        read = read_scenario(scenario)
        if explain is not None:
            _check_need(explain, len(read.needs), str(scenario))
        world = ScenarioState.of(read, scenario_policy(workers))
    wake(quiet=quiet)
    with stage("Deciding", quiet=quiet):
        import time

        from bigfleet.decision import Engine
        from bigfleet.scenario.outcome import ScenarioOutcome

        begin = time.perf_counter()
        made = Engine(clock=time.perf_counter).decide(
            world.inventory.snapshot(), world.demand, world.policy, world.carry, world.now
        )
        seconds = time.perf_counter() - begin
        outcome = ScenarioOutcome(world, made)
    if explain is not None:
        from bigfleet.cli.plan.explain_need import drawer, drawer_document

        if output is Output.TABLE:
            drawer(outcome, explain)
        else:
            print_document(drawer_document(outcome, explain), output)
    elif output is Output.TABLE:
        from bigfleet.cli.plan.table import print_plan

        print_plan(outcome, seconds)
    else:
        print_document(outcome.to_json(), output)


def _check_need(need: int, count: int, file: str) -> None:
    if not 0 <= need < count:
        from bigfleet.cli.errors import InputError

        has = f"its needs are 0 to {count - 1}" if count else "it has no needs"
        raise InputError(f"--explain {need}: {file} has no such need: {has}")

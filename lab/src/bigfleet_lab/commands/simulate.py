"""`bigfleet simulate`: the engine in a closed loop, and scenario files to feed it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.help_format import HelpfulCommand, HelpfulGroup, examples
from bigfleet.cli.output import (
    Form,
    Output,
    Quiet,
    out,
    plain,
    print_document,
    stage,
    steps,
    table,
    write_text,
)
from bigfleet.cli.warm_up import wake
from bigfleet_lab.commands.loop_document import loop_document, totals
from bigfleet_lab.commands.simulate_cluster import CLUSTER_EXAMPLES, cluster
from bigfleet_lab.commands.simulate_demo import demo

if TYPE_CHECKING:
    from bigfleet_lab.simulate.loop import Loop

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run the engine in a modelled world.",
    cls=HelpfulGroup,
    epilog=examples("bigfleet simulate loop --scenario examples/first-fleet.json"),
)

LOOP_EXAMPLES = examples(
    "bigfleet simulate loop --scenario examples/first-fleet.json --cycles 100",
    "bigfleet simulate loop --scenario fleet.json --create-delay 0..50 --drain-delay 0..50",
)
SCENARIO_EXAMPLES = examples(
    "bigfleet simulate scenario --workload cold --machines 5000 --out cold.json",
    "bigfleet simulate scenario --workload steady --machines 50000 --out -",
)
DEMO_EXAMPLES = examples(
    "bigfleet simulate demo",
    "bigfleet simulate demo --plain --cycles 60",
    "bigfleet simulate demo --cycles 60 --output json",
)
_QUIET_TAIL = 3
"""Cycles in which nothing happens are shown this many times, then left out."""

app.command(cls=HelpfulCommand, epilog=CLUSTER_EXAMPLES)(cluster)
app.command(cls=HelpfulCommand, epilog=DEMO_EXAMPLES)(demo)


@app.command(cls=HelpfulCommand, epilog=LOOP_EXAMPLES)
def loop(
    scenario: Annotated[Path, typer.Option(help="The scenario file.", metavar="FILE")],
    cycles: Annotated[int, typer.Option(help="How many cycles.", min=1, max=1_000_000)] = 100,
    create_delay: Annotated[
        str, typer.Option(help="Cycles a Create takes.", metavar="A..B")
    ] = "0..6",
    configure_delay: Annotated[
        str, typer.Option(help="Cycles a Configure takes.", metavar="A..B")
    ] = "0..3",
    drain_delay: Annotated[
        str, typer.Option(help="Cycles a Drain takes.", metavar="A..B")
    ] = "0..6",
    seed: Annotated[int, typer.Option(help="Of the delays.", min=0)] = 1,
    output: Form = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Carry plans out with random delays at constant demand, until nothing happens any more."""
    with stage(f"Reading {scenario}", quiet=quiet):
        from bigfleet.scenario.document import read_scenario
        from bigfleet.scenario.state import ScenarioState
        from bigfleet_lab.simulate.loop import Delay, Delays, Loop

        delays = Delays(*map(Delay.parse, (create_delay, configure_delay, drain_delay)))
        running = Loop(ScenarioState.of(read_scenario(scenario)), delays, seed)
    wake(quiet=quiet)
    with steps("cycles", cycles, quiet=quiet or cycles < 1000) as progress:
        for _ in running.run(cycles):
            progress.advance()
    if output is Output.TABLE:
        _print_loop(running)
    else:
        print_document(loop_document(running), output)


@app.command(cls=HelpfulCommand, epilog=SCENARIO_EXAMPLES)
def scenario(
    workload: Annotated[str, typer.Option(help="steady, gangs, gangs-whole, cold, reclaim, ...")],
    path: Annotated[Path, typer.Option("--out", help="The file; - is stdout.", metavar="FILE")],
    machines: Annotated[int, typer.Option(help="How many machines.")] = 5_000,
    seed: Annotated[int, typer.Option(help="Of all random choices.", min=0)] = 1,
) -> None:
    """Write one of the benchmark's scenarios as a file."""
    from bigfleet.scenario.writer import scenario_text
    from bigfleet_lab.simulate.workloads import make_workload

    text = scenario_text(make_workload(workload, machines, seed).scenario)
    if str(path) == "-":
        print(text, end="")
    else:
        write_text(text, path)


def _print_loop(running: Loop) -> None:
    made = table("cycle>", "actions", "unmet>", "under way>", "$/h>", title="Cycles")
    silent = 0
    for report in running.reports:
        silent = 0 if report.actions else silent + 1
        if silent > _QUIET_TAIL:
            continue
        actions = ", ".join(f"{n:,} {kind}" for kind, n in report.actions.items()) or "-"
        made.add_row(
            str(report.cycle),
            actions,
            str(report.unmet),
            str(report.under_way),
            f"{report.dollars_per_hour:,.2f}",
        )
    out.print(made)
    done = ", ".join(f"{n:,} {kind}" for kind, n in totals(running).items()) or "none"
    out.print(f"Actions in {running.cycle} cycles: {done}")
    settled = running.settled_at
    out.print(
        plain(
            "Not settled yet: run more cycles"
            if settled is None
            else f"Settled: nothing was decided from cycle {settled} on",
            "yellow" if settled is None else "green",
        )
    )
    for what, count in (
        ("Reclaims at unchanged demand", running.reclaims_at_unchanged_demand),
        ("Machines acquired in vain", running.over_acquisition),
    ):
        out.print(plain(f"{what}: {count}", "red" if count else "green"))

"""`bigfleet simulate demo`: a small fleet lives in your terminal, decided by the real engine."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.errors import InputError
from bigfleet.cli.output import Output, Quiet, out, plain, print_document
from bigfleet.cli.warm_up import wake
from bigfleet_lab.commands.loop_document import loop_document, totals

if TYPE_CHECKING:
    from bigfleet_lab.commands.demo_view import View
    from bigfleet_lab.simulate.demo_fleet import DemoFleet

_CYCLE_SECONDS = 10
_SPEED = 20.0
_FOREVER = 1 << 62


def demo(
    seed: Annotated[int, typer.Option(help="Of demand and delays.", min=0)] = 1,
    speed: Annotated[
        float | None,
        typer.Option(help="Virtual seconds per second; 0 does not wait.", min=0.0, max=1e6),
    ] = None,
    cycles: Annotated[
        int | None, typer.Option(help="End by itself after so many cycles.", min=1)
    ] = None,
    plain_lines: Annotated[
        bool,
        typer.Option("--plain", help="Lines instead of a screen; so it is without a terminal."),
    ] = False,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to print it; other forms need --cycles.")
    ] = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Watch a fleet of 120 machines serve three clusters whose demand moves.

    Machines and clusters are simulated, every decision is made by the real engine. Keys: q ends,
    space pauses, + and - change the speed.
    """
    if output is not Output.TABLE and cycles is None:
        raise InputError(f"--output {output} needs an end: give --cycles as well")
    wake(quiet=quiet)
    from bigfleet_lab.commands.demo_view import View
    from bigfleet_lab.simulate.demo_fleet import DemoFleet

    fleet = DemoFleet(seed)
    view = View(fleet)
    view.take(fleet.step())
    if output is not Output.TABLE:
        while fleet.loop.cycle < (cycles or 0):
            fleet.step()
        print_document(loop_document(fleet.loop), output)
        return
    lines = plain_lines or not out.is_terminal
    if speed is None:
        speed = 0.0 if lines and cycles is not None else _SPEED
    last = cycles or _FOREVER
    with suppress(KeyboardInterrupt):
        if lines:
            _print_lines(view, last, speed)
        else:
            _show(view, last, speed)
    _print_end(fleet)


def _print_lines(view: View, last: int, speed: float) -> None:
    from bigfleet_lab.commands.demo_view import HONEST, clock
    from bigfleet_lab.commands.keys import Keys

    fleet, waiting = view.demo, Keys(has_terminal=False)
    out.print(plain(HONEST))
    fresh = list(view.decisions)
    while True:
        report = fleet.loop.reports[-1]
        counts = fleet.world.inventory.counts_by_state()
        states = ", ".join(f"{n} {state.title}" for state, n in counts.items() if n)
        money = f"${report.dollars_per_hour:.2f}/h"
        line = f"{clock(fleet.seconds)} {money}, {report.unmet} unmet: {states}"
        out.print(plain(line), soft_wrap=True)
        for decision in fresh:
            out.print(plain(f"  {decision}"), soft_wrap=True)
        if fleet.loop.cycle >= last:
            return
        if speed:
            waiting.wait(_CYCLE_SECONDS / speed)
        fresh = view.take(fleet.step())


def _show(view: View, last: int, speed: float) -> None:
    from rich.live import Live

    from bigfleet_lab.commands.keys import keys

    paused = False
    with keys() as pressed, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(view.render(out.width, out.height), refresh=True)
            if view.demo.loop.cycle >= last:
                return
            wait = 0.2 if paused else _CYCLE_SECONDS / speed if speed else 0.0
            match pressed.wait(min(wait, 60.0)):
                case "q":
                    return
                case " ":
                    paused = not paused
                case "+":
                    speed = min(speed * 2, 1e6)
                case "-":
                    speed = max(speed / 2, 1.0)
            if not paused:
                view.take(view.demo.step())


def _print_end(fleet: DemoFleet) -> None:
    """What happened, left on the terminal after the screen is gone."""
    from bigfleet_lab.commands.demo_view import clock

    done = ", ".join(f"{n} {kind}" for kind, n in totals(fleet.loop).items()) or "nothing"
    mean = sum(report.dollars_per_hour for report in fleet.loop.reports) / fleet.loop.cycle
    out.print(
        plain(f"{fleet.loop.cycle} cycles, {clock(fleet.seconds)} of virtual time: {done}"),
        soft_wrap=True,
    )
    out.print(plain(f"On average ${mean:.2f}/h; all 72 elastic machines would be $19.04/h."))

"""`status`: the fleet on one screen, what is wrong with it, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from bigfleet.cli.ctl.context import Ctl, ctl_of, run
from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.output import print_document

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet
    from bigfleet.cli.ctl.status.overview import Overview

PAUSE_SECONDS: Final = 1.0


def status(
    ctx: typer.Context,
    wait: Annotated[
        str,
        typer.Option(
            help="Wait so long until a coordinator leads and every shard decides.",
            metavar="DURATION",
        ),
    ] = "",
) -> None:
    """Show the fleet on one screen: leader, shards, sessions, shortfalls, spend per hour, what is
    wrong and what to do.
    """
    from bigfleet.cli.ctl.status.diagnosis import diagnose
    from bigfleet.cli.ctl.status.overview import overview_document
    from bigfleet.cli.ctl.status.screen import print_status

    ctl = ctl_of(ctx)
    seconds = _seconds(wait) if wait else 0.0
    doing = "waiting for the fleet" if seconds else "asking everybody"
    view = run(ctl, lambda fleet: _look(ctl, fleet, seconds), doing)
    problems = diagnose(view)
    if ctl.is_table:
        print_status(view, problems)
    else:
        document = overview_document(view) | {
            "problems": [
                {"severity": p.weight.name.lower(), "what": p.what, "remedy": p.remedy}
                for p in problems
            ]
        }
        print_document(document, ctl.output)
    if seconds and not view.decides:
        raise FailureError(f"not every shard decides after {wait}: wait longer, or see its log")


def _seconds(text: str) -> float:
    from bigfleet.observe.settings import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise InputError(f"--wait: {error}") from None


async def _look(ctl: Ctl, fleet: Fleet, seconds: float) -> Overview:
    """The fleet as it is, once it decides or the time is over."""
    from bigfleet.cli.ctl.calls.refusals import PeerCallError
    from bigfleet.cli.ctl.status.collector import collect

    began, rested = ctl.edge.now(), 0.0
    while True:
        # A call may take its time as well: whichever is over first.
        over = max(rested, (ctl.edge.now() - began) / 1e9) >= seconds
        try:
            view = await collect(fleet, ctl.edge.now())
            if over or view.decides:
                return view
        except PeerCallError as error:
            if over or not (error.silent or error.not_leader):
                raise
        await ctl.edge.rest(PAUSE_SECONDS)
        rested += PAUSE_SECONDS

"""`status`: the fleet on one screen, what is wrong with it, and what to do."""

from __future__ import annotations

import typer

from bigfleet.cli.ctl.asking import ctl_of, run
from bigfleet.cli.output import print_document


def status(ctx: typer.Context) -> None:
    """Show the fleet on one screen: leader, shards, sessions, shortfalls, spend per hour, what is
    wrong and what to do.
    """
    from bigfleet.cli.ctl.collecting import collect
    from bigfleet.cli.ctl.diagnosis import diagnose
    from bigfleet.cli.ctl.overview import overview_document
    from bigfleet.cli.ctl.screen import print_status

    ctl = ctl_of(ctx)
    view = run(ctl, lambda fleet: collect(fleet, ctl.edge.now()), "asking everybody")
    problems = diagnose(view)
    if ctl.is_table:
        print_status(view, problems)
        return
    document = overview_document(view) | {
        "problems": [
            {"severity": p.weight.name.lower(), "what": p.what, "remedy": p.remedy}
            for p in problems
        ]
    }
    print_document(document, ctl.output)

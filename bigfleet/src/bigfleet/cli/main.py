"""`bigfleet`: the command line. Each command is a module of its own; here they are put together.

Commands import what they need when they run, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.metadata import version as distribution_version
from typing import Annotated

import typer

from bigfleet.cli.bench import app as bench_app
from bigfleet.cli.demo.command import app as demo_app
from bigfleet.cli.doctor.command import EXAMPLES as DOCTOR_EXAMPLES
from bigfleet.cli.doctor.command import doctor
from bigfleet.cli.errors import PROGRAM
from bigfleet.cli.helping import HelpfulCommand, examples
from bigfleet.cli.late import LateGroup
from bigfleet.cli.plan import EXAMPLES as PLAN_EXAMPLES
from bigfleet.cli.plan import plan
from bigfleet.cli.simulate import app as simulate_app

app = typer.Typer(
    name=PROGRAM,
    cls=LateGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Fleet-level capacity for Kubernetes: which machines serve which cluster.",
    epilog=examples(
        "bigfleet demo",
        "bigfleet plan --scenario examples/first-fleet.json",
        "bigfleet bench engine --suite",
    ),
)
app.command(cls=HelpfulCommand, epilog=PLAN_EXAMPLES)(plan)
app.command(cls=HelpfulCommand, epilog=DOCTOR_EXAMPLES)(doctor)
app.add_typer(demo_app, name="demo")
app.add_typer(bench_app, name="bench")
app.add_typer(simulate_app, name="simulate")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"{PROGRAM} {distribution_version('bigfleet')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Fleet-level capacity for Kubernetes: which machines serve which cluster."""


def _stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except BrokenPipeError:
        # Whoever read us has seen enough; what is still buffered must not complain on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()

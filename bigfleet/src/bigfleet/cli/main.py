"""`bigfleet`: the command line. Each command is a module of its own; `lazy_commands` lists them.

A command is imported when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from bigfleet.cli.errors import PROGRAM
from bigfleet.cli.help_format import examples
from bigfleet.cli.lazy_commands import LazyGroup
from bigfleet.cli.program import run_program

app = typer.Typer(
    name=PROGRAM,
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Fleet-level capacity for Kubernetes: which machines serve which cluster.",
    epilog=examples(
        "bigfleet demo",
        "bigfleet plan --scenario examples/first-fleet.json",
        "bigfleet bench engine --suite",
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as distribution_version

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


def main() -> None:
    """Run the command line."""
    run_program(app)


if __name__ == "__main__":
    main()

"""How a command ends when it does not end well: one line on stderr, and an exit code.

    CommandError(Exception)
    ├── InputError      bad input; exit code 2
    └── FailureError    the command could not do what it was asked; exit code 1

Refusals of the packages below are bad input as well: a scenario, a quantity, a delay.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

from bigfleet.cli.help_format import HelpfulGroup

PROGRAM = "bigfleet"
STOPPED = 130


class CommandError(Exception):
    """A command that did not end well."""

    exit_code = 1


class InputError(CommandError):
    """Bad input."""

    exit_code = 2


class FailureError(CommandError):
    """The command could not do what it was asked."""


class OneLineGroup(HelpfulGroup):
    """Commands whose refusals are one line, for people and for logs, instead of a panel."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and leave the process with its exit code."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except CommandError as error:
            _end(str(error), error.exit_code)
        except _refusals() as error:
            _end(str(error), InputError.exit_code)
        except typer.TyperException as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                # A group without a command: the message is its help, which is long and has lines.
                print(error.format_message())
                sys.exit(error.exit_code)
            _end(error.format_message(), error.exit_code)
        except typer.Abort:
            _end("stopped", STOPPED)
        sys.exit(code if isinstance(code, int) else 0)


def _refusals() -> tuple[type[Exception], ...]:
    """What the packages below raise for bad input; imported once something was raised."""
    from bigfleet.model.errors import ModelError
    from bigfleet.scenario.errors import SimulateError

    return (SimulateError, ModelError)


def _end(message: str, code: int) -> NoReturn:
    print(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)

"""Commands whose refusals are one line, and whose global options may stand anywhere.

`bigfleetctl list-shards --output json` and `bigfleetctl --output json list-shards` are the same:
options of the program are moved in front of the command before anything is parsed.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any, Final, NoReturn

import typer

from bigfleet.cli.errors import STOPPED, CommandError, InputError
from bigfleet.cli.help_format import HelpfulGroup

PROGRAM: Final = "bigfleetctl"
_STAY: Final = frozenset({"--help", "--version", "--install-completion", "--show-completion"})


class CtlGroup(HelpfulGroup):
    """The commands of bigfleetctl."""

    program = PROGRAM

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command and leave the process with its exit code."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except CommandError as error:
            self._end(str(error), error.exit_code)
        except typer.TyperException as error:
            self._end(error.format_message(), error.exit_code)
        except typer.Abort:
            self._end("stopped", STOPPED)
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the command line, its global options first."""
        valued, switches = set[str](), set[str]()
        for param in self.params:
            names = {*param.opts, *param.secondary_opts} - _STAY
            (switches if getattr(param, "is_flag", False) else valued).update(names)
        try:
            args = hoist(args, valued, switches, self.program)
        except InputError:
            # A shell that asks for completions has an unfinished line.
            if not ctx.resilient_parsing:
                raise
        return super().parse_args(ctx, args)

    def _end(self, message: str, code: int) -> NoReturn:
        # A group called without a command has printed its help, and says nothing more.
        if message:
            complain(message, self.program)
        sys.exit(code)


def hoist(
    args: Sequence[str],
    valued: Collection[str],
    switches: Collection[str],
    program: str = PROGRAM,
) -> list[str]:
    """The same words with all global options in front; nothing after `--` is touched."""
    front: list[str] = []
    rest: list[str] = []
    words = list(args)
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition("=")
        if word == "--":
            rest += [word, *words]
            break
        if word in switches or (equals and name in valued):
            front.append(word)
        elif word in valued:
            if not words:
                raise InputError(f"option {word} needs a value: see {program} --help")
            front += [word, words.pop(0)]
        else:
            rest.append(word)
    return [*front, *rest]


def complain(message: str, program: str = PROGRAM) -> None:
    """One line on stderr, whatever the message looks like."""
    print(f"{program}: {' '.join(message.split())}", file=sys.stderr)

"""`--help` as it can be copied and believed.

Examples stand at its end, each on a line of its own that is never folded: the library would fill
them into paragraphs of the terminal's width. A switch is shown without a value, as it takes none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup


def examples(*lines: str) -> str:
    """The examples of a command, as its epilog."""
    head = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join((head, *(f"  {line}" for line in lines)))


class HelpfulCommand(TyperCommand):
    """A command with such help."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, as they are shown."""
        return _shown(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, and then the examples."""
        _format(self, super().format_help, ctx, formatter)


class HelpfulGroup(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, as they are shown."""
        return _shown(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, and then the examples."""
        _format(self, super().format_help, ctx, formatter)


def _format(command: Any, write_help: Callable[[Any, Any], None], ctx: Any, formatter: Any) -> None:
    epilog, command.epilog = command.epilog, None
    try:
        write_help(ctx, formatter)
    finally:
        command.epilog = epilog
    _write(epilog, formatter)


def _shown(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _write(epilog: str | None, formatter: Any) -> None:
    if epilog:
        formatter.write(f"\n{epilog}\n")

"""Commands that are imported when they run: a component brings gRPC and compiled code with it, and
what prints results brings rich.

Until then a stand-in with the command's name and first words is what `--help` lists, so that the
list answers at once. Three commands belong to the laboratory, a distribution of its own: where it
is not installed they say how to install it, and so does a process that lacks packages of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand
from typer.main import get_command

from bigfleet.cli.errors import FailureError, OneLineGroup
from bigfleet.cli.extras import ENGINE, KUBERNETES, missing, require
from bigfleet.cli.help_format import HelpfulCommand

LABORATORY: Final = "bigfleet_lab"
"""Named, not imported: production code does not import the laboratory."""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is made, and its words in the list of commands.

    `attribute` is a function that becomes the command, or a typer application with commands of its
    own; of a process, a function that makes the command from the settings of that process.
    """

    module: str
    attribute: str
    words: str
    is_process: bool = False
    packages: tuple[str, ...] = ()
    """What the extra brings that is named after the process."""

    def make(self, name: str) -> Any:
        """The command itself."""
        if self.module.startswith(LABORATORY) and missing(LABORATORY):
            raise FailureError(
                f"bigfleet {name} is part of the laboratory, which is not installed: "
                "pip install bigfleet-lab"
            )
        require(f"bigfleet {name}", name, *self.packages)
        module = import_module(self.module)
        found: Any = getattr(module, self.attribute)
        if isinstance(found, typer.Typer):
            return get_command(found)
        # Plain help: in the columns of a table the names of long flags are cut at 80 characters.
        app = typer.Typer(
            pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None
        )
        function = found() if self.is_process else found
        app.command(name, cls=HelpfulCommand, epilog=getattr(module, "EXAMPLES", ""))(function)
        return get_command(app)


TOOLS: Final[Mapping[str, LazyCommand]] = {
    "plan": LazyCommand(
        "bigfleet.cli.plan.command",
        "plan",
        "Decide once for a fleet and its demand, and say what and why.",
    ),
    "doctor": LazyCommand(
        "bigfleet.cli.doctor.command",
        "doctor",
        "Check an installation, and say how to fix what is wrong. Changes nothing.",
    ),
    "demo": LazyCommand(
        f"{LABORATORY}.demo.command",
        "app",
        "Run the whole system on this machine, with a simulated cloud and simulated clusters.",
    ),
    "bench": LazyCommand(
        f"{LABORATORY}.bench.command", "app", "Measure the engine; every result is checked."
    ),
    "simulate": LazyCommand(
        f"{LABORATORY}.commands.simulate", "app", "Run the engine in a modelled world."
    ),
}
"""Commands that print a result and end."""

PROCESSES: Final[Mapping[str, LazyCommand]] = {
    "all-in-one": LazyCommand(
        "bigfleet.cli.processes.all_in_one",
        "all_in_one_command",
        "Run a coordinator and one shard in one process, for a laptop or a small fleet.",
        is_process=True,
        packages=ENGINE,
    ),
    "coordinator": LazyCommand(
        "bigfleet.cli.processes.coordinator",
        "coordinator_command",
        "Run a coordinator: which shard has what, and machines that change shards.",
        is_process=True,
        packages=("numpy",),
    ),
    "dashboard": LazyCommand(
        "bigfleet.cli.processes.dashboard",
        "dashboard_command",
        "Serve the dashboard: what the fleet does and why, read-only.",
        is_process=True,
    ),
    "operator": LazyCommand(
        "bigfleet.cli.processes.operator",
        "operator_command",
        "Run a cluster's operator: demand to the shard, machines into the cluster.",
        is_process=True,
        packages=(*KUBERNETES, "jinja2"),
    ),
    "pod-controller": LazyCommand(
        "bigfleet.cli.processes.pod_controller",
        "pod_controller_command",
        "Run a pod controller: one CapacityRequest for every Pod that is demand.",
        is_process=True,
        packages=KUBERNETES,
    ),
    "shard": LazyCommand(
        "bigfleet.cli.processes.shard",
        "shard_command",
        "Run a shard: decide which machines serve which cluster, and see to it.",
        is_process=True,
        packages=ENGINE,
    ),
}
"""Commands that run until they are stopped."""

COMMANDS: Final[Mapping[str, LazyCommand]] = {**TOOLS, **PROCESSES}


class LazyGroup(OneLineGroup):
    """A group that also has the commands above."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, or its stand-in."""
        late = COMMANDS.get(cmd_name)
        if late is None:
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, help=late.words, short_help=late.words)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is about to run."""
        if args and args[0] in COMMANDS:
            return args[0], COMMANDS[args[0]].make(args[0]), args[1:]
        return super().resolve_command(ctx, args)

"""`bigfleetctl`: the program. Global options, and the commands put together.

Every command is a function of its own module; it imports what it needs when it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version as distribution_version
from typing import Annotated, Final

import typer

from bigfleet.cli.ctl.context import DEFAULT_COORDINATOR, Ctl, Edge, Options, addresses
from bigfleet.cli.ctl.coordinators import (
    domains,
    providers,
    quotas,
    rebalancing,
    registry,
    snapshots,
)
from bigfleet.cli.ctl.groups import PROGRAM, CtlGroup
from bigfleet.cli.ctl.shards import decisions, machines, needs, pause
from bigfleet.cli.ctl.status import command
from bigfleet.cli.help_format import HelpfulCommand, examples
from bigfleet.cli.output import Output, out
from bigfleet.cli.program import run_program

_WIDE: Final = 200
"""Columns of a table that is piped: a program that reads it wants whole words."""

app = typer.Typer(
    name=PROGRAM,
    cls=CtlGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Look into a running fleet, and tell it what to do.\n\n"
    "Global options may stand before or after the command.",
    epilog=examples(
        "bigfleetctl status",
        "bigfleetctl inspect-needs --unmet --cluster shop",
        "bigfleetctl --coordinator c-1:7790 --coordinator c-2:7790 list-shards --output json",
    ),
)

_ZONE: Final = "topology.kubernetes.io/zone=eu-1a"
_COMMANDS: Final[tuple[tuple[str, str, Callable[..., None], str], ...]] = (
    (
        "Look first",
        "status",
        command.status,
        "status | status --wait 60s | status --shard-addr s-1:7780",
    ),
    (
        "Look first",
        "inspect-needs",
        needs.inspect_needs,
        "inspect-needs --unmet | inspect-needs --shard s-1 --cluster shop --output json",
    ),
    ("Look first", "watch", decisions.watch, "watch | watch --shard s-1 --kind preempt"),
    ("Shards and clusters", "list-shards", registry.list_shards, "list-shards"),
    ("Shards and clusters", "remove-shard", registry.remove_shard, "remove-shard s-3"),
    (
        "Shards and clusters",
        "list-shard-reports",
        rebalancing.list_shard_reports,
        "list-shard-reports --shard s-1",
    ),
    ("Shards and clusters", "list-clusters", registry.list_clusters, "list-clusters --shard s-1"),
    ("Shards and clusters", "bind-cluster", registry.bind_cluster, "bind-cluster shop s-2"),
    (
        "Shards and clusters",
        "forget-cluster",
        registry.forget_cluster,
        "forget-cluster old-shop | forget-cluster old-shop --yes",
    ),
    (
        "Shards and clusters",
        "pause",
        pause.pause,
        "pause --shard s-1 --reason 'network work' | pause --all",
    ),
    ("Shards and clusters", "resume", pause.resume, "resume --shard s-1"),
    (
        "Machines",
        "list-machines",
        machines.list_machines,
        "list-machines --state idle | list-machines --cluster shop --output yaml",
    ),
    (
        "Machines",
        "drain-machine",
        machines.drain_machine,
        "drain-machine m-17 --shard s-1 | drain-machine m-17 --shard s-1 --exclude",
    ),
    (
        "Machines",
        "exclude-machine",
        machines.exclude_machine,
        "exclude-machine m-17 --shard s-1 | exclude-machine m-17 --shard s-1 --include",
    ),
    (
        "Assignments",
        "list-domain-assignments",
        domains.list_domain_assignments,
        "list-domain-assignments --shard s-1",
    ),
    (
        "Assignments",
        "assign-domain",
        domains.assign_domain,
        f"assign-domain {_ZONE} s-1",
    ),
    (
        "Assignments",
        "unassign-domain",
        domains.unassign_domain,
        f"unassign-domain {_ZONE}",
    ),
    ("Assignments", "list-quotas", quotas.list_quotas, "list-quotas"),
    (
        "Assignments",
        "set-quota",
        quotas.set_quota,
        "set-quota aws s-1=500 s-2=300 --region eu-1 | set-quota aws --region eu-1 --remove",
    ),
    ("Assignments", "list-providers", providers.list_providers, "list-providers"),
    (
        "Assignments",
        "register-provider",
        providers.register_provider,
        "register-provider aws aws-provider:9001 --region eu-1 --shard s-1",
    ),
    ("Assignments", "remove-provider", providers.remove_provider, "remove-provider aws"),
    ("Between shards", "moves", rebalancing.moves, "moves | moves --all"),
    (
        "Between shards",
        "list-instructions",
        rebalancing.list_instructions,
        "list-instructions --shard s-1",
    ),
)
for _panel, _name, _command, _examples in _COMMANDS:
    app.command(
        _name,
        rich_help_panel=_panel,
        cls=HelpfulCommand,
        epilog=examples(*(f"{PROGRAM} {example}" for example in _examples.split(" | "))),
    )(_command)
app.add_typer(snapshots.app, name="snapshot", rich_help_panel="Backup")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {distribution_version('bigfleet')}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    coordinator: Annotated[
        list[str] | None,
        typer.Option(
            "--coordinator",
            help=f"A coordinator's address; may be repeated. Default: {DEFAULT_COORDINATOR}",
            metavar="HOST:PORT",
            envvar="BIGFLEETCTL_COORDINATOR",
            show_default=False,
        ),
    ] = None,
    shard_addr: Annotated[
        list[str] | None,
        typer.Option(
            "--shard-addr",
            help="Ask this shard, without a coordinator; may be repeated.",
            metavar="HOST:PORT",
            envvar="BIGFLEETCTL_SHARD_ADDR",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(
            help="How long to wait for each answer.",
            metavar="DURATION",
            envvar="BIGFLEETCTL_TIMEOUT",
        ),
    ] = "10s",
    tls_cert: Annotated[
        str, typer.Option(help="Certificate, for mTLS.", envvar="BIGFLEETCTL_TLS_CERT")
    ] = "",
    tls_key: Annotated[str, typer.Option(help="Its key.", envvar="BIGFLEETCTL_TLS_KEY")] = "",
    tls_ca: Annotated[
        str, typer.Option(help="CA bundle of the fleet.", envvar="BIGFLEETCTL_TLS_CA")
    ] = "",
    output: Annotated[
        Output,
        typer.Option("--output", "-o", help="How to print.", envvar="BIGFLEETCTL_OUTPUT"),
    ] = Output.TABLE,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No signs of progress, no sentences.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Look into a running fleet, and tell it what to do."""
    options = Options(
        coordinators=addresses(coordinator, "--coordinator"),
        shards=addresses(shard_addr, "--shard-addr"),
        timeout=timeout,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_ca=tls_ca,
        output=output,
        quiet=quiet,
    )
    edge = ctx.obj if isinstance(ctx.obj, Edge) else Edge()
    ctx.obj = Ctl(options, edge)


def main() -> None:
    """Run the command line."""
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = _WIDE
    run_program(app, prog_name=PROGRAM)


if __name__ == "__main__":
    main()

"""`kubectl-bigfleet`: the program, which kubectl finds on the PATH as `kubectl bigfleet`.

Commands leave reading to `collect`, and the words to `why_pod`, `why_node`, `listings`, `checks`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version as distribution_version
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bigfleet.cli.ctl.context import Options, addresses
from bigfleet.cli.ctl.groups import CtlGroup
from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.help_format import HelpfulCommand, examples
from bigfleet.cli.kubectl.context import PROGRAM, Plugin, PluginOptions, plugin_of, run
from bigfleet.cli.output import Output, out, print_document
from bigfleet.cli.program import run_program

if TYPE_CHECKING:
    from bigfleet.cli.kubectl.listings import PluginListing

_WIDE: Final = 200
_PODS: Final = frozenset({"pod", "pods", "po"})
_NODES: Final = frozenset({"node", "nodes", "no"})


class PluginGroup(CtlGroup):
    """The commands of kubectl-bigfleet."""

    program = PROGRAM


app = typer.Typer(
    name=PROGRAM,
    cls=PluginGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="What BigFleet does in this cluster, and why. Changes nothing.\n\n"
    "Global options may stand before or after the command.",
    epilog=examples(
        "kubectl bigfleet why pod/web-0 -n shop",
        "kubectl bigfleet plan",
        "kubectl bigfleet requests --context east --output json",
    ),
)


def why(
    ctx: typer.Context,
    target: Annotated[list[str], typer.Argument(help="pod/NAME or node/NAME.")],
) -> None:
    """Say in one paragraph why a Pod waits or a node is there, and which command to run next."""
    kind, name = _target(target)
    from bigfleet.cli.kubectl.answer import print_answer
    from bigfleet.cli.kubectl.collect import node_answer, pod_answer

    plugin = plugin_of(ctx)
    body = pod_answer(plugin, name) if kind in _PODS else node_answer(plugin, name)
    answer = run(plugin, body, f"looking at {kind}/{name}")
    print_answer(answer, plugin.options.fleet.output)


def requests(
    ctx: typer.Context,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Those of every namespace.")
    ] = False,
) -> None:
    """List the CapacityRequests of the namespace, those that wait first."""
    from bigfleet.cli.kubectl.collect import request_table

    plugin = plugin_of(ctx)
    _print(plugin, run(plugin, request_table(plugin, all_namespaces), "reading requests"))


def upcoming(ctx: typer.Context) -> None:
    """List the machines on their way into this cluster, in it and on their way out."""
    from bigfleet.cli.kubectl.collect import upcoming_table

    plugin = plugin_of(ctx)
    _print(plugin, run(plugin, upcoming_table(plugin), "reading UpcomingNodes"))


def plan(ctx: typer.Context) -> None:
    """Show every need of this cluster with its machines and its verdict."""
    from bigfleet.cli.kubectl.collect import need_table

    plugin = plugin_of(ctx)
    _print(plugin, run(plugin, need_table(plugin), "reading needs"))


def doctor(ctx: typer.Context) -> None:
    """Check the parts of BigFleet in this cluster, and say how to fix what is wrong."""
    from bigfleet.cli.doctor.command import print_findings
    from bigfleet.cli.kubectl.collect import findings

    plugin = plugin_of(ctx)
    found = run(plugin, findings(plugin), "checking")
    if plugin.options.fleet.output is Output.TABLE:
        print_findings(found)
    else:
        print_document([finding.document() for finding in found], plugin.options.fleet.output)
    failed = sum(finding.verdict.value == "wrong" for finding in found)
    if failed:
        raise FailureError(f"{failed} of {len(found)} checks failed")


_COMMANDS: Final[tuple[tuple[str, Callable[..., None], tuple[str, ...]], ...]] = (
    ("why", why, ("why pod/web-0", "why pod/web-0 -n shop", "why node/worker-1")),
    ("requests", requests, ("requests", "requests -A --output json")),
    ("upcoming", upcoming, ("upcoming",)),
    ("plan", plan, ("plan", "plan --shard-addr 127.0.0.1:7780 --cluster-id shop")),
    ("doctor", doctor, ("doctor",)),
)
for _name, _command, _examples in _COMMANDS:
    app.command(
        _name,
        cls=HelpfulCommand,
        epilog=examples(*(f"{PROGRAM} {example}" for example in _examples)),
    )(_command)


def _target(words: list[str]) -> tuple[str, str]:
    """Kind and name of `pod/web-0`, or of `pod web-0`."""
    kind, _, name = "/".join(words).partition("/")
    kind = kind.lower()
    if kind not in _PODS | _NODES or not name or "/" in name:
        raise InputError(f"{' '.join(words)!r} is neither pod/NAME nor node/NAME")
    return kind, name


def _print(plugin: Plugin, listing: PluginListing) -> None:
    from bigfleet.cli.kubectl.answer import print_answer

    print_answer(listing.answer, plugin.options.fleet.output, listing.table)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {distribution_version('bigfleet')}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace; else that of the context.")
    ] = "",
    context: Annotated[str, typer.Option(help="Context of the kubeconfig.")] = "",
    kubeconfig: Annotated[str, typer.Option(help="Kubeconfig file, as kubectl reads it.")] = "",
    cluster_id: Annotated[
        str,
        typer.Option(
            help="Id of this cluster in the fleet. Default: as the operator's Deployment says.",
            envvar="BIGFLEET_CLUSTER_ID",
            show_default=False,
        ),
    ] = "",
    shard_addr: Annotated[
        list[str] | None,
        typer.Option(
            help="The shard to ask; may be repeated. Default: as the operator's Deployment says.",
            metavar="HOST:PORT",
            envvar="BIGFLEETCTL_SHARD_ADDR",
            show_default=False,
        ),
    ] = None,
    coordinator: Annotated[
        list[str] | None,
        typer.Option(
            help="A coordinator that names the shards; may be repeated.",
            metavar="HOST:PORT",
            envvar="BIGFLEETCTL_COORDINATOR",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(help="How long to wait for the shard.", metavar="DURATION"),
    ] = "5s",
    tls_cert: Annotated[
        str, typer.Option(help="Certificate for the shard.", envvar="BIGFLEETCTL_TLS_CERT")
    ] = "",
    tls_key: Annotated[str, typer.Option(help="Its key.", envvar="BIGFLEETCTL_TLS_KEY")] = "",
    tls_ca: Annotated[
        str, typer.Option(help="CA bundle of the fleet.", envvar="BIGFLEETCTL_TLS_CA")
    ] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No signs of progress.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """What BigFleet does in this cluster, and why."""
    before = ctx.obj if isinstance(ctx.obj, Plugin) else Plugin()
    fleet = Options(
        addresses(coordinator, "--coordinator"), addresses(shard_addr, "--shard-addr"),
        timeout, tls_cert, tls_key, tls_ca, output, quiet,
    )  # fmt: skip
    options = PluginOptions(namespace, context, kubeconfig, cluster_id, fleet)
    ctx.obj = replace(before, options=options)


def main() -> None:
    """Run the command line."""
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = _WIDE
    run_program(app, prog_name=PROGRAM)


if __name__ == "__main__":
    main()

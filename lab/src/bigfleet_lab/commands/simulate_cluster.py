"""`bigfleet simulate cluster`: many simulated clusters against a running shard."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.help_format import examples
from bigfleet.cli.output import Form, Output, Quiet, out, plain, print_document, table

if TYPE_CHECKING:
    from bigfleet_lab.simcluster.summary import Summary

CLUSTER_EXAMPLES = examples(
    "bigfleet simulate cluster --shard 127.0.0.1:7780 --clusters 3",
    "bigfleet simulate cluster --shard 127.0.0.1:7780 --clusters 1000 --duration 60s -o json",
)


def cluster(
    shard: Annotated[str, typer.Option(help="The shard's address.", metavar="HOST:PORT")],
    clusters: Annotated[int, typer.Option(help="How many clusters.")] = 10,
    rows: Annotated[int, typer.Option(help="Rows of demand of each.")] = 20,
    interval: Annotated[
        str, typer.Option(help="Time between two roll-ups.", metavar="DURATION")
    ] = "10s",
    duration: Annotated[
        str, typer.Option(help="How long; until a signal where empty.", metavar="DURATION")
    ] = "",
    churn: Annotated[float, typer.Option(help="Share of objects that change per roll-up.")] = 0.02,
    seed: Annotated[int, typer.Option(help="Of all random choices.", min=0)] = 1,
    prefix: Annotated[str, typer.Option(help="Clusters are called PREFIX-0000 and on.")] = "sim",
    tls_cert: Annotated[str, typer.Option(help="Certificate; may name {cluster}.")] = "",
    tls_key: Annotated[str, typer.Option(help="Its key.")] = "",
    tls_ca: Annotated[str, typer.Option(help="CA bundle.")] = "",
    output: Form = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Speak the operator's side of the session for many clusters, and say what came of it."""
    from bigfleet.observe.settings import parse_duration
    from bigfleet_lab.simcluster.errors import SimClusterError
    from bigfleet_lab.simcluster.run import RunOptions, run

    try:
        options = RunOptions(
            shard,
            clusters=clusters,
            rows=rows,
            interval_seconds=parse_duration(interval),
            duration_seconds=parse_duration(duration) if duration else None,
            churn=churn,
            seed=seed,
            prefix=prefix,
            tls_cert=tls_cert or None,
            tls_key=tls_key or None,
            tls_ca=tls_ca or None,
        )
    except (ValueError, SimClusterError) as error:
        raise InputError(str(error)) from error
    try:
        summary = run(options, (lambda _: None) if quiet else lambda t: print(t, file=sys.stderr))
    except SimClusterError as error:
        raise FailureError(str(error)) from error
    if output is Output.TABLE:
        view = table("", "", title="Simulated clusters")
        for what, much in summary.lines():
            view.add_row(plain(what), plain(much))
        out.print(view)
    else:
        print_document(summary.document(), output)
    if not summary.ok:
        raise FailureError(_why(summary, shard))


def _why(summary: Summary, shard: str) -> str:
    """What kept clusters from being connected at the end."""
    if summary.connected or not summary.trouble:
        few = f"{summary.connected:,} of {summary.clusters:,} clusters were connected at the end"
        return f"{few}: {summary.trouble}" if summary.trouble else few
    tls = "--tls-cert, --tls-key and --tls-ca where it speaks TLS"
    return f"no session with the shard at {shard}: {summary.trouble}; check that it runs, and {tls}"

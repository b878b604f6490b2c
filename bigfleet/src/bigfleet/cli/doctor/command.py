"""`bigfleet doctor`: run every check, print what was found, and how to fix what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bigfleet.cli.ctl.context import addresses
from bigfleet.cli.doctor.findings import Finding, FindingKind
from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.extras import KUBERNETES, require
from bigfleet.cli.help_format import examples
from bigfleet.cli.output import Form, Output, out, plain, print_document, stage

if TYPE_CHECKING:
    from bigfleet.provider import ProviderSite

EXAMPLES: Final = examples(
    "bigfleet doctor",
    "bigfleet doctor --coordinator 127.0.0.1:7790",
    "bigfleet doctor --kubeconfig ~/.kube/config --output json",
)
_STYLES: Final = {
    FindingKind.FINE: "green",
    FindingKind.NOTE: "yellow",
    FindingKind.WRONG: "bold red",
}


def doctor(
    coordinator: Annotated[
        list[str] | None, typer.Option(help="A coordinator; may be repeated.", metavar="HOST:PORT")
    ] = None,
    shard: Annotated[
        list[str] | None, typer.Option(help="A shard; may be repeated.", metavar="HOST:PORT")
    ] = None,
    provider_addr: Annotated[
        list[str] | None,
        typer.Option(
            help="A provider, as the shard is given it.", metavar="[NAME=]HOST:PORT[@REGION]"
        ),
    ] = None,
    data_dir: Annotated[Path, typer.Option(help="Where state is kept.")] = Path(".bigfleet"),
    kubeconfig: Annotated[str, typer.Option(help="Look at this cluster, too.")] = "",
    context: Annotated[str, typer.Option(help="Context of the kubeconfig.")] = "",
    tls_cert: Annotated[str, typer.Option(help="Certificate.")] = "",
    tls_key: Annotated[str, typer.Option(help="Its key.")] = "",
    tls_ca: Annotated[str, typer.Option(help="CA bundle.")] = "",
    output: Form = Output.TABLE,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what is wrong.")] = False,
) -> None:
    """Check an installation, and say how to fix what is wrong. Changes nothing."""
    coordinators = addresses(coordinator, "--coordinator")
    shards = addresses(shard, "--shard")
    with stage("Looking", quiet=quiet):
        found = asyncio.run(
            _look(
                data_dir, coordinators, shards, provider_addr or [],
                (tls_cert, tls_key, tls_ca), kubeconfig, context,
            )
        )  # fmt: skip
    shown = [each for each in found if not quiet or each.verdict is FindingKind.WRONG]
    if output is Output.TABLE:
        print_findings(shown)
    else:
        print_document([finding.document() for finding in shown], output)
    bad = sum(finding.verdict is FindingKind.WRONG for finding in found)
    if bad:
        raise FailureError(f"{bad} of {len(found)} checks failed")


async def _look(
    data_dir: Path, coordinators: Sequence[str], shards: Sequence[str], providers: Sequence[str],
    tls: tuple[str, str, str], kubeconfig: str, context: str,
) -> list[Finding]:  # fmt: skip
    from bigfleet.cli.doctor.fleet import look_at_fleet
    from bigfleet.cli.doctor.here import look_here
    from bigfleet.wire.errors import TlsFilesError
    from bigfleet.wire.tls import TlsFiles

    sites = _sites(providers)
    try:
        files = TlsFiles.of(*tls)
    except TlsFilesError as error:
        raise InputError(str(error)) from None
    found = await asyncio.to_thread(lambda: list(look_here(data_dir, files)))
    try:
        credentials = files.read() if files is not None else None
    except TlsFilesError:
        # Reported already; with such files no process of the fleet can be called.
        coordinators, shards, sites, credentials = [], [], [], None
    found += [f async for f in look_at_fleet(coordinators, shards, sites, credentials)]
    if kubeconfig or context:
        require("bigfleet doctor --kubeconfig", "operator", *KUBERNETES)
        from bigfleet.cli.doctor.cluster import look_at_cluster

        found += [f async for f in look_at_cluster(kubeconfig, context)]
    return found


def _sites(texts: Sequence[str]) -> list[ProviderSite]:
    """The providers of `--provider-addr`."""
    from bigfleet.shard.server.settings import provider_site

    try:
        return [provider_site(text) for text in texts]
    except ValueError as error:
        raise InputError(f"--provider-addr: {error}") from None


def print_findings(found: Iterable[Finding]) -> None:
    """Line by line; what is wrong with its remedy below."""
    for finding in found:
        style = _STYLES[finding.verdict]
        out.print(
            plain(f"{finding.verdict.value:<6}", style),
            plain(f"{finding.about}: ", "bold"),
            plain(finding.text),
            sep="",
            soft_wrap=True,
        )
        if finding.remedy:
            out.print(plain(f"       -> {finding.remedy}"), soft_wrap=True)

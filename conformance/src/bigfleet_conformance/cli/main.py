"""`bigfleet-conformance`: run, list, explain, verify."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bigfleet_conformance.cli import show
from bigfleet_conformance.cli.progress import Lines, Terminal
from bigfleet_conformance.errors import ConformanceError, UsageError
from bigfleet_conformance.options import ClientTls, Options, Target
from bigfleet_conformance.registry import Area, all_behaviours
from bigfleet_conformance.report import files
from bigfleet_conformance.report.model import Report, suite_version
from bigfleet_conformance.report.verify import complaints
from bigfleet_conformance.results import required_by
from bigfleet_conformance.runner.execute import Observer, Silent
from bigfleet_conformance.runner.run import run as run_suite

app = typer.Typer(
    name="bigfleet-conformance",
    help="Says what holds for a BigFleet capacity provider, behaviour by behaviour.",
    epilog="Examples: bigfleet-conformance run --target 127.0.0.1:9001 --quick  |  "
    "bigfleet-conformance explain B302",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
out = Console()
err = Console(stderr=True)
OUTPUTS = ("table", "json", "yaml")


def seconds(text: str) -> float:
    """A duration: 90s, 2m, 500ms; a plain number is seconds."""
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if text.endswith(suffix):
            text, scale = text.removesuffix(suffix), factor
            break
    else:
        scale = 1.0
    try:
        return float(text) * scale
    except ValueError:
        raise UsageError(f"{text!r} is not a duration such as 30s or 2m") from None


def split(values: list[str]) -> tuple[str, ...]:
    """Options that may be repeated or separated by commas."""
    return tuple(word for value in values for word in value.replace(",", " ").split())


def checked_output(output: str) -> str:
    """table, json or yaml."""
    if output not in OUTPUTS:
        raise UsageError(f"--output is table, json or yaml, not {output!r}")
    return output


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Certify capacity providers."""
    if version:
        out.print(f"bigfleet-conformance {suite_version()}", highlight=False)
        raise typer.Exit


@app.command(
    epilog="Examples: bigfleet-conformance run --target 127.0.0.1:9001 --quick  |  "
    'bigfleet-conformance run --exec "bigfleet-provider-x" --profile all --out report'
)
def run(
    target: Annotated[str, typer.Option(help="host:port of a running provider")] = "",
    provider: Annotated[str, typer.Option(help="boot bigfleet-provider-NAME")] = "",
    exec_: Annotated[str, typer.Option("--exec", help="boot this command")] = "",
    profile: Annotated[list[str], typer.Option(help="profile or all; may be repeated")] = ["core"],  # noqa: B006
    scope: Annotated[str, typer.Option(help="full, or base: the 93 alone are required")] = "full",
    claim: Annotated[list[str], typer.Option(help="a capability claimed by hand")] = [],  # noqa: B006
    substrate: Annotated[str, typer.Option(help="memory, or http: the cloud's fake")] = "memory",
    quick: Annotated[bool, typer.Option("--quick", help="the baseline alone")] = False,
    only: Annotated[list[str], typer.Option(help="ids or patterns, such as B3*")] = [],  # noqa: B006
    skip: Annotated[list[str], typer.Option(help="ids or patterns to leave out")] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="of every random choice")] = 1,
    seed_count: Annotated[int, typer.Option(help="slots of a booted provider")] = 256,
    scale_seed: Annotated[int, typer.Option(help="slots of the scale lane")] = 8_000,
    soak: Annotated[str, typer.Option(help="length of the soak")] = "10s",
    port: Annotated[int, typer.Option(help="base port; 0 takes free ones")] = 9099,
    jobs: Annotated[int, typer.Option(help="behaviours at a time")] = 8,
    settle_timeout: Annotated[str, typer.Option(help="longest wait for a state")] = "30s",
    slow_target: Annotated[str, typer.Option(help="a slow instance beside the target")] = "",
    fault_exec: Annotated[
        str, typer.Option(help="the fault subject, when the provider has no fault slots")
    ] = "bigfleet-fault-provider",
    tls_ca: Annotated[Path | None, typer.Option(help="CA of the provider")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="client certificate")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="client key")] = None,
    tls_server_name: Annotated[str, typer.Option(help="name in the certificate")] = "",
    tls_ca_key: Annotated[
        Path | None, typer.Option(help="the CA's key: one certificate per shard is minted")
    ] = None,
    name: Annotated[str, typer.Option(help="name of a target, for the report")] = "",
    provider_version: Annotated[str, typer.Option(help="version of a target")] = "",
    out_dir: Annotated[Path | None, typer.Option("--out", help="folder for the report")] = None,
    output: Annotated[str, typer.Option(help="summary as table, json or yaml")] = "table",
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="leave used machines as they are")] = False,
) -> None:
    """Run the suite on one provider."""
    checked_output(output)
    if tls_ca is None and (tls_cert or tls_key or tls_ca_key):
        raise UsageError("TLS needs --tls-ca")
    tls = ClientTls(tls_ca, tls_cert, tls_key, tls_server_name, tls_ca_key) if tls_ca else None
    subject = Target(
        address=target,
        provider=provider,
        command=exec_,
        name=name,
        version=provider_version,
        slow_address=slow_target,
        fault_command=fault_exec,
        tls=tls,
    )
    options = Options(
        profiles=split(profile),
        scope=scope,
        claims=split(claim),
        substrate=substrate,
        quick=quick,
        only=split(only),
        skip=split(skip),
        seed=seed,
        seed_count=seed_count,
        scale_seed=scale_seed,
        soak_s=seconds(soak),
        port=port,
        jobs=jobs,
        settle_s=seconds(settle_timeout),
        out=out_dir,
        keep=keep,
    )
    report = watched(subject, options, quiet=quiet or output != "table")
    if out_dir is not None:
        files.write(report.document, out_dir)
    show.summary(report, out, output)
    raise typer.Exit(report.exit_code)


def watched(target: Target, options: Options, *, quiet: bool) -> Report:
    """A run with whatever progress fits."""

    async def ended_by_a_signal(observer: Observer) -> Report:
        """A run that ends what it started when it is told to stop."""
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await run_suite(target, options, observer)

    def go(observer: Observer) -> Report:
        return asyncio.run(ended_by_a_signal(observer))

    if quiet:
        return go(Silent())
    err.print(f"seed {options.seed}", highlight=False)
    with Terminal(err) if err.is_terminal else Lines(err) as observer:
        return go(observer)


@app.command("list", epilog="Example: bigfleet-conformance list --profile fault --output json")
def list_(
    profile: Annotated[str, typer.Option(help="what this profile requires")] = "",
    area: Annotated[str, typer.Option(help="one area")] = "",
    output: Annotated[str, typer.Option(help="table, json or yaml")] = "table",
) -> None:
    """List the behaviours."""
    checked_output(output)
    rows = list(all_behaviours().values())
    if profile:
        from bigfleet_conformance.registry import Profile

        if profile not in set(Profile):
            raise UsageError(f"unknown profile {profile!r}; choose from {', '.join(Profile)}")
        rows = [b for b in rows if required_by(b, [Profile(profile)], "full")]
    if area:
        if area not in set(Area):
            raise UsageError(f"unknown area {area!r}; choose from {', '.join(Area)}")
        rows = [b for b in rows if b.area == area]
    show.listing(rows, out, output)


@app.command(
    epilog="Examples: bigfleet-conformance explain B302  |  "
    "bigfleet-conformance explain B302 --output json"
)
def explain(
    id: Annotated[str, typer.Argument(help="such as B302")],
    output: Annotated[str, typer.Option(help="table, json or yaml")] = "table",
) -> None:
    """Say what a behaviour is about."""
    checked_output(output)
    found = all_behaviours().get(id.upper())
    if found is None:
        raise UsageError(f"there is no behaviour {id!r}; `bigfleet-conformance list` shows all")
    show.explanation(found, out, output)


@app.command(
    epilog="Examples: bigfleet-conformance verify conformance/reports/0.1.0/x/1.0.0  |  "
    "bigfleet-conformance verify report --output json"
)
def verify(
    folder: Annotated[Path, typer.Argument(help="a stored report")],
    output: Annotated[str, typer.Option(help="table, json or yaml")] = "table",
) -> None:
    """Check that a stored report is whole and unmodified."""
    checked_output(output)
    found = complaints(folder)
    if output != "table":
        document = {"folder": str(folder), "whole": not found, "complaints": list(found)}
        out.print(show.as_text(document, output), markup=False, highlight=False, soft_wrap=True)
    else:
        for complaint in found:
            err.print(complaint, markup=False, highlight=False)
        if not found:
            out.print(f"{folder}: whole and unmodified", highlight=False)
    if found:
        raise typer.Exit(1)


def main() -> None:
    """Run the command line; a bad input is one line and exit code 2."""
    try:
        app()
    except ConformanceError as error:
        err.print(f"bigfleet-conformance: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except (KeyboardInterrupt, asyncio.CancelledError):
        err.print("bigfleet-conformance: stopped")
        sys.exit(130)


if __name__ == "__main__":
    main()

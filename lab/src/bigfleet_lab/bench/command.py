"""`bigfleet bench`: what a cycle costs, with every result checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.help_format import HelpfulCommand, HelpfulGroup, examples
from bigfleet.cli.output import (
    Form,
    Output,
    Quiet,
    err,
    out,
    plain,
    print_document,
    stage,
    steps,
    table,
    write_document,
)

if TYPE_CHECKING:
    from bigfleet_lab.bench.benchmark import Measurement

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure the engine; every result is checked.",
    cls=HelpfulGroup,
    epilog=examples("bigfleet bench engine --workload cold --machines 5000"),
)

ENGINE_EXAMPLES = examples(
    "bigfleet bench engine --scenario examples/first-fleet.json --cycles 200",
    "bigfleet bench engine --workload cold --machines 50000 --output json",
    "bigfleet bench engine --suite",
)
SUITE_EXAMPLES = examples(
    "bigfleet bench suite --out bench/results.json",
    "bigfleet bench suite --sizes 5000 --output json",
)
FIRST_EXAMPLES = examples("bigfleet bench first-cycle --machines 50000")
Cycles = Annotated[int, typer.Option(help="Timed cycles.", min=1, max=1_000_000)]
JsonOut = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the result as JSON into a file.", metavar="OUT"),
]


@app.command(cls=HelpfulCommand, epilog=ENGINE_EXAMPLES)
def engine(
    scenario: Annotated[Path | None, typer.Option(help="A scenario file.", metavar="FILE")] = None,
    workload: Annotated[
        str | None, typer.Option(help="A made scenario: steady, gangs, gangs-whole, cold, ...")
    ] = None,
    machines: Annotated[int, typer.Option(help="Machines of a workload.")] = 5_000,
    suite: Annotated[bool, typer.Option("--suite", help="Run the whole table.")] = False,
    cycles: Cycles = 50,
    workers: Annotated[int, typer.Option(help="Workers of phase 1.", min=1, max=64)] = 1,
    steady: Annotated[
        bool | None,
        typer.Option(
            "--steady/--repeat",
            help="Change 3 % of the rows each cycle, or repeat the same cycle. Files whose name "
            "begins with steady change, others repeat.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all random choices.", min=0)] = 1,
    json_out: JsonOut = None,
    output: Form = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Time normalise and the three phases, and what they change in the columns."""
    if sum((scenario is not None, workload is not None, suite)) != 1:
        raise InputError("give one of --scenario FILE, --workload NAME and --suite")
    if suite:
        _run_suite(json_out, "engine", (), {}, output, quiet=quiet)
        return
    from bigfleet_lab.bench.bench_worlds import measure_file, measure_workload

    if scenario is not None:
        with stage(f"Reading {scenario}", quiet=quiet):
            prepared = measure_file(scenario, workers, steady)
    else:
        with stage(f"Making {workload} with {machines} machines", quiet=quiet):
            prepared = measure_workload(workload or "", machines, workers, steady, seed)
    with steps("cycles", cycles, quiet=quiet) as progress:
        found = prepared(cycles, seed, progress.advance)
    if found.complaints:
        raise FailureError(f"the result is wrong, so there is no time: {found.complaints[0]}")
    if json_out is not None:
        write_document(found.to_json(), json_out)
    if output is not Output.TABLE:
        print_document(found.to_json(), output)
    elif str(json_out) != "-":
        _print_measurement(found, cycles)


@app.command("suite", cls=HelpfulCommand, epilog=SUITE_EXAMPLES)
def suite_command(
    path: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The results file; rows not measured now stay in it.", metavar="FILE"
        ),
    ] = None,
    only: Annotated[str, typer.Option(help="A part: engine, or one of --outside.")] = "",
    sizes: Annotated[
        str, typer.Option(help="Numbers of machines, as in 5000,50000; all by default.")
    ] = "",
    outside: Annotated[
        list[str] | None,
        typer.Option(
            help="A part that a command measures and prints as rows of JSON.",
            metavar="PART=COMMAND",
        ),
    ] = None,
    output: Form = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Run the benchmarks of the specification and write the results with the machine's facts."""
    _run_suite(path, only, _sizes(sizes), _outside(outside or []), output, quiet=quiet)


@app.command("first-cycle", cls=HelpfulCommand, epilog=FIRST_EXAMPLES)
def first_cycle(
    machines: Annotated[int, typer.Option(help="Machines of the fleet.")] = 50_000,
    output: Form = Output.TABLE,
) -> None:
    """Time the first cycle of this process, the engine's import included, in seconds."""
    from bigfleet_lab.bench.bench_worlds import first_cycle_seconds

    seconds = round(first_cycle_seconds(machines), 3)
    if output is Output.TABLE:
        print(f"{seconds:.3f}")
    else:
        print_document({"machines": machines, "seconds": seconds}, output)


def _run_suite(
    path: Path | None,
    only: str,
    sizes: tuple[int, ...],
    outside: Mapping[str, str],
    output: Output,
    *,
    quiet: bool,
) -> None:
    from bigfleet_lab.bench.results import print_results, results_document, with_earlier
    from bigfleet_lab.bench.suite import PARTS, benchmarks, outside_rows

    parts = (*PARTS, *outside)
    if only and only not in parts:
        raise InputError(f"--only {only}: there is no such part: use one of {', '.join(parts)}")
    known = list(benchmarks())
    _check_sizes(sizes, {bench.size for bench in known})
    chosen = [bench for bench in known if not sizes or bench.size in sizes]
    if only in outside:
        chosen = []
    rows = []
    for number, bench in enumerate(chosen, start=1):
        if not quiet:
            err.print(plain(f"[{number}/{len(chosen)}] {bench.name}"))
        with stage(bench.name, quiet=quiet):
            rows.append(bench.row())
    for part, command in outside.items():
        if only in ("", part):
            rows += outside_rows(part, command, quiet=quiet)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = with_earlier(rows, path) if only or sizes else rows
        write_document(results_document(kept), path)
    if output is Output.TABLE:
        print_results(rows)
    else:
        print_document(results_document(rows), output)
    failed = [str(row["name"]) for row in rows if not row["ok"]]
    if failed:
        raise FailureError(f"{len(failed)} of {len(rows)} not ok: {', '.join(failed)}")


def _outside(given: Sequence[str]) -> dict[str, str]:
    found = dict(word.partition("=")[::2] for word in given)
    if not all(part and command for part, command in found.items()):
        raise InputError(f"--outside {' '.join(given)}: write PART=COMMAND")
    return found


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise InputError(f"--sizes {text!r}: write numbers, as in 5000,50000") from None


def _check_sizes(sizes: tuple[int, ...], known: set[int]) -> None:
    """Refuse a size nothing is measured at: no result would look like none that is wrong."""
    for size in sizes:
        if size not in known:
            measured = ", ".join(map(str, sorted(known)))
            raise InputError(f"--sizes {size}: nothing is measured at that size: use {measured}")


def _print_measurement(found: Measurement, cycles: int) -> None:
    made = table("", "p50>", "p95>", "p99>", "max>", title=f"{cycles} cycles, ms")
    for name, times in (("whole", found.whole), *found.phases.items()):
        made.add_row(name, *(f"{value:,.3f}" for value in times.summary().values()))
    out.print(made)
    counts = ", ".join(f"{n:,} {kind}" for kind, n in found.actions.items()) or "no actions"
    out.print(f"last cycle: {counts}; {found.unmet:,} needs unmet")
    out.print(f"digest {found.digest}")
    peak = found.peak_memory_bytes / 2**20
    out.print(f"peak memory {peak:,.0f} MiB; {found.bytes_per_machine:.1f} bytes a machine")

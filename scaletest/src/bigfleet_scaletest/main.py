"""The command `bigfleet-scaletest`: run a profile, list what there is, look at an estimate.

Exit code 0: passed. 1: a gate or an action failed. 2: the input cannot be run. 3: the run broke.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import uvloop

from bigfleet.cli.errors import FailureError
from bigfleet_lab.gates.summary import EXIT_INPUT, EXIT_PASSED, RunSummary
from bigfleet_lab.profiles.catalogue import PROFILES, SUBSTRATES, load_profile, names
from bigfleet_lab.profiles.errors import ProfileError
from bigfleet_lab.profiles.fleet_plan import nominal_pods
from bigfleet_scaletest.local.layout import LocalLayout
from bigfleet_scaletest.local.preflight import check, estimated_bytes, free_ports
from bigfleet_scaletest.local.run import LocalRun
from bigfleet_scaletest.results.output import identity, summarise, write_all
from bigfleet_scaletest.run_options import PlannedRun, add_flags, options_of, plan_run

_SAY_EVERY_SECONDS: Final = 10.0
_CHECKPOINT: Final = "the run was killed before its end"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = _parser().parse_args(argv)
    try:
        code: int = given.command(given)
    except ProfileError as error:
        print(f"bigfleet-scaletest: {error}", file=sys.stderr)
        return EXIT_INPUT
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bigfleet-scaletest", description=__doc__, allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run a profile on a substrate", allow_abbrev=False)
    add_flags(run)
    run.add_argument("--output", type=Path, default=Path(".bigfleet/scaletest"), metavar="DIR")
    run.add_argument("--etcd", type=Path, help="the etcd for three coordinators", metavar="PATH")
    run.add_argument("--dry-run", action="store_true", help="check everything, start nothing")
    run.add_argument("--quiet", action="store_true", help="the verdict only")
    run.set_defaults(command=_run)
    listing = commands.add_parser("list", help="profiles and substrates that are shipped")
    listing.set_defaults(command=_list)
    return parser


def _list(_: argparse.Namespace) -> int:
    for name in names(PROFILES):
        profile = load_profile(name)
        print(f"{name:22} {profile.machines:>9,} machines  {profile.description}")
    print(f"substrates: {', '.join(names(SUBSTRATES))}")
    return EXIT_PASSED


def _run(given: argparse.Namespace) -> int:
    run = plan_run(options_of(given))
    print(_estimate(run), file=sys.stderr)
    if run.substrate.type == "local-process":
        check(run, given.etcd)
    if given.dry_run:
        print(f"{run.profile.name} on {run.substrate.name}: can be run")
        return EXIT_PASSED
    if run.substrate.type != "local-process":
        raise ProfileError(
            run.substrate.name,
            "only local-process is run by this version; check the files with --dry-run",
        )
    folder: Path = given.output / run.profile.name
    work = folder / f"work-{int(time.time())}"
    work.mkdir(parents=True)
    return uvloop.run(_local(run, folder, work, given.etcd, quiet=given.quiet))


def _estimate(run: PlannedRun) -> str:
    profile, spec = run.profile, run.substrate
    load, clusters, pods = profile.load, run.clusters, nominal_pods(profile)
    hosts = 1 if spec.type == "local-process" else -(-clusters // (spec.clusters_per_host or 1)) + 1
    hours = (load.ramp_seconds + load.soak_seconds + 600) / 3600
    text = (
        f"{profile.name} on {spec.name}: {profile.machines:,} machines, {pods:,} pods "
        f"in {clusters} clusters, {profile.shards} shards, {profile.coordinators} coordinators, "
        f"{hosts} hosts, about {hours:.1f} h and ${hosts * spec.usd_per_host_hour * hours:.2f}"
    )
    if spec.type == "local-process":
        text += f", {estimated_bytes(run) / 1e9:.1f} GB of memory"
    if pods / load.ramp_seconds > clusters * spec.bind_pods_per_second:
        text += "; warning: schedulers cannot bind so many pods within rampSeconds"
    return text


async def _local(
    run: PlannedRun, folder: Path, work: Path, etcd: Path | None, *, quiet: bool
) -> int:
    layout = LocalLayout(run, work, free_ports(LocalLayout.port_count(run)), etcd)
    which, stop = identity(run), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def checkpoint() -> None:
        summarise(run, which, None, _CHECKPOINT).write(folder / "summary.json")

    local = LocalRun(layout, _Speaker(quiet).say, checkpoint)
    broken = ""
    try:
        await local.run(stop)
    except FailureError as error:
        broken = str(error)
    summary = summarise(run, which, local, broken)
    write_all(folder, summary, local)
    _tell(summary, folder)
    return summary.exit_code


class _Speaker:
    """Progress: every phase and action, and a line now and then in between."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._next = 0.0

    def say(self, text: str) -> None:
        routine = text.endswith(" left")
        if self._quiet or (routine and time.monotonic() < self._next):
            return
        if routine:
            self._next = time.monotonic() + _SAY_EVERY_SECONDS
        print(text, file=sys.stderr, flush=True)


def _tell(summary: RunSummary, folder: Path) -> None:
    document = summary.document()
    for name, each in document["metrics"].items():
        value = "-" if each["value"] is None else f"{each['value']:.4g}"
        limit = "-" if each["slo"] is None else f"{each['slo']:g}"
        print(f"{_mark(each)} {name:38} {value:>10} {each['unit']:8} SLO {limit}")
    for action in document["runnerActions"]:
        for window in action.get("windows", ()):
            seconds = window["measuredSeconds"]
            took = "" if seconds is None else f" {seconds:.1f} s"
            print(f"{_mark(window)} {action['action']}: {window['check']}{took} {window['detail']}")
    for failure in document["failures"]:
        print(f"failure: {failure}")
    verdict = "passed" if document["passed"] else "failed"
    print(f"{document['profile']}: {verdict}; {folder / 'summary.json'}, {folder / 'report.html'}")


def _mark(entry: Mapping[str, Any]) -> str:
    return "ok  " if entry["passed"] else "FAIL"


if __name__ == "__main__":
    sys.exit(main())

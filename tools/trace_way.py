"""Traces one CapacityRequest on its way to an UpcomingNode that is Ready, and counts the code it
passes.

    .venv/bin/python tools/trace_way.py                       # this checkout
    .venv/bin/python tools/trace_way.py --checkout DIR ...    # others too; each needs its .venv

How it counts: the script starts a real system (operator, shard, provider, pod controller; the API
server is in memory) from the checkout's own `tests/support/whole_system.py`. Every process runs
under a profiler (`way_recorder`), and the engine runs interpreted, so that its kernels are counted.
The system idles for 20 s. Then a pod asks for capacity, and the window lasts until the pod has a
Ready UpcomingNode and its Node. A function is on the way when it is called in that window and not
while the system was idle: what runs anyway (timers, metrics, empty cycles) is left out. Functions
of operator, shard and provider count once per process, in the order of their first call; modules,
comprehensions, lambdas and code outside of `src/` do not count. A change of folder is a step in
this order, inside one process, from a function to one in another folder. The totals with what runs
anyway are printed as well.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
RECORDER = Path(__file__).parent / "way_recorder"
IDLE_SECONDS = 20.0
IDLE, REQUEST = 1, 2
ROLES = ("bigfleet operator", "bigfleet shard", "bigfleet-provider-fake")


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The first call of a function in one window of one process."""

    at_monotonic_ns: int
    window: int
    file: str
    name: str

    @property
    def folder(self) -> str:
        """The folder of its file."""
        return str(PurePosixPath(self.file).parent)

    @property
    def counts(self) -> bool:
        """Whether it is a function with a name, and not a module or a comprehension."""
        return not self.name.rpartition(".")[2].startswith("<")


@dataclass(frozen=True, slots=True)
class WayCount:
    """What the request passed, over all processes."""

    functions: int = 0
    files: int = 0
    folders: int = 0
    changes_of_folder: int = 0


def read_calls(path: Path) -> tuple[str, list[FirstCall]]:
    """The role of a process (empty for others), and its first calls."""
    command, *lines = path.read_text(encoding="utf-8").splitlines()
    calls = []
    for line in lines:
        at, window, file, name = line.split("\t")
        calls.append(FirstCall(int(at), int(window), file, name))
    return role_of(command.split()), calls


def role_of(words: Sequence[str]) -> str:
    """Which part of the system a command line starts."""
    named = " ".join(PurePosixPath(word).name for word in words)
    return next((role for role in ROLES if role in named), "")


def way_of(calls: Iterable[FirstCall], *, also_idle: bool = False) -> list[FirstCall]:
    """The functions of one process that are on the way, in the order of their first call."""
    known = [call for call in calls if call.counts]
    idle = {(c.file, c.name) for c in known if c.window == IDLE}
    way: dict[tuple[str, str], FirstCall] = {}
    for call in sorted(known, key=lambda call: call.at_monotonic_ns):
        place = (call.file, call.name)
        if call.window == REQUEST and (also_idle or place not in idle):
            way.setdefault(place, call)
    return list(way.values())


def count(ways: Mapping[str, Sequence[FirstCall]]) -> WayCount:
    """Functions, files, folders and changes of folder of the ways of all processes."""
    calls = [call for way in ways.values() for call in way]
    return WayCount(
        functions=len(calls),
        files=len({call.file for call in calls}),
        folders=len({call.folder for call in calls}),
        changes_of_folder=sum(
            a.folder != b.folder for way in ways.values() for a, b in pairwise(way)
        ),
    )


def drive(folder: Path) -> None:
    """Run inside the checkout's environment: start the system, idle, ask, wait for the node."""
    from whole_system import a_system, eventually

    with (folder / "window").open("r+b") as window:

        def enter(number: int) -> None:
            window.seek(0)
            window.write(bytes([number]))
            window.flush()

        with a_system(folder / "system", replicas=0, shards=1) as system:
            enter(IDLE)
            time.sleep(IDLE_SECONDS)
            enter(REQUEST)
            system.ask("web-0")
            eventually(system.api.join, "a machine became a node", 300.0)
            enter(0)


def trace(checkout: Path, folder: Path) -> dict[str, list[FirstCall]]:
    """The first calls of every process of the system, by role."""
    (folder / "system").mkdir()
    (folder / "window").write_bytes(b"\0")
    settings = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    support = settings["tool"]["pytest"]["ini_options"]["pythonpath"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(RECORDER), *(str(checkout / name) for name in support)]),
        "NUMBA_DISABLE_JIT": "1",
        "TRACE_WAY": str(folder),
        "TRACE_WAY_ROOT": f"{checkout}/",
    }
    python = checkout / ".venv" / "bin" / "python"
    command = [str(python), str(Path(__file__).resolve()), "--drive", str(folder)]
    subprocess.run(command, cwd=checkout, env=environment, check=True, timeout=900)
    traced = [read_calls(path) for path in sorted(folder.glob("*.calls"))]
    return {role: calls for role, calls in traced if role}


def report(checkout: Path, processes: Mapping[str, Sequence[FirstCall]], *, calls: bool) -> None:
    """Print the figures of one checkout."""
    own = {role: way_of(seen) for role, seen in processes.items()}
    everything = {role: way_of(seen, also_idle=True) for role, seen in processes.items()}
    print(f"{checkout}")
    for title, ways in (("on the way", own), ("all in the window", everything)):
        print(f"  {title}: {count(ways)}")
        for role, way in ways.items():
            print(f"    {role}: {count({role: way})}")
    for role, way in own.items() if calls else ():
        for call in way:
            print(f"{role}\t{call.file}\t{call.name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Trace every checkout named, and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--checkout", type=Path, nargs="+", default=[ROOT])
    parser.add_argument("--calls", action="store_true", help="list the functions, too")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.drive:
        drive(options.drive)
        return 0
    for checkout in options.checkout:
        with tempfile.TemporaryDirectory() as folder:
            report(checkout, trace(checkout.resolve(), Path(folder)), calls=options.calls)
    return 0


if __name__ == "__main__":
    sys.exit(main())

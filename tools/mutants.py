"""`make mutants`: change one place of the decision engine, and see that a test notices.

A seeded sample of mistakes (`mutating.py`) is tried one by one. Each is written into a temporary
copy of the package that a child process finds before the real one; the work tree is never touched.
Children are forked from this process, which has the slow libraries loaded already, and run the
kernels interpreted. What survives the quick tests meets larger ones before it counts as survivor.

Survivors are listed in docs/internals/mutation-survivors.md; explanations written there are kept.
With --known the explained ones are counted as survivors again without a run, which is where most of
the time goes: a mutant that nothing notices meets every test.
"""

import argparse
import compileall
import importlib
import os
import py_compile
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from mutating import Mutant, compiles, mutants_of
from mutation_report import Verdict, explained_survivors, kill_rate, write_report

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "bigfleet" / "src" / "bigfleet"
PACKAGE = "decision"
REPORT = ROOT / "docs" / "internals" / "mutation-survivors.md"
# How arrays are handed to compiled code; interpreted, as here, none of it runs.
NOT_INTERPRETED = frozenset({"kernels/references.py"})
UNIT = "bigfleet/tests/unit/decision"
PROPERTY = "bigfleet/tests/property/decision"
STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "mutant",
        (
            UNIT,
            f"{PROPERTY}/test_engine_equals_oracle.py",
            f"{PROPERTY}/test_kernels.py",
            f"{PROPERTY}/test_many_cycles.py",
            f"{PROPERTY}/test_same_plan_everywhere.py",
        ),
    ),
    ("all", (f"{PROPERTY}/test_engine_equals_oracle.py", f"{PROPERTY}/test_many_cycles.py")),
)
"""Size of the generated cases and the tests, the quick ones first."""
CPU_SECONDS = (60, 240)
"""What a stage may compute before its mutant counts as hanging: several times what it needs. It
is the processor's time, so that a busy machine makes no mutant die."""
PATIENCE = 60
"""Times as much may pass on the clock, for mutants that wait and do not compute."""
WANTED = 0.85
FULL_SAMPLE = 400


def all_mutants(only: str = "") -> list[Mutant]:
    """Every mutant of the package, or of the files whose path contains `only`."""
    folder = SOURCES / PACKAGE
    found: list[Mutant] = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if name not in NOT_INTERPRETED and only in name:
            found += mutants_of(path.read_text(encoding="utf-8"), name)
    return found


def sample_of(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """A seeded sample, with at most one mistake of a kind per line, so that lines full of numbers
    do not crowd out the rest.
    """
    rng = Random(seed)
    shuffled = list(mutants)
    rng.shuffle(shuffled)
    by_place = {(m.file, m.line, m.kind): m for m in shuffled}
    chosen = list(by_place.values())
    rng.shuffle(chosen)
    return list(islice((m for m in chosen if compiles(m.source)), size))


@dataclass
class Slot:
    """A place for one mutant at a time: its copy of the package, and the child that runs it."""

    folder: Path
    mutant: Mutant | None = None
    stage: int = 0
    pid: int = 0
    began: float = 0.0
    original: str = ""

    def begin(self, mutant: Mutant, stage: int) -> None:
        self.mutant, self.stage, self.began = mutant, stage, time.monotonic()
        changed = self._changed()
        self.original = changed.read_text(encoding="utf-8")
        changed.write_text(mutant.source, encoding="utf-8")
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run_tests(self.folder, stage)

    def outcome(self) -> Verdict | None:
        """Killed, survived or timed out; None while it runs."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGXCPU:
                return Verdict.TIMED_OUT
            return Verdict.SURVIVED if code == 0 else Verdict.KILLED
        if time.monotonic() - self.began > PATIENCE * CPU_SECONDS[self.stage]:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return Verdict.TIMED_OUT
        return None

    def restore(self) -> None:
        self._changed().write_text(self.original, encoding="utf-8")
        self.mutant = None

    def _changed(self) -> Path:
        assert self.mutant is not None
        return self.folder / "bigfleet" / PACKAGE / self.mutant.file


def _run_tests(folder: Path, stage: int) -> None:
    """In the child: run the tests of a stage against the copy, and end with pytest's answer."""
    os.setsid()
    seconds = CPU_SECONDS[stage]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(ROOT)
    mode, tests = STAGES[stage]
    os.environ["MODE"] = mode
    # Children of tests, too, must find the copy.
    os.environ["PYTHONPATH"] = str(folder)
    sys.path.insert(0, str(folder))
    code = 1
    try:
        import pytest

        # The reason of a failure is not read here, so asserts are not rewritten.
        quick = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
        code = int(pytest.main([*quick, *tests]))
    finally:
        os._exit(code)


def sound() -> bool:
    """Without a mistake the tests pass: otherwise every mutant would seem to die."""
    path = SOURCES / PACKAGE / "__init__.py"
    source = path.read_text(encoding="utf-8")
    unchanged = Mutant(path.name, "", "none", 0, "", "", source)
    return [verdict for _, verdict in run_all([unchanged], 1)] == [Verdict.SURVIVED]


def run_all(sample: Sequence[Mutant], jobs: int) -> Iterator[tuple[Mutant, Verdict]]:
    """Every mutant's verdict, as it comes."""
    with tempfile.TemporaryDirectory(prefix="bigfleet-mutants-") as temporary:
        slots = [Slot(_copy(Path(temporary) / str(number))) for number in range(jobs)]
        waiting = [(mutant, 0) for mutant in reversed(sample)]
        while waiting or any(slot.mutant for slot in slots):
            for slot in slots:
                if slot.mutant is None:
                    if waiting:
                        slot.begin(*waiting.pop())
                    continue
                verdict = slot.outcome()
                if verdict is None:
                    continue
                mutant, stage = slot.mutant, slot.stage
                slot.restore()
                if verdict is Verdict.SURVIVED and stage + 1 < len(STAGES):
                    waiting.append((mutant, stage + 1))
                else:
                    yield mutant, verdict
            time.sleep(0.02)


def _copy(folder: Path) -> Path:
    shutil.copytree(
        SOURCES, folder / "bigfleet", ignore=shutil.ignore_patterns("__pycache__", "*.nb?")
    )
    # Children write no bytecode. By its hash a changed file is recognised, whatever its times say.
    compileall.compile_dir(
        folder, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )
    return folder


def load_libraries() -> None:
    """What every child needs and no mutant changes. The package itself must stay unloaded."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for library in ("asyncio", "numba", "pytest", "unittest.mock"):
        importlib.import_module(library)
    assert "bigfleet" not in sys.modules, "the package must be loaded by the children alone"


@dataclass
class Tally:
    """Counts while the run goes on."""

    total: int
    counts: Counter[Verdict] = field(default_factory=Counter)

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        self.counts[verdict] += 1
        done = sum(self.counts.values())
        if verdict is Verdict.SURVIVED:
            print(f"survived: {mutant.file}:{mutant.line} {mutant.kind}")
            print(f"    - {mutant.before}\n    + {mutant.after}")
        if done % 20 == 0 or done == self.total:
            summary = ", ".join(f"{count} {v.value}" for v, count in sorted(self.counts.items()))
            print(f"{done} of {self.total}: {summary}", flush=True)


def main(argv: Sequence[str]) -> int:
    """Try a sample of mutants; 0 when enough of them die."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=FULL_SAMPLE, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time")
    parser.add_argument(
        "--known",
        action="store_true",
        help="count survivors that the page explains as such, without trying them again",
    )
    parser.add_argument(
        "--report", type=Path, help="where survivors are listed; the full sample has its place"
    )
    options = parser.parse_args(argv)
    mutants = all_mutants(options.only)
    sample = sample_of(mutants, options.sample, options.seed)
    if not sample:
        print(f"--only {options.only}: no file of {PACKAGE} has this in its path", file=sys.stderr)
        return 2
    load_libraries()
    if not sound():
        print("the tests fail without any mutant: repair them first", file=sys.stderr)
        return 2
    report = options.report
    if report is None and not options.only and options.sample >= FULL_SAMPLE:
        report = REPORT
    known = explained_survivors(REPORT) if options.known else frozenset()
    tally = Tally(len(sample))
    results = [(mutant, Verdict.SURVIVED) for mutant in sample if mutant.key in known]
    tally.counts[Verdict.SURVIVED] = len(results)
    unknown = [mutant for mutant in sample if mutant.key not in known]
    for mutant, verdict in run_all(unknown, options.jobs):
        tally.add(mutant, verdict)
        results.append((mutant, verdict))
    if report is not None:
        write_report(report, results, len(mutants), options.seed)
    rate = kill_rate(results)
    print(f"{rate:.1%} of {len(sample)} mutants die; at least {WANTED:.0%} should")
    return 0 if rate >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

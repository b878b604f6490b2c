"""Rules of the house that no linter knows; part of `make lint`.

Modules stay short, and no committed file says where packages come from or on which machine it was
written. Names, rooms and words are in `house`. Style, types and layers are left to ruff, mypy and
import-linter. `--list` prints everything that the backlog covers as well.
"""

import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from house.findings import BACKLOG, Finding, outside_backlog, read_backlog
from house.names import class_findings, module_findings
from house.phrases import phrase_findings
from house.references import reference_findings
from house.rooms import room_findings
from house.sizes import measured, provider_findings, size_findings

ROOT = Path(__file__).parent.parent
LONGEST_MODULE = 450
MEDIAN_MODULE = 200
GENERATED = re.compile(r"_pb2(_grpc)?\.py$")
# Written so that no pattern matches its own source.
UNWANTED = {
    "a package registry's address": re.compile(
        r"pypi\.(?:org|io)|pythonhosted\.org|registry\.npmjs\.|(?:proxy|sum)\.golang\.|index\.crates\.io"
    ),
    "a package index option": re.compile(r"--(?:extra-index|index)-url[ =]\S|--find-links[ =]\S"),
    "a path of one machine": re.compile(r"/work/(?:main|shared)\b|/root[/]|/home[/]\w+[/]"),
}


def committed_files(root: Path) -> list[Path]:
    """Files that are in the repository or would be after `git add`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [path for name in listing.split("\0") if name and (path := root / name).is_file()]


def line_counts(paths: Iterable[Path]) -> dict[Path, int]:
    """Lines of every module written by hand."""
    return {
        path: len(path.read_text(encoding="utf-8").splitlines())
        for path in paths
        if path.suffix == ".py" and not GENERATED.search(path.name)
    }


def too_long(counts: Mapping[Path, int]) -> Iterator[str]:
    """Modules above the limit."""
    for path, lines in sorted(counts.items()):
        if lines > LONGEST_MODULE:
            yield f"{path}: {lines} lines, at most {LONGEST_MODULE}; make it a folder"


def median_too_high(counts: Mapping[Path, int], source: Path) -> Iterator[str]:
    """Whether half of the modules below a folder have become long."""
    sizes = [lines for path, lines in counts.items() if path.is_relative_to(source)]
    median = statistics.median(sizes) if sizes else 0
    if median >= MEDIAN_MODULE:
        yield f"{source}: the median module has {median:.0f} lines, not below {MEDIAN_MODULE}"


def unwanted_text(paths: Iterable[Path]) -> Iterator[str]:
    """Lines that name a registry, an index or one machine's folders."""
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, start=1):
            for what, pattern in UNWANTED.items():
                if pattern.search(line):
                    yield f"{path}:{number}: {what}; remove it: {line.strip()[:80]}"


def findings(root: Path, paths: Iterable[Path], backlog: Iterable[str]) -> Iterator[Finding]:
    """What names, rooms, words and sizes break, the backlog's places included."""
    paths = list(paths)
    names = [path.relative_to(root).as_posix() for path in paths]
    modules = [name for name in names if name.endswith(".py") and not GENERATED.search(name)]
    texts = {
        name: (root / name).read_text(encoding="utf-8")
        for name in names
        if name.endswith(".py") and "/src/" in name
    }
    sources = {name: text for name, text in texts.items() if not GENERATED.search(name)}
    yield from phrase_findings(root, names)
    yield from module_findings(modules)
    yield from class_findings(sources)
    yield from room_findings(sources)
    yield from provider_findings(sources)
    yield from reference_findings(sources, texts)
    size = sum(path.stat().st_size for path in paths)
    yield from size_findings(measured(sources, size), backlog)


def complaints(root: Path) -> list[str]:
    """Everything that is wrong in a checkout, as lines for a person."""
    paths = committed_files(root)
    counts = line_counts(paths)
    backlog = read_backlog(root / BACKLOG.relative_to(ROOT))
    return [
        *too_long(counts),
        *median_too_high(counts, root / "bigfleet" / "src"),
        *unwanted_text(paths),
        *outside_backlog(findings(root, paths, backlog), backlog),
    ]


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    if "--list" in sys.argv[1:]:
        backlog = read_backlog()
        for finding in sorted(set(findings(ROOT, committed_files(ROOT), backlog))):
            print(f"{finding.entry}: {finding.text}")
        return 0
    found = complaints(ROOT)
    for line in found:
        print(line.replace(f"{ROOT}/", ""), file=sys.stderr)
    print(
        f"checks: {len(found)} complaints"
        if found
        else "checks: sizes, addresses, names and words are fine"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Rooms: sub-packages, how many modules stay beside them, and the head that draws them.

A package with rooms keeps at most eight modules beside them. A package without rooms is small
enough to be read in one go. The head of a package (its `__init__.py`) names every room.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from house.findings import Finding

MODULES_BESIDE_ROOMS = 8
LINES_WITHOUT_ROOMS = 3_000
HEADS = {"__init__", "__main__"}


def _children(paths: Iterable[str]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Modules and rooms of every package, by the package's folder."""
    modules: dict[str, set[str]] = defaultdict(set)
    rooms: dict[str, set[str]] = defaultdict(set)
    packages = {str(PurePosixPath(path).parent) for path in paths if path.endswith("/__init__.py")}
    for path in paths:
        pure = PurePosixPath(path)
        folder = str(pure.parent)
        if folder in packages and pure.stem not in HEADS:
            modules[folder].add(pure.stem)
    for package in packages:
        parent = PurePosixPath(package).parent
        if str(parent) in packages:
            rooms[str(parent)].add(PurePosixPath(package).name)
    return modules, rooms


def room_findings(sources: Mapping[str, str]) -> Iterator[Finding]:
    """Packages that keep too much in one place, and heads that omit a room."""
    modules, rooms = _children(list(sources))
    for package in sorted({*modules, *rooms}):
        beside, inside = modules[package], rooms[package]
        lines = sum(sources[f"{package}/{name}.py"].count("\n") for name in beside)
        if inside and len(beside) > MODULES_BESIDE_ROOMS:
            text = (
                f"{package}: {len(beside)} modules beside its rooms, at most {MODULES_BESIDE_ROOMS}"
            )
            yield Finding("rooms", package, text)
        if not inside and lines > LINES_WITHOUT_ROOMS:
            text = f"{package}: {lines} lines without rooms, at most {LINES_WITHOUT_ROOMS}"
            yield Finding("rooms", package, text)
        head = ast.get_docstring(ast.parse(sources[f"{package}/__init__.py"])) or ""
        missing = sorted(room for room in inside if not re.search(rf"\b{room}\b", head))
        if missing:
            text = f"{package}/__init__.py: the head does not name {', '.join(missing)}"
            yield Finding("head", package, text)

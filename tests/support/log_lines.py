"""The log lines that keep their words, as docs/reference/log-lines.md promises them.

Tests of a process take its lines from here, make it say each of them, and look. What each test saw
is compared with its level and keys in one place.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "log-lines.md"
EVERYBODY = "all"


@dataclass(frozen=True, slots=True)
class Line:
    """One promised line."""

    process: str
    level: str
    words: str
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.level} {self.words}"


@dataclass(frozen=True, slots=True)
class Said:
    """One line that a process wrote."""

    level: str
    message: str
    keys: frozenset[str]


def promised(*processes: str) -> list[Line]:
    """The lines of these processes, or all of them, in the page's order."""
    found = [line for line in _rows() if not processes or line.process in processes]
    assert found, f"{PAGE.name} has no line of {processes}"
    return found


def _rows() -> Iterator[Line]:
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        if not row.startswith("| ") or "`" not in row:
            continue
        process, level, words, keys, _ = (cell.strip() for cell in row.strip("|").split("|"))
        yield Line(process, level, words.strip("`"), tuple(k.strip() for k in keys.split(",") if k))


def of_records(records: Iterable[logging.LogRecord]) -> list[Said]:
    """What loggers of this process were given."""
    level = {logging.WARNING: "warn"}
    return [
        Said(
            level.get(record.levelno, record.levelname.lower()),
            record.getMessage(),
            frozenset(vars(record)),
        )
        for record in records
    ]


def of_json(text: str) -> list[Said]:
    """What a process wrote with `--log-format json`."""
    documents = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [Said(one["level"], one["msg"], frozenset(one)) for one in documents]


def look_for(line: Line, said: Iterable[Said]) -> None:
    """Complain unless the line was written, with its level and its keys."""
    spoken = [one for one in said if one.message.startswith(line.words)]
    assert spoken, f"no one said {line.words!r}"
    fitting = [one for one in spoken if one.level == line.level]
    assert fitting, f"{line.words!r} was said as {sorted({one.level for one in spoken})}"
    missing = [sorted(set(line.keys) - one.keys) for one in fitting]
    assert [] in missing, f"{line.words!r} lacks {missing[0]}"

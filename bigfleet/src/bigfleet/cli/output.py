"""What every command prints with: consoles, the three forms of output, and signs of life.

Results go to stdout, everything else to stderr. rich drops colours by itself when NO_COLOR is set
or stderr is not a terminal.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bigfleet.cli.errors import FailureError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

PATIENCE_SECONDS = 2.0
"""A command that is silent for longer says what it is doing."""


class Output(StrEnum):
    """How a listing is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Form = Annotated[Output, typer.Option("--output", "-o", help="How to print it.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No signs of progress.")]


def print_document(document: object, output: Output) -> None:
    """A document for programs, on stdout."""
    if output is Output.YAML:
        print(yaml.safe_dump(document, sort_keys=False, width=1000), end="")
    else:
        print(json.dumps(document, indent=2))


def write_document(document: object, path: Path) -> None:
    """A document as JSON in a file; `-` is stdout. A half-written file never takes its name."""
    text = json.dumps(document, indent=2) + "\n"
    if str(path) == "-":
        print(text, end="")
        return
    write_text(text, path)


def write_text(text: str, path: Path) -> None:
    """A text in a file, whole or not at all."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise FailureError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def stage(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Something that may take a while: a spinner on a terminal, else a line after two seconds."""
    if quiet:
        yield
    elif err.is_terminal:
        with err.status(f"{what} ..."):
            yield
    else:
        timer = threading.Timer(PATIENCE_SECONDS, lambda: err.print(f"{what} ..."))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


class Steps:
    """Counted steps: a bar on a terminal, else a line every two seconds."""

    def __init__(self, what: str, total: int, bar: Progress | None, *, quiet: bool) -> None:
        self._what, self._total, self._bar, self._quiet = what, total, bar, quiet
        self._done = 0
        self._spoke = time.monotonic()
        self._task = bar.add_task(what, total=total) if bar is not None else None

    def advance(self) -> None:
        """One step is done."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
        elif not self._quiet and time.monotonic() - self._spoke > PATIENCE_SECONDS:
            self._spoke = time.monotonic()
            err.print(f"{self._what}: {self._done} of {self._total}")


@contextmanager
def steps(what: str, total: int, *, quiet: bool = False) -> Iterator[Steps]:
    """Progress over a known number of steps."""
    if quiet or not err.is_terminal:
        yield Steps(what, total, None, quiet=quiet)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        yield Steps(what, total, bar, quiet=False)


def table(*columns: str, title: str = "") -> Table:
    """A table in the one style all commands use.

    Columns that end in > are right-aligned, those that end in ! are never broken over lines.
    """
    made = Table(title=title or None, title_justify="left", title_style="bold", box=None)
    for column in columns:
        right = column.endswith(">")
        made.add_column(
            column.rstrip(">!"),
            justify="right" if right else "left",
            header_style="dim",
            overflow="fold",
            no_wrap=column.endswith("!"),
        )
    return made


def plain(text: str, style: str = "") -> Text:
    """Text that is never read as markup."""
    return Text(text, style=style)

"""One row, three forms: a column says how a value is told to programs and to people.

On a terminal too narrow for a table each row becomes a paragraph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from rich.padding import Padding

from bigfleet.cli.ctl.context import Ctl
from bigfleet.cli.ctl.groups import complain
from bigfleet.cli.output import out, plain, print_document, table

T = TypeVar("T")

NARROW: Final = 70
"""Below this many columns a table would be a column of syllables."""


@dataclass(frozen=True, slots=True)
class ListingColumn(Generic[T]):
    """One fact of a row. Without a title it is told to programs alone."""

    key: str
    value: Callable[[T], object]
    title: str = ""
    """A title that ends in > is right-aligned."""
    text: Callable[[T], str] | None = None
    """For people, where that differs from the value."""

    def words(self, row: T) -> str:
        """The fact for people."""
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int):
            return f"{value:,}"
        return "" if value is None else str(value)


def document(rows: Sequence[T], columns: Sequence[ListingColumn[T]]) -> list[dict[str, Any]]:
    """Rows for programs."""
    return [{column.key: column.value(row) for column in columns} for row in rows]


def print_listing(
    ctl: Ctl, key: str, rows: Sequence[T], columns: Sequence[ListingColumn[T]], empty: str
) -> None:
    """Rows in the form that was asked for; `empty` is said to people when there are none."""
    if not ctl.is_table:
        print_document({key: document(rows, columns)}, ctl.output)
    elif rows:
        print_rows(rows, columns)
    else:
        out.print(plain(empty))


def print_rows(rows: Sequence[T], columns: Sequence[ListingColumn[T]]) -> None:
    """Rows for people."""
    shown = [column for column in columns if column.title]
    if out.width < NARROW:
        for row in rows:
            _print_lines(row, shown)
        return
    made = table(*(column.title for column in shown))
    for row in rows:
        made.add_row(*(plain(column.words(row)) for column in shown))
    out.print(made)


def _print_lines(row: T, columns: Sequence[ListingColumn[T]]) -> None:
    head, *others = columns
    out.print(plain(head.words(row), "bold"))
    facts_of_row = [(column.title.removesuffix(">"), column.words(row)) for column in others]
    facts = "; ".join(f"{title}: {words}" for title, words in facts_of_row if words)
    if facts:
        out.print(indented(facts, 2))


def indented(text: str, columns: int) -> Padding:
    """A paragraph a little to the right."""
    return Padding(plain(text), (0, 0, 0, columns), expand=False)


def print_done(ctl: Ctl, sentence: str, done: str, **facts: object) -> None:
    """What was done: a sentence for people, facts for programs."""
    if ctl.is_table:
        if not ctl.options.quiet:
            out.print(plain(sentence))
    else:
        print_document({"done": done, **facts}, ctl.output)


def print_line(facts: dict[str, object]) -> None:
    """One fact of an endless listing: a line of JSON."""
    print(json.dumps(facts), flush=True)


def report_troubles(troubles: Sequence[Exception]) -> None:
    """What kept a listing from being complete; the caller decides how it ends."""
    for trouble in troubles:
        complain(str(trouble))

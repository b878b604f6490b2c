"""What a command prints: one paragraph, and one command to run next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.table import Table

from bigfleet.cli.output import Output, out, plain, print_document


@dataclass(frozen=True, slots=True)
class PluginAnswer:
    """The paragraph and the command, and for programs the facts behind them."""

    text: str
    next: str
    facts: dict[str, object] = field(default_factory=dict)

    def with_notes(self, notes: Sequence[str]) -> PluginAnswer:
        """The same with what could not be read at the end of the paragraph."""
        if not notes:
            return self
        text = f"{self.text} (Not shown: {'; '.join(notes)}.)"
        return PluginAnswer(text, self.next, self.facts | {"not_shown": list(notes)})


def print_answer(answer: PluginAnswer, output: Output, table: Table | None = None) -> None:
    """On stdout, in the form that was chosen."""
    if output is not Output.TABLE:
        document = {"answer": answer.text, "next": answer.next, **answer.facts}
        print_document(document, output)
        return
    if table is not None and table.row_count:
        out.print(table)
        out.print()
    # A terminal breaks lines between words; a program reads whole paragraphs.
    out.print(plain(answer.text), soft_wrap=not out.is_terminal)
    out.print(plain("Next: ", "bold") + plain(answer.next), soft_wrap=True)


def command(*words: str) -> str:
    """A command line that can be copied."""
    return shlex.join(words)


def sentence(text: str) -> str:
    """A text as a sentence: a capital at the beginning, a full stop at the end."""
    text = re.sub(r"\s+", " ", text).strip()
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


def short(fingerprint: str) -> str:
    """A fingerprint for people."""
    return fingerprint[:12]

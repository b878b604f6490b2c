"""What a look at an installation gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How it is."""

    FINE = "fine"
    NOTE = "note"
    """Nothing is wrong, but somebody may want to know."""
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. What is wrong comes with a remedy."""

    about: str
    verdict: Verdict
    text: str
    remedy: str = ""

    def document(self) -> dict[str, str | None]:
        """For programs."""
        return {
            "about": self.about,
            "verdict": self.verdict.value,
            "text": self.text,
            "remedy": self.remedy or None,
        }


def fine(about: str, text: str) -> Finding:
    """As it should be."""
    return Finding(about, Verdict.FINE, text)


def note(about: str, text: str, remedy: str = "") -> Finding:
    """Worth knowing."""
    return Finding(about, Verdict.NOTE, text, remedy)


def wrong(about: str, text: str, remedy: str) -> Finding:
    """To be mended."""
    return Finding(about, Verdict.WRONG, text, remedy)

"""What a check of an installation gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """How it is."""

    FINE = "fine"
    NOTE = "note"
    """Nothing is wrong, but worth knowing."""
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. What is wrong comes with a remedy."""

    about: str
    verdict: FindingKind
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
    return Finding(about, FindingKind.FINE, text)


def note(about: str, text: str, remedy: str = "") -> Finding:
    """Worth knowing."""
    return Finding(about, FindingKind.NOTE, text, remedy)


def wrong(about: str, text: str, remedy: str) -> Finding:
    """To be fixed."""
    return Finding(about, FindingKind.WRONG, text, remedy)

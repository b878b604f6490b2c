"""Mistakes in the files of a scale test."""

from __future__ import annotations


class ProfileError(ValueError):
    """A file says something that cannot be run. Names file and line, and what to do."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"{where}: {text}")

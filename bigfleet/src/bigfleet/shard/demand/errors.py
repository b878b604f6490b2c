"""What can go wrong with demand.

RollUpRefusedError      a roll-up is refused whole; its text goes to the operator
"""

from __future__ import annotations


class RollUpRefusedError(ValueError):
    """A roll-up of which nothing is taken; the text says why and what to send instead."""

    def __init__(self, text: str, limit: str = "") -> None:
        super().__init__(text)
        self.limit = limit
        """The limit it is beyond, as a metric's label; empty where it breaks another rule."""

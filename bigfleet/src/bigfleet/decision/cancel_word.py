"""The cancel word: how a caller ends a decision early.

A decision is discarded as a whole or not at all, so nothing depends on when it was cancelled. The
kernels look at the word once per row, the phases in Python between two steps; what they leave
behind is not used. Setting the word is safe from any thread.
"""

from __future__ import annotations

import numpy as np

from bigfleet.decision.kernels.layout import I64


class DecisionCancelledError(Exception):
    """The decision was given up; there is no plan, and the carry is as it was."""


class CancelWord:
    """One word that the caller sets and the engine reads."""

    def __init__(self) -> None:
        self.cell: I64 = np.zeros(1, np.int64)
        """What kernels read: 0 to go on."""

    def set(self) -> None:
        """Have the decision under way, or the next one, end as soon as it looks."""
        self.cell[0] = 1

    def clear(self) -> None:
        """Let decisions go on."""
        self.cell[0] = 0

    def check(self) -> None:
        """Raise DecisionCancelledError where the word is set."""
        if self.cell[0]:
            raise DecisionCancelledError("the decision was cancelled; nothing of it is used")

"""What an operator refuses or cannot do.

OperatorError(Exception)
├── TemplateError       the bootstrap template cannot be used, or not for this machine
├── UnsatisfiableError  the bootstrap template says that this machine cannot be served
└── BadRequestError     a CapacityRequest that no roll-up can carry
"""

from __future__ import annotations


class OperatorError(Exception):
    """The operator cannot go on with something."""


class TemplateError(OperatorError):
    """The bootstrap template cannot be used, or not for this machine."""


class UnsatisfiableError(OperatorError):
    """The bootstrap template says that this machine cannot be served."""


class UnreadableRequestError(OperatorError):
    """A CapacityRequest that no roll-up can carry. `reason` is a label of a metric."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason

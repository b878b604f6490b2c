"""What an operator refuses or cannot do.

OperatorError(Exception)
├── TemplateError       the bootstrap template cannot be used, or not for this machine
├── BadRequestError     a CapacityRequest that no roll-up can carry
└── LineClosedError     the session ended, with a status
"""

from __future__ import annotations


class OperatorError(Exception):
    """The operator cannot go on with something."""


class TemplateError(OperatorError):
    """The bootstrap template cannot be used, or not for this machine."""


class UnsatisfiableError(OperatorError):
    """The bootstrap template says that this machine cannot be served."""


class BadRequestError(OperatorError):
    """A CapacityRequest that no roll-up can carry. `reason` is a label of a metric."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class LineClosedError(OperatorError):
    """The session ended. `code` is the status, `text` what was said with it."""

    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code, self.text = code, text

"""How an action can end, and the words under which it is counted.

`ActionFailedError` is how an action says inside this package that it did not do what was ordered;
the executor turns it into one outcome, one log line and one step back in the book.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from bigfleet.decision import ActionKind


class ExecutionOutcome(StrEnum):
    """The values of the label `outcome` of `action_execute_outcomes_total`."""

    SUCCESS = "success"
    NO_SESSION = "no_session"
    BLOB_ERROR = "blob_error"
    PROVIDER_ERROR = "provider_error"
    FENCED = "fenced"
    CANCELED = "ctx_canceled"
    """The action's deadline, or the end of the process."""
    TRANSITION_ERROR = "transition_error"
    """The provider accepted, and its record of the machine cannot be used."""
    RACED_TO_IDLE = "transition_raced_to_idle"
    STALE_STATE = "stale_state"
    INVENTORY_MISS = "inventory_miss"
    MISSING_PROFILE = "missing_profile"
    OTHER = "other"


class ActionFailedError(Exception):
    """An action ended with this outcome, for this reason."""

    def __init__(self, outcome: ExecutionOutcome, text: str, *, settled: bool = False) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.settled = settled
        """The book already says what is true; nothing has to be taken back."""


_COUNTED: Final = {
    ActionKind.BOOTSTRAP: "Bootstrap",
    ActionKind.PROVISION: "Provision",
    ActionKind.RECLAIM: "Reclaim",
    ActionKind.PREEMPT: "Preempt",
    ActionKind.DELETE: "Delete",
}


def counted_as(kind: ActionKind) -> str:
    """The value of the label `kind`; what the catalogue has no word for is Unspecified."""
    return _COUNTED.get(kind, "Unspecified")

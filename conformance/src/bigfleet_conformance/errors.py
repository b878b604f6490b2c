"""What can end a behaviour or a run, as one small tree.

ConformanceError
  Finding          the provider does not do what the behaviour says      -> failed
  CannotRunError   the behaviour could not be carried out                -> error
    NoFreeSlotError, BootError
  UsageError       the run was asked for in a way that makes no sense    -> exit code 2
  UnreachableError nothing answers at the target                         -> exit code 2
"""


class ConformanceError(Exception):
    """Root of the suite's errors."""


class Finding(ConformanceError):  # noqa: N818 - a finding is about the provider, not about the suite
    """The provider does something else than the behaviour says."""


class CannotRunError(ConformanceError):
    """The behaviour could not be carried out; that says nothing about the provider."""


class NoFreeSlotError(CannotRunError):
    """The pool of SPECULATIVE machines is empty."""

    def __init__(self, taken: int) -> None:
        super().__init__(
            f"no free slot left ({taken} are in use); give the provider more SPECULATIVE machines, "
            "for example with --seed-count"
        )


class BootError(CannotRunError):
    """An executable did not come up; what it said last is part of the message."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(ConformanceError):
    """The options contradict each other or leave nothing to do."""


class UnreachableError(ConformanceError):
    """Nothing answers at the target."""


def check(holds: object, message: str) -> None:
    """Raise a finding with this message unless something holds."""
    if not holds:
        raise Finding(message)

"""Every error of the kit, and the six classes in which a substrate fails.

    ProviderKitError
      StartError              the process cannot start; exit code 1
        OptionError           bad input: option, offering, credentials; exit code 2
        StateError            the state file is locked, damaged, foreign or from a newer release
      StoreUnavailable        the store cannot be written now; callers are answered UNAVAILABLE
      Refusal                 an RPC is refused; carries the gRPC status
      SubstrateError          a call of the substrate failed
        Retryable             try again later (rate limit, lost connection, host still booting)
          NoTurn              the limiter did not let the call go out in time
          Ambiguous           the answer of a launch was lost: it may have taken effect
        OutOfCapacity         no stock of this type in this zone
        QuotaExceeded         a limit of the account
        Unauthorized          credentials are bad, expired or too narrow
        InvalidRequest        the substrate will never accept this
        Gone                  the object does not exist
        HookFailed            the hook on the host ended with a failure
        NotReady              the node did not become Ready in time

The class of a substrate error decides what the kit does next and is the first word of `last_error`.
"""

import enum

LONGEST_ERROR = 1024


class ProviderKitError(Exception):
    """Anything the kit raises on purpose."""


class StartError(ProviderKitError):
    """The provider cannot start; one sentence for a person."""

    exit_code = 1


class OptionError(StartError):
    """Something a person gave is wrong; the sentence names it and the remedy."""

    exit_code = 2


class StateError(StartError):
    """The state file cannot be used as it is. It is never replaced silently."""


class StoreUnavailable(ProviderKitError):
    """The store cannot be written at the moment; nothing of the change was applied."""


class Code(enum.IntEnum):
    """The gRPC status codes the service answers with; numbers are gRPC's own."""

    OK = 0
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class Refusal(ProviderKitError):
    """A request that is answered with a status other than OK."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class SubstrateError(ProviderKitError):
    """A call of the substrate failed. `word` opens last_error, `outcome` labels the metric."""

    word = "Unavailable"
    outcome = "error"


class Retryable(SubstrateError):
    """Worth another try inside the transition's time-out.

    `throttled` also slows the limiter down; `after` is the pause in seconds that the substrate
    asked for. `refused` says that the substrate certainly did nothing (a conflict, any other 4xx),
    which matters for calls that are sent with `once=True`; a throttled call was refused as well.
    """

    def __init__(
        self,
        text: str,
        *,
        throttled: bool = False,
        after: float | None = None,
        refused: bool = False,
    ) -> None:
        super().__init__(text)
        self.throttled = throttled
        self.after = after
        self.refused = refused or throttled

    @property
    def word(self) -> str:  # type: ignore[override]
        """Throttled and Unavailable are told apart by a shard."""
        return "Throttled" if self.throttled else "Unavailable"

    @property
    def outcome(self) -> str:  # type: ignore[override]
        """The label of `api_calls_total`."""
        return "throttled" if self.throttled else "error"


class Ambiguous(Retryable):
    """A call that must not be repeated blindly was sent, and whether it took effect is unknown.

    `sent_monotonic_s` is when it was sent.
    """

    def __init__(self, text: str, sent_monotonic_s: float) -> None:
        super().__init__(text)
        self.sent_monotonic_s = sent_monotonic_s


class NoTurn(Retryable):
    """The limiter did not let a call go out before the time for tries was up."""

    def __init__(self, text: str) -> None:
        super().__init__(text, throttled=True)


class OutOfCapacity(SubstrateError):
    """No stock of that type in that zone: FAILED at once, so that a shard takes another slot."""

    word = "OutOfCapacity"
    outcome = "out_of_capacity"


class NothingSent(SubstrateError):
    """A Create whose time passed in the queue of the limiter, or whose calls were all throttled:
    nothing was launched."""

    word = "Throttled"
    outcome = "throttled"
    opening = "nothing was launched"


class QuotaExceeded(SubstrateError):
    """A limit of the account or project is reached."""

    word = "QuotaExceeded"
    outcome = "quota"


class Unauthorized(SubstrateError):
    """The credentials do not allow this; the text names the missing permission."""

    word = "Unauthorized"
    outcome = "auth"


class InvalidRequest(SubstrateError):
    """The substrate will refuse this however often it is asked."""

    word = "InvalidRequest"


class Gone(SubstrateError):
    """The object does not exist (any more)."""

    word = "HostLost"


class HookFailed(SubstrateError):
    """The hook ended with a failure code."""

    word = "HookFailed"


class NotReady(SubstrateError):
    """The node was not seen Ready before the time was up."""

    word = "NotReady"


class TransitionTimeout(SubstrateError):
    """The transition's time was up before its work was done."""

    word = "Timeout"


class Interrupted(SubstrateError):
    """The provider stopped in the middle and the work cannot be resumed."""

    word = "Interrupted"


class HostLost(SubstrateError):
    """The substrate no longer has the host."""

    word = "HostLost"


def error_line(error: SubstrateError) -> str:
    """`last_error` for a failure: one line, class word first, bounded."""
    text = " ".join(str(error).split()) or "no further detail"
    return f"{error.word}: {text}"[:LONGEST_ERROR]

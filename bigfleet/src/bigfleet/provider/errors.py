"""What a call to a provider can end with.

    ProviderError               the call failed; `.code` is the gRPC status as it came
    ├── MachineNotFoundError           NOT_FOUND: the provider has no such machine
    ├── NotSupportedError       UNIMPLEMENTED: Delete where hosts cannot be given back
    ├── FencedError             FAILED_PRECONDITION: a newer process of this shard was here
    └── UnusableAnswerError     OK, with bytes or a machine state that this release does not know
    UnknownProviderError        no provider has that name
    SiteError                   a name or address that cannot be dialled

The code decides, never the text. Everything without a class of its own is a ProviderError.
"""

from __future__ import annotations

from typing import Final

import grpc


class ProviderError(Exception):
    """A call failed. Says who was asked for what, and how it ended."""

    def __init__(
        self, provider: str, method: str, machine: str, code: grpc.StatusCode, text: str
    ) -> None:
        call = f"{method} {machine}" if machine else method
        super().__init__(f"provider {provider}: {call}: {code.name}: {text}")
        self.provider = provider
        self.method = method
        self.machine = machine
        self.code = code
        self.text = text


class MachineNotFoundError(ProviderError):
    """The provider has no such machine."""


class NotSupportedError(ProviderError):
    """The provider does not offer this operation."""


class FencedError(ProviderError):
    """The token was not newer than one the provider has seen; nothing was applied."""

    sequence = 0
    """The number of the token that was refused."""


class UnusableAnswerError(ProviderError):
    """The provider said OK and something that this release does not know; its code is OK."""


class UnknownProviderError(LookupError):
    """No provider has that name."""


class SiteError(ValueError):
    """A name or address that cannot be dialled."""


_BY_CODE: Final[dict[grpc.StatusCode, type[ProviderError]]] = {
    grpc.StatusCode.NOT_FOUND: MachineNotFoundError,
    grpc.StatusCode.UNIMPLEMENTED: NotSupportedError,
    grpc.StatusCode.FAILED_PRECONDITION: FencedError,
    grpc.StatusCode.OK: UnusableAnswerError,
}


def failed_call(
    provider: str, method: str, machine: str, code: grpc.StatusCode, text: str
) -> ProviderError:
    """The error of a call that ended with this status."""
    return _BY_CODE.get(code, ProviderError)(provider, method, machine, code, text)

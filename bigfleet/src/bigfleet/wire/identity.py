"""Who is calling: the one `bigfleet://` name in a peer's certificate, and what it may do.

On plaintext there is no identity and nothing is checked. On mTLS a certificate without such a
name, or with several, has no name. Names are compared as text; nothing is above anything else,
except that admin may do what readonly may. A surface says which names it lets in and the words of
its refusal.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import grpc
import grpc.aio
from cryptography import x509

from bigfleet_base.identifiers import cut

ADMIN: Final = "bigfleet://admin"
READONLY: Final = "bigfleet://readonly"
NO_NAME: Final = ""
"""A certificate without a usable name."""

_SCHEME: Final = "bigfleet"
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,252}")
"""What stands in a URI as it is, so that a name can be compared as text."""
_UNREADABLE: Final = (
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
_log = logging.getLogger(__name__)


class CallContext(Protocol):
    """What is needed of the context of a call."""

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """What the transport knows of the peer."""


class Abortable(CallContext, Protocol):
    """A call that can be ended."""

    async def abort(self, code: grpc.StatusCode, details: str = "") -> None:
        """End the call; never returns."""


@dataclass(frozen=True, slots=True)
class Surface:
    """A row of the table of identities: who may call, and what the log says of others."""

    words: str
    names: frozenset[str]

    def lets_in(self, identity: str | None) -> bool:
        """Whether this peer may call; None is plaintext."""
        return identity is None or identity in self.names


_READERS: Final = frozenset({READONLY, ADMIN})
SHARD_READ: Final = Surface("shard rejected read identity", _READERS)
SHARD_ADMIN: Final = Surface("shard rejected admin identity", frozenset({ADMIN}))
SHARD_STATUS: Final = Surface("shard rejected admin identity", frozenset({READONLY, ADMIN}))
COORDINATOR_READ: Final = Surface(
    "coordinator rejected read identity", frozenset({READONLY, ADMIN})
)
COORDINATOR_ADMIN: Final = Surface("coordinator rejected admin identity", frozenset({ADMIN}))


def cluster_name(cluster_id: str) -> str:
    """The name of a cluster's operator."""
    return f"bigfleet://cluster/{cluster_id}"


def shard_name(shard_id: str) -> str:
    """The name of a shard."""
    return f"bigfleet://shard/{shard_id}"


def can_be_named(shard_id: str) -> bool:
    """Whether a certificate can carry the name of a shard with this id, letter by letter."""
    return _ID.fullmatch(shard_id) is not None


def coordinator_report(shard_id: str) -> Surface:
    """Reports of a shard are for that shard alone."""
    return Surface("coordinator rejected shard identity", frozenset({shard_name(shard_id)}))


def identity_of(context: CallContext) -> str | None:
    """The peer's single name; empty for none or several; None on plaintext."""
    known = context.auth_context()
    if b"ssl" not in known.get("transport_security_type", ()):
        return None
    for certificate in known.get("x509_pem_cert", ()):
        return name_in(bytes(certificate))
    return NO_NAME


@lru_cache(maxsize=4096)
def name_in(certificate_pem: bytes) -> str:
    """The single `bigfleet://` name of a certificate; empty for none or several."""
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        uris = names.value.get_values_for_type(x509.UniformResourceIdentifier)
    except (ValueError, *_UNREADABLE):
        return NO_NAME
    ours = [uri for uri in uris if uri.partition(":")[0].lower() == _SCHEME]
    return ours[0] if len(ours) == 1 else NO_NAME


async def require(context: Abortable, surface: Surface, method: str) -> None:
    """End the call with PERMISSION_DENIED unless the surface lets the peer in."""
    identity = identity_of(context)
    if surface.lets_in(identity):
        return
    if identity == NO_NAME:
        await refuse_nameless(context, method, surface.words)
        return
    _log.error(surface.words, extra={"identity": cut(identity or "none"), "method": method})
    # Cut, because a name is made of what the request says: a status that does not fit into the
    # trailers would reach the caller as RESOURCE_EXHAUSTED.
    allowed = " or ".join(cut(name) for name in sorted(surface.names))
    await context.abort(
        grpc.StatusCode.PERMISSION_DENIED,
        f"{method} is for {allowed}; the certificate is of {cut(identity or '')}",
    )


async def refuse_nameless(context: Abortable, method: str, words: str) -> None:
    """End a call whose certificate names no caller, without a look at what it asks."""
    _log.error(words, extra={"identity": "none", "method": method})
    await context.abort(
        grpc.StatusCode.PERMISSION_DENIED,
        f"{method}: the certificate names no caller; it needs exactly one URI that begins with "
        f"{_SCHEME}://",
    )

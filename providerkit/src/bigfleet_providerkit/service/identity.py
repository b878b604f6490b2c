"""Who is calling: the single `bigfleet://` name in the client's certificate.

Mutations belong to the shard named in the request; reads are open to every shard, to `readonly` and
to `admin`. Without TLS there is no identity and nothing is checked. A certificate without a name is
refused before the request is looked at, and a refusal repeats at most a few characters of it: a
status that does not fit into the trailers would reach the caller as RESOURCE_EXHAUSTED.
"""

import functools
from dataclasses import dataclass

from cryptography import x509

from bigfleet_base.identifiers import cut, shortened
from bigfleet_providerkit.errors import Code, Refusal

SCHEME = "bigfleet://"
SHARD = "bigfleet://shard/"
READERS = ("bigfleet://admin", "bigfleet://readonly")


@dataclass(frozen=True, slots=True)
class Peer:
    """A caller. `name` is None on plaintext, and empty when a certificate carries no usable one."""

    name: str | None = None


PLAINTEXT = Peer()
UNREADABLE = (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)


@functools.lru_cache(maxsize=1024)
def peer_of(certificate: bytes) -> Peer:
    """The caller behind a PEM certificate: exactly one bigfleet name, or none at all."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except (ValueError, *UNREADABLE):
        return Peer("")
    ours = [uri for uri in uris if uri.startswith(SCHEME)]
    return Peer(ours[0] if len(ours) == 1 else "")


def may_mutate(peer: Peer, shard: str) -> None:
    """Refuse a mutation that is not made by the shard it names."""
    if peer.name is None:
        return
    _require_name(peer)
    if not shard or peer.name != SHARD + shard:
        raise Refusal(
            Code.PERMISSION_DENIED,
            f"identity {shortened(peer.name)} may not act for shard {shortened(shard)}",
        )


def may_read(peer: Peer) -> None:
    """Refuse a read by a client that is neither shard, reader nor administrator."""
    if peer.name is None or peer.name in READERS:
        return
    _require_name(peer)
    if not peer.name.startswith(SHARD) or peer.name == SHARD:
        raise Refusal(Code.PERMISSION_DENIED, f"identity {cut(peer.name)} may not read machines")


def _require_name(peer: Peer) -> None:
    if not peer.name:
        raise Refusal(
            Code.PERMISSION_DENIED,
            f"the certificate names no caller: it needs exactly one URI that begins with {SCHEME}",
        )

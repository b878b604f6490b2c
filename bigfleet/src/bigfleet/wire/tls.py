"""Certificate, key and CA bundle of a client, looked at again when the files change.

All three or none. The files are looked at no more often than every ten seconds, by callers of
`fresh`; a set that cannot be used leaves the last good one in place, is warned of once and tried
again at every look: not every fault is in the files. Making a new channel of a fresh set is left to
the owner of the channel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from bigfleet.wire.errors import TlsFilesError

LOOK_EVERY_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)
_Stamp = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the three files are."""

    cert: Path
    key: Path
    ca: Path

    @classmethod
    def of(cls, cert: str | None, key: str | None, ca: str | None) -> TlsFiles | None:
        """The files of `--tls-cert --tls-key --tls-ca`; None for plaintext; a part is refused."""
        given = {"--tls-cert": cert, "--tls-key": key, "--tls-ca": ca}
        missing = [flag for flag, path in given.items() if not path]
        if len(missing) == len(given):
            return None
        if not (cert and key and ca):
            raise TlsFilesError(f"TLS needs all three files: add {' and '.join(missing)}")
        return cls(Path(cert), Path(key), Path(ca))

    def read(self) -> grpc.ChannelCredentials:
        """Credentials for a channel, from files that belong together."""
        return self.contents().credentials()

    def contents(self) -> TlsContents:
        """What the files hold, or a refusal when they do not belong together."""
        try:
            cert, key, ca = (path.read_bytes() for path in (self.cert, self.key, self.ca))
            chain = x509.load_pem_x509_certificates(cert)
            private = serialization.load_pem_private_key(key, password=None)
            bundle = x509.load_pem_x509_certificates(ca)
            # Certificates are read as far as needed: a damaged key shows only here.
            fits = private.public_key() == chain[0].public_key()
            ends = (_earliest(chain), _earliest(bundle))
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise TlsFilesError(f"TLS files cannot be used: {error}") from error
        if not fits:
            raise TlsFilesError(
                f"TLS files cannot be used: {self.key} is not the key of {self.cert}"
            )
        return TlsContents(cert, key, ca, *ends)


@dataclass(frozen=True, slots=True)
class TlsContents:
    """A certificate, its key and a CA bundle, as text; and when they end, in Unix seconds."""

    cert: bytes
    key: bytes = field(repr=False)
    ca: bytes
    cert_ends: float
    ca_ends: float
    """Of a bundle the earliest."""

    def credentials(self) -> grpc.ChannelCredentials:
        """Credentials for a channel."""
        return grpc.ssl_channel_credentials(self.ca, self.key, self.cert)


class ClientTls:
    """The set in use, and whether there is a newer one."""

    def __init__(self, files: TlsFiles, now: Callable[[], float]) -> None:
        self._files = files
        self._now = now
        self._looked = now()
        self._seen = self._stamp()
        """What the files in use looked like."""
        self._unusable: _Stamp = ()
        self.contents = files.contents()
        self.credentials = self.contents.credentials()

    def fresh(self) -> bool:
        """Whether `credentials` were replaced just now because the files changed."""
        now = self._now()
        if now - self._looked < LOOK_EVERY_SECONDS:
            return False
        self._looked = now
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        try:
            self.contents = self._files.contents()
        except TlsFilesError as error:
            if stamp != self._unusable:
                _log.warning("the last good TLS files stay in use: %s", error)
            self._unusable = stamp
            return False
        self._seen, self.credentials = stamp, self.contents.credentials()
        _log.info("TLS files read again: %s", self._files.cert)
        return True

    def _stamp(self) -> _Stamp:
        return tuple(
            _stamp_of(path) for path in (self._files.cert, self._files.key, self._files.ca)
        )


def _earliest(certificates: Sequence[x509.Certificate]) -> float:
    return min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)


def _stamp_of(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return (0, -1)
    return (stat.st_mtime_ns, stat.st_size)

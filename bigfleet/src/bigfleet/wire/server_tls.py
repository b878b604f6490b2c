"""Certificate, key and CA bundle of a server, looked at again on every handshake.

The metric of when they end looks beside that, since peers may stay connected for weeks. A set that
cannot be read, a key that is not the certificate's or a bundle without certificates leaves the last
good set in use, with one warning per change of the files, and is tried again at every look: not
every fault is in the files. Open connections are not cut. Handshakes happen on threads of the
library, hence the lock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import TlsFiles

OnExpiry = Callable[[str, float], None]
"""Told (role, Unix seconds) for every set that comes into use."""

_Stamp = tuple[tuple[int, int, int], ...]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Set:
    configuration: grpc.ServerCertificateConfiguration
    ends: dict[str, float]


class ServerTls:
    """The set in use. The first one must be good."""

    def __init__(self, files: TlsFiles, on_expiry: OnExpiry | None = None) -> None:
        self._files = files
        self._on_expiry = on_expiry
        self._lock = threading.Lock()
        self._seen = self._stamp()
        """What the files in use looked like."""
        self._unusable: _Stamp = ()
        self._set = self._handed_over = self._read()
        self._tell()

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files and demand a certificate of every client."""
        return grpc.dynamic_ssl_server_credentials(
            self._set.configuration,
            self._newer,  # type: ignore[arg-type]  # None, which the stubs forget, keeps the set
            require_client_authentication=True,
        )

    def look(self) -> bool:
        """Look at the files now; whether another set is in use since."""
        with self._lock:
            stamp = self._stamp()
            if stamp == self._seen:
                return False
            try:
                self._set = self._read()
            except TlsFilesError as error:
                if stamp != self._unusable:
                    _log.warning("the last good TLS files stay in use", extra={"error": str(error)})
                self._unusable = stamp
                return False
            self._seen = stamp
        _log.info("TLS files read again", extra={"cert": str(self._files.cert)})
        self._tell()
        return True

    def _newer(self) -> grpc.ServerCertificateConfiguration | None:
        """Called for every handshake: another set than the last one, or None to go on with it."""
        self.look()
        with self._lock:
            if self._set is self._handed_over:
                return None
            self._handed_over = self._set
            return self._set.configuration

    def _tell(self) -> None:
        if self._on_expiry is not None:
            for role, ends in self._set.ends.items():
                self._on_expiry(role, ends)

    def _read(self) -> _Set:
        read = self._files.contents()
        return _Set(
            grpc.ssl_server_certificate_configuration(
                [(read.key, read.cert)], root_certificates=read.ca
            ),
            # One certificate serves all edges of a process, those it dials included.
            {"server": read.cert_ends, "client": read.cert_ends, "ca": read.ca_ends},
        )

    def _stamp(self) -> _Stamp:
        return tuple(
            _stamp_of(path) for path in (self._files.cert, self._files.key, self._files.ca)
        )


def _stamp_of(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return (0, -1, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)

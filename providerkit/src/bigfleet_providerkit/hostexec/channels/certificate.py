"""The certificate of the agents' server, read again when its files change.

Every handshake looks at the two files. A pair that cannot be read (it is being written, or does not
fit together) is left alone: the server goes on with the one before, and tries again with the next
handshake.
"""

import logging
import ssl
from pathlib import Path

from bigfleet_providerkit.errors import OptionError

_log = logging.getLogger("bigfleet_providerkit")


class ReloadingCertificate:
    """A certificate and its key, and the TLS contexts made of them."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert = cert
        self._key = key
        self._seen = self._stamp()
        try:
            self._current = self._load()
        except (OSError, ssl.SSLError) as error:
            raise OptionError(
                f"--bootstrap-tls-cert {cert} and --bootstrap-tls-key {key} cannot be used: "
                f"{error}; give a PEM certificate and its key"
            ) from error

    def context(self) -> ssl.SSLContext:
        """The context for a server; each handshake gets the newest certificate."""
        context = self._load()
        context.sni_callback = self._choose
        return context

    def _choose(self, connection: ssl.SSLObject, name: str, context: ssl.SSLContext) -> None:
        connection.context = self._newest()

    def _newest(self) -> ssl.SSLContext:
        stamp = self._stamp()
        if stamp != self._seen:
            try:
                self._current = self._load()
            except (OSError, ssl.SSLError) as error:
                _log.warning(
                    "certificate not reloaded, the old one stays: %s: %s", self._cert, error
                )
            else:
                self._seen = stamp
        return self._current

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._cert, self._key)
        return context

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        """What changes when a file is replaced or rewritten."""
        found = []
        for path in (self._cert, self._key):
            try:
                at = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((at.st_ino, at.st_mtime_ns, at.st_size))
        return tuple(found)

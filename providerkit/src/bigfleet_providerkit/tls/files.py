"""Server credentials from three files, looked at again on every handshake.

A read error, a key that does not belong to its certificate or a bundle without certificates leaves
the last good set in use, is logged once and tried again at every handshake: not every fault is in
the files. Open connections are not cut.
"""

import threading
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from prometheus_client import Gauge
from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.errors import OptionError

Stamp = tuple[tuple[int, int], ...]
UNUSABLE = (OSError, ValueError, TypeError, UnsupportedAlgorithm)
"""What files raise: not there, damaged, a key with a password, an unknown curve."""


class TlsFiles:
    """Certificate, key and CA bundle of a server."""

    def __init__(
        self, cert: str, key: str, ca: str, log: FilteringBoundLogger, expiry: Gauge | None = None
    ) -> None:
        self._cert, self._key, self._ca = Path(cert), Path(key), Path(ca)
        self._log = log
        self._expiry = expiry
        self._lock = threading.Lock()
        try:
            self._seen: Stamp = self._stamp()
            self._unusable: Stamp | None = None
            self._config = self._read()
        except UNUSABLE as error:
            raise OptionError(f"TLS files cannot be used: {error}") from error

    def server_credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files and demand a client certificate."""
        return grpc.dynamic_ssl_server_credentials(
            self._config,
            self._changed,  # type: ignore[arg-type]  # None, which the stubs forget, keeps the set
            require_client_authentication=True,
        )

    def _changed(self) -> "grpc.ServerCertificateConfiguration | None":
        """Called for every handshake: the new set, or None to go on with the old one."""
        with self._lock:
            stamp: Stamp = ()
            try:
                stamp = self._stamp()
                if stamp == self._seen:
                    return None
                self._config = self._read()
            except UNUSABLE as error:
                if stamp != self._unusable:
                    self._log.warning(
                        "TLS files cannot be used; the last good ones stay", error=str(error)
                    )
                self._unusable = stamp
                return None
            self._seen = stamp
            self._log.info("TLS files read again", cert=str(self._cert))
            return self._config

    def _stamp(self) -> Stamp:
        stats = [path.stat() for path in (self._cert, self._key, self._ca)]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)

    def _read(self) -> "grpc.ServerCertificateConfiguration":
        cert, key, ca = (path.read_bytes() for path in (self._cert, self._key, self._ca))
        chain = x509.load_pem_x509_certificates(cert)
        private = serialization.load_pem_private_key(key, password=None)
        if private.public_key() != chain[0].public_key():
            raise ValueError(f"{self._key} is not the key of {self._cert}")
        bundle = x509.load_pem_x509_certificates(ca)
        if self._expiry is not None:
            for role, certificates in (("server", chain), ("ca", bundle)):
                ends = min(item.not_valid_after_utc.timestamp() for item in certificates)
                self._expiry.labels(role).set(ends)
        return grpc.ssl_server_certificate_configuration([(key, cert)], root_certificates=ca)

"""gRPC channels to coordinators and shards, dialled when first used.

With certificates, a channel is replaced when the files have changed; calls under way end on the old
one. A set of files that cannot be used leaves the last good one in place, and is tried again at
every look.
"""

from __future__ import annotations

import logging
import os
from typing import Final

# TLS 1.3 or newer: a suite that exists only below leaves older versions nothing to agree on,
# whatever the environment says. Read when grpc starts, hence before it is imported.
os.environ["GRPC_SSL_CIPHER_SUITES"] = "PSK-AES128-CBC-SHA"

import grpc
import grpc.aio
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from bigfleet_dashboard.config import Tls
from bigfleet_dashboard.errors import ConfigError

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 256 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 500),
    # A peer that comes back should be seen soon; the library's own limit is two minutes.
    ("grpc.max_reconnect_backoff_ms", 3_000),
    # A proxy for the web is not asked; one for gRPC is.
    ("grpc.enable_http_proxy", int(bool(os.environ.get("grpc_proxy")))),  # noqa: SIM112 - its name
)
_log = logging.getLogger(__name__)


class Channels:
    """Channels by address."""

    def __init__(self, tls: Tls | None) -> None:
        self._tls = tls
        self._stamp = _stamp(tls)
        self._unusable: tuple[int, ...] = ()
        self._credentials = None if tls is None else read(tls)
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._old: list[grpc.aio.Channel] = []

    def to(self, address: str) -> grpc.aio.Channel:
        """The channel to an address."""
        channel = self._channels.get(address)
        if channel is None:
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
            else:
                channel = grpc.aio.secure_channel(address, self._credentials, options=_OPTIONS)
            self._channels[address] = channel
        return channel

    def look_again(self) -> None:
        """Read the files again if they changed; new calls then use new channels."""
        stamp = _stamp(self._tls)
        if self._tls is None or stamp == self._stamp:
            return
        try:
            self._credentials = read(self._tls)
        except ConfigError as error:
            if stamp != self._unusable:
                _log.warning("the last good TLS files stay in use", extra={"error": str(error)})
            self._unusable = stamp
            return
        self._stamp = stamp
        self._old += self._channels.values()
        self._channels = {}

    async def close(self) -> None:
        """All of them."""
        for channel in (*self._old, *self._channels.values()):
            await channel.close()


def read(tls: Tls) -> grpc.ChannelCredentials:
    """Credentials of files that belong together."""
    try:
        cert, key, ca = (path.read_bytes() for path in (tls.cert, tls.key, tls.ca))
        leaf = x509.load_pem_x509_certificates(cert)[0]
        private = serialization.load_pem_private_key(key, password=None)
        x509.load_pem_x509_certificates(ca)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"TLS files cannot be used: {error}") from error
    if private.public_key() != leaf.public_key():
        raise ConfigError(f"TLS files cannot be used: {tls.key} is not the key of {tls.cert}")
    return grpc.ssl_channel_credentials(ca, key, cert)


def _stamp(tls: Tls | None) -> tuple[int, ...]:
    if tls is None:
        return ()
    found = []
    for path in (tls.cert, tls.key, tls.ca):
        try:
            found.append(path.stat().st_mtime_ns)
        except OSError:
            found.append(-1)
    return tuple(found)

"""Links: channels to one provider instance, in plaintext or with TLS.

In plaintext all shards share one channel. With TLS the identity rule wants a certificate per shard
id, so a link with the CA's key mints one for every shard that calls; without the key all shards
use the certificate that was given.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import grpc

from bigfleet_api.v1alpha1.provider_pb2_grpc import CapacityProviderStub
from bigfleet_conformance.harness.certificates import Credentials

if TYPE_CHECKING:
    from bigfleet_api.v1alpha1.provider_pb2_grpc import CapacityProviderAsyncStub

MESSAGE_BYTES = 256 * 1024 * 1024
OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A proxy for the web is not asked; one for gRPC is.
    ("grpc.enable_http_proxy", int(bool(os.environ.get("grpc_proxy")))),  # noqa: SIM112 - its name
)
READER = "conformance-reader"


def open_channel(
    address: str, credentials: Credentials | None = None, server_name: str = ""
) -> grpc.aio.Channel:
    """A channel with the contract's message sizes and a connection of its own."""
    options = list(OPTIONS)
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    if server_name:
        options.append(("grpc.ssl_target_name_override", server_name))
    secure = grpc.ssl_channel_credentials(
        root_certificates=credentials.ca,
        private_key=credentials.key or None,
        certificate_chain=credentials.certificate or None,
    )
    return grpc.aio.secure_channel(address, secure, options=options)


class ChannelLink:
    """Channels by shard and connection, opened when they are first used."""

    def __init__(
        self,
        address: str,
        credentials_of: Callable[[str], Credentials] | None = None,
        server_name: str = "",
    ) -> None:
        self.address = address
        self._credentials_of = credentials_of
        self._server_name = server_name
        self._channels: dict[tuple[str, int], grpc.aio.Channel] = {}
        self._stubs: dict[tuple[str, int], CapacityProviderAsyncStub] = {}

    def channel(self, shard: str = "", connection: int = 0) -> grpc.aio.Channel:
        """The channel on which a shard calls."""
        key = (shard if self._credentials_of else "", connection)
        if key not in self._channels:
            credentials = self._credentials_of(shard or READER) if self._credentials_of else None
            self._channels[key] = open_channel(self.address, credentials, self._server_name)
        return self._channels[key]

    def stub(self, shard: str = "", connection: int = 0) -> "CapacityProviderAsyncStub":
        """The stub on which a shard calls."""
        key = (shard if self._credentials_of else "", connection)
        if key not in self._stubs:
            self._stubs[key] = CapacityProviderStub(self.channel(shard, connection))
        return self._stubs[key]

    async def close(self) -> None:
        """Close every channel."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()
        self._stubs.clear()

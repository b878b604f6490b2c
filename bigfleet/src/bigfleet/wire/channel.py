"""The options of every client channel: large messages, keepalive, one plain connection.

Retrying is the caller's decision, so the channel has no retry policy; it is also what makes one
fencing token one attempt. A channel dials when it is first used. No proxy stands in between, unless
`grpc_proxy` names one (ADR 0063).
"""

from __future__ import annotations

import os
from typing import Final

import grpc
import grpc.aio

MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024

CLIENT_OPTIONS: Final[tuple[tuple[str, int | str], ...]] = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Probing the bandwidth is a ping for every little answer, a third of what a call costs; a
    # large message is given the window it needs without it.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.enable_retries", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.lb_policy_name", "pick_first"),
    # A channel that replaces another one must not be given the connection of the other.
    ("grpc.use_local_subchannel_pool", 1),
    # The library's two minutes would hide a peer that came back long ago.
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 10_000),
    # Otherwise a proxy that is meant for the web is asked even for peers on the same machine.
    ("grpc.enable_http_proxy", int(bool(os.environ.get("grpc_proxy")))),  # noqa: SIM112 - its name
)


def open_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    """A channel that dials when it is first used; plaintext without credentials."""
    plain = grpc.Compression.NoCompression
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS, compression=plain)
    return grpc.aio.secure_channel(address, credentials, options=CLIENT_OPTIONS, compression=plain)

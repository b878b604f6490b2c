"""Addresses as settings name them, checked when they are read: a wrong one is told at the start.

Types of fields: `Dial` is whom to call, `Listen` where to be called, `Pages` where metrics and
probes are, which may be nowhere. The checks behind them are there for settings that are no field.
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

OFF: Final = ("", "0")
"""Pages that are not served."""
_PORTS: Final = 65536


def can_listen(text: str) -> bool:
    """Whether this is `host:port` or `:port`."""
    _, colon, port = text.rpartition(":")
    return bool(colon) and port.isdecimal() and int(port) < _PORTS


def can_dial(text: str) -> bool:
    """Whether this is `host:port`."""
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < _PORTS


def dial(text: str) -> str:
    """The address of somebody to call."""
    if not can_dial(text):
        raise ValueError(f"{text!r} is no address: write host:port")
    return text


def web(text: str) -> str:
    """The address of a web server."""
    try:
        parts = urlsplit(text)
        # Reading the port is what refuses a wrong one.
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(f"{text!r} is no web address: write http://host:port or https://host")
    return text


def _listen(text: str) -> str:
    if not can_listen(text):
        raise ValueError(f"{text!r} is no address: write host:port or :port")
    return text


def _pages(text: str) -> str:
    if text not in OFF and not can_listen(text):
        raise ValueError(f"{text!r} is no address: write host:port, :port, or 0 for none")
    return text


def _dial_or_nobody(text: str) -> str:
    return dial(text) if text else text


def _web_or_nowhere(text: str) -> str:
    return web(text) if text else text


Listen = Annotated[str, AfterValidator(_listen)]
Pages = Annotated[str, AfterValidator(_pages)]
Dial = Annotated[str, AfterValidator(_dial_or_nobody)]
Web = Annotated[str, AfterValidator(_web_or_nowhere)]

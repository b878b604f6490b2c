"""Addresses as settings name them, checked when they are read: a wrong one is refused at the start.

Types of fields: `Dial` is where to call, `Listen` where to be called, `Pages` where metrics and
probes are, which may be switched off. The rules are those of `bigfleet_base.addresses`.
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

from bigfleet_base.addresses import Endpoint, check_plaintext, dialled

OFF: Final = ("", "0")
"""Pages that are not served."""
ALLOW_PLAINTEXT: Final = "Serve plaintext also to other machines, where no TLS is configured."
ALLOW_PLAINTEXT_PAGES: Final = "Serve /metrics and probes, which have no TLS, to other machines."


def check_listen(listen: str, flag: str, *, has_tls: bool, allowed: bool) -> None:
    """Refuse a port of calls that other machines reach in plaintext, unless that is allowed."""
    check_plaintext(
        listen,
        flag,
        has_tls=has_tls,
        allowed=allowed,
        allow_flag="--allow-plaintext",
        remedy="add --tls-cert, --tls-key and --tls-ca",
    )


def check_pages(pages: str, flag: str, *, allowed: bool) -> None:
    """Refuse pages that other machines reach, which are plaintext, unless that is allowed."""
    if pages not in OFF:
        check_plaintext(
            pages,
            flag,
            has_tls=False,
            allowed=allowed,
            allow_flag="--allow-plaintext-pages",
            remedy="metrics and probes have no TLS",
        )


def web(text: str) -> str:
    """The address of a web server."""
    try:
        parts = urlsplit(text)
        # Reading the port is what refuses a wrong one.
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(f"{text!r} is not a web address: write http://host:port or https://host")
    return text


def _listen(text: str) -> str:
    Endpoint.parse(text)
    return text


def _pages(text: str) -> str:
    if text not in OFF:
        Endpoint.parse(text, "host:port, :port, or 0 for none")
    return text


def _dial_or_none(text: str) -> str:
    return dialled(text) if text else text


def _web_or_none(text: str) -> str:
    return web(text) if text else text


Listen = Annotated[str, AfterValidator(_listen)]
Pages = Annotated[str, AfterValidator(_pages)]
Dial = Annotated[str, AfterValidator(_dial_or_none)]
Web = Annotated[str, AfterValidator(_web_or_none)]

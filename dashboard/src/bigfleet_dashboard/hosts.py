"""Which host names the dashboard answers to: the defence against DNS rebinding.

A web page of another site can let its own name resolve to the address of a dashboard. A browser
then takes the dashboard for a part of that site and lets its scripts read it and send to it. The
one trace is the `Host` header, which keeps the name that the browser was given. So a request is
answered only if its `Host` is

- a name of this machine for itself: localhost, 127.0.0.0/8 or ::1;
- what `--listen` names;
- the address at which the connection arrived, which matters to a dashboard that listens on all
  interfaces: a rebound name is a name and never a bare address;
- a name given with `--allowed-host`.

Ports are not compared: a rebound page differs in its name. A proxy may put the name that the
browser was given into `X-Forwarded-Host`; names there are checked too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final

from bigfleet_dashboard.errors import ConfigError, MisdirectedError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PORT: Final = re.compile(r":[0-9]{1,5}\Z")
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*\Z")
_LONGEST_NAME: Final = 253
_SHOWN: Final = 80
"""Characters of a refused name that the error repeats."""


class AllowedHosts:
    """The host names of one dashboard."""

    def __init__(self, listen_host: str, names: Iterable[str] = ()) -> None:
        """Raise ConfigError for a name that is not one."""
        listens_at = _canonical(listen_host)
        self._known = {"localhost", listens_at, *map(_configured, names)}
        self._everywhere = _is_unspecified(listens_at)

    def check(self, hosts: Sequence[str], forwarded: Iterable[str], local: str) -> None:
        """Raise MisdirectedError unless all names are allowed: `Host`, `X-Forwarded-Host`.

        `local` is the address at which the connection arrived, empty where it is not known.
        """
        if len(hosts) != 1:
            raise MisdirectedError(f"send one Host header: this request has {len(hosts)}")
        arrived_at = _address(local)
        behind = (name.strip() for text in forwarded for name in text.split(","))
        for text in (*hosts, *filter(None, behind)):
            host = _canonical(_PORT.sub("", text))
            if not self._allows(host, arrived_at):
                raise MisdirectedError(_refusal(text, host))

    def _allows(self, host: str | Address, arrived_at: Address | None) -> bool:
        if host in self._known:
            return True
        if isinstance(host, str):
            return False
        return host.is_loopback or host == arrived_at or (self._everywhere and host.is_unspecified)


def _configured(text: str) -> str | Address:
    host = _canonical(text)
    if isinstance(host, str) and not _is_name(host):
        raise ConfigError(
            f"--allowed-host {text[:_SHOWN]!r} is not a host name: write the part of the address "
            "line that names the host, without scheme, port and path: dashboard.example.org"
        )
    if _is_unspecified(host):
        raise ConfigError(f"--allowed-host {text!r} means every address: write the one in use")
    return host


def _canonical(text: str) -> str | Address:
    """An address as such; a name in small letters without the dot of the root."""
    bare = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
    address = _address(bare)
    return text.lower().removesuffix(".") if address is None else address


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_unspecified(host: str | Address) -> bool:
    return not isinstance(host, str) and host.is_unspecified


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _NAME.match(text) is not None


def _refusal(text: str, host: str | Address) -> str:
    remedy = ""
    if _is_name(str(host)) or not isinstance(host, str):
        remedy = f", or start it with --allowed-host {host} if people use that name"
    return (
        f"this dashboard does not answer to the host name {text[:_SHOWN]!r}: open it under a name "
        f"of its own, such as localhost{remedy}"
    )

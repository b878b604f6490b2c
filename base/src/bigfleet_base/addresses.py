"""Addresses: where a process listens, where others dial it, and where plaintext is allowed.

Three rules, and each is in one place for all processes:

- An address that a person can dial names a host. `:7780` and `0.0.0.0:7780` can be listened at and
  never dialled, so no process registers, stores or dials one (`can_dial`, `shard_address`).
- A process that is dialled says where: at the address it advertises, else at the host it listens
  on, else, when it listens on all interfaces, at the name of its machine (`own_address`).
- A port that other machines reach speaks TLS, or its owner has said that it may do without
  (`check_plaintext`).

Reading flags, files and variables is left to the settings of each process.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bigfleet_base.identifiers import shortened

HIGHEST_PORT: Final = 65_535
_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")


class AddressError(ValueError):
    """An address that cannot be used for what it is given for; says what to write instead."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port. The host is empty for all interfaces; IPv6 stands without brackets."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, wanted: str = "host:port or :port") -> Endpoint:
        """`host:port`, `[IPv6]:port` or `:port`."""
        host, colon, port = text.rpartition(":")
        is_port = port.isascii() and port.isdecimal() and int(port) <= HIGHEST_PORT
        if not colon or not is_port or not _can_be_host(host):
            raise AddressError(f"{shortened(text)} is not an address: write {wanted}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    @classmethod
    def of_socket(cls, name: tuple[object, ...]) -> Endpoint:
        """What `getsockname` says, with the IPv4 address inside a mapped IPv6 one."""
        return cls(str(_ip(str(name[0])) or name[0]), int(str(name[1])))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for all interfaces: nothing that can be dialled."""
        found = _ip(self.host)
        return not self.host or (found is not None and found.is_unspecified)

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of the same machine reach it."""
        found = _ip(self.host)
        if found is None:
            return self.host.rstrip(".").lower() == "localhost"
        return found.is_loopback

    @property
    def can_be_dialled(self) -> bool:
        """Whether it names a host, and a port that is not "any"."""
        return self.port > 0 and not self.is_wildcard


def can_listen(text: str) -> bool:
    """Whether this is `host:port` or `:port`."""
    try:
        Endpoint.parse(text)
    except AddressError:
        return False
    return True


def can_dial(text: str) -> bool:
    """Whether this is `host:port` with a host that is not "all interfaces"."""
    try:
        return Endpoint.parse(text).can_be_dialled
    except AddressError:
        return False


def dialled(text: str, wanted: str = "host:port") -> str:
    """This address, or AddressError where it cannot be dialled."""
    if not Endpoint.parse(text, wanted).can_be_dialled:
        raise AddressError(
            f"{shortened(text)} can be listened at but not dialled: write {wanted}, with the host "
            "by which others find it"
        )
    return text


def shard_address(shard_id: str, registered: str, flag: str) -> str:
    """Where a registered shard is dialled, for everything that finds shards through a coordinator.

    `flag` is how the caller can be given an address instead.

    A coordinator stores no address that cannot be dialled; one of an older version may still have
    such an address, and nothing is guessed from it: the host that is missing may be any.
    """
    if can_dial(registered):
        return registered
    what = (
        f"registered the address {shortened(registered)}, which cannot be dialled"
        if registered
        else "registered no address that can be dialled"
    )
    raise AddressError(
        f"shard {shard_id} {what}: start it with --advertise-addr HOST:PORT, or say where it is "
        f"with {flag} HOST:PORT"
    )


def own_address(
    advertised: str, bound: Endpoint, peers: Iterable[str], host_name: str, what: str
) -> str:
    """Where others dial this process; AddressError where they could not.

    `bound` is where it listens, `peers` are the addresses that pass the answer on, and `what` is
    the process in the words of the error. Loopback will do only when all peers are on it as well.
    """
    if advertised:
        mine = Endpoint.parse(dialled(advertised))
    elif bound.is_wildcard:
        mine = Endpoint(host_name, bound.port)
    else:
        mine = bound
    if not advertised and not can_dial(str(mine)):
        raise AddressError(
            f"--advertise-addr is missing: others cannot dial {what} at {mine}; give HOST:PORT"
        )
    away = [peer for peer in peers if not _is_loopback(peer)]
    if mine.is_loopback and away:
        raise AddressError(
            f"others cannot dial {what} at {mine}, since {away[0]} is another machine: give "
            "--advertise-addr HOST:PORT, and listen there with --listen"
        )
    return str(mine)


def check_plaintext(
    text: str, flag: str, *, has_tls: bool, allowed: bool, allow_flag: str, remedy: str
) -> None:
    """Refuse a port without TLS that other machines reach, unless its owner allows it."""
    if has_tls or allowed or Endpoint.parse(text).is_loopback:
        return
    raise AddressError(
        f"{flag} {text} would be plaintext for every machine that reaches it: {remedy}, listen on "
        f"127.0.0.1, or accept it with {allow_flag}"
    )


def bind_endpoint(listen: Endpoint) -> Endpoint:
    """The literal address to bind: names are resolved, all interfaces are `::` or `0.0.0.0`.

    A server bound to a literal knows the address of its socket, also in a library that does not
    show its sockets.
    """
    if listen.is_wildcard:
        return Endpoint("::" if socket.has_dualstack_ipv6() else "0.0.0.0", listen.port)
    literal = _ip(listen.host)
    if literal is not None:
        return Endpoint(str(literal), listen.port)
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise AddressError(
            f"cannot listen on {listen}: {error.strerror or error}; give a host of this machine"
        ) from error
    return Endpoint(str(found[0][4][0]), listen.port)


def _is_loopback(text: str) -> bool:
    try:
        return Endpoint.parse(text).is_loopback
    except AddressError:
        return False


def _can_be_host(text: str) -> bool:
    if text.startswith("[") and text.endswith("]"):
        return ":" in text and _ip(text[1:-1]) is not None
    return not text or _NAME.fullmatch(text) is not None


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that the system's resolver makes of a literal: `0` and `127.1` are some, too."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host)) if host[:1].isdigit() else None
        except OSError:
            return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found

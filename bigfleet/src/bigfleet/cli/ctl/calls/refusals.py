"""What a failed call means to the person who made it: one line, and the remedy.

PeerCallError(FailureError)
└── NoLeaderError       coordinators answer, and none of them leads
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc
import grpc.aio

from bigfleet.cli.errors import FailureError, InputError
from bigfleet.wire.tls import TlsFiles
from bigfleet.wire.tls_diagnosis import cause, certificate_trouble, of_transport

LEADER_KEY: Final = "bigfleet-leader"
_SHOWN_BY: Final = {
    "AssignDomain": "list-shards",
    "BindCluster": "list-shards",
    "DrainMachine": "list-machines",
    "ExcludeMachine": "list-machines",
    "RemoveProvider": "list-providers",
    "RemoveShard": "list-shards",
    "SetQuota": "list-shards",
}
"""What lists the things a call did not find."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that is called."""

    kind: str
    """coordinator or shard."""
    address: str
    name: str = ""
    tls: TlsFiles | None = None
    """What we show it; None for plaintext."""

    @property
    def title(self) -> str:
        """How the peer is called in listings."""
        return self.name or self.address

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name} at {self.address}"
            if self.name
            else f"the {self.kind} at {self.address}"
        )


class PeerCallError(FailureError):
    """A call that did not end well. Its text is for people."""

    def __init__(self, peer: Peer, code: str, text: str, leader: str = "") -> None:
        super().__init__(text)
        self.peer = peer
        self.code = code
        self.leader = leader
        if code == "INVALID_ARGUMENT":
            self.exit_code = InputError.exit_code

    @property
    def not_leader(self) -> bool:
        """Whether another coordinator should be asked."""
        return self.peer.kind == "coordinator" and self.code == "FAILED_PRECONDITION"

    @property
    def silent(self) -> bool:
        """Whether the peer gave no answer of its own."""
        return self.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


class NoLeaderError(PeerCallError):
    """No coordinator leads at the moment."""


def call_error(
    peer: Peer, method: str, seconds: float, error: grpc.aio.AioRpcError
) -> PeerCallError:
    """The meaning of a status."""
    code, detail = error.code().name, " ".join((error.details() or "").split())
    leader = ""
    for key, value in error.trailing_metadata() or ():
        if key == LEADER_KEY:
            leader = value if isinstance(value, str) else value.decode(errors="replace")
    return PeerCallError(peer, code, _words(peer, method, seconds, code, detail), leader)


def _words(peer: Peer, method: str, seconds: float, code: str, detail: str) -> str:
    if code == "UNAVAILABLE":
        if of_transport(detail):
            trouble = certificate_trouble(peer.address, peer.tls)
            if trouble:
                return f"cannot reach {peer}: {trouble}"
            return f"cannot reach {peer}: {cause(detail)}; {_elsewhere(peer)}"
        return f"{peer} cannot do it at present: {detail}; try again in a moment"
    if code == "DEADLINE_EXCEEDED":
        return f"{peer} did not answer within {seconds:g} s: wait longer with --timeout"
    if code == "UNIMPLEMENTED":
        return (
            f"{peer}: this {peer.kind}'s version cannot do it ({method}): upgrade it, or check "
            f"that a {peer.kind} listens there"
        )
    if code == "PERMISSION_DENIED":
        return (
            f"{peer} refuses: {detail or code}; use --tls-cert and --tls-key of a certificate that "
            "may do it (bigfleet://admin may do everything)"
        )
    if code == "RESOURCE_EXHAUSTED":
        return f"{peer} is overloaded: {detail or code}; try again in a moment, or ask for less"
    if code == "NOT_FOUND" and method in _SHOWN_BY:
        return f"{peer}: {detail or code}; `bigfleetctl {_SHOWN_BY[method]}` shows what there is"
    return f"{peer}: {detail or code}"


def _elsewhere(peer: Peer) -> str:
    option = "--coordinator" if peer.kind == "coordinator" else "--shard-addr"
    tls = "" if peer.tls else "; if it speaks TLS, add --tls-cert, --tls-key and --tls-ca"
    if peer.kind == "shard" and peer.name:
        return f"check that it runs, and that its address can be dialled from here{tls}"
    return f"check that it runs, or name another address with {option}{tls}"

"""A walker drives one machine with tokens of its own shard, each newer than the one before.

`try_...` sends one mutation and hands back the answer as it is; the plain verbs expect it to be
accepted and to settle, because that is what most behaviours need on their way.
"""

from typing import TYPE_CHECKING

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.harness.calls import Answer, Binding, Token
from bigfleet_conformance.harness.oracles import CONFIGURED, IDLE, SPECULATIVE

if TYPE_CHECKING:
    from bigfleet_conformance.harness.probe import Probe


class Walker:
    """One machine, and the shard that moves it."""

    def __init__(self, probe: "Probe", id: str, shard: str) -> None:
        self.probe = probe
        self.id = id
        self.shard = shard
        self.epoch = 1
        self.sequence = 0

    def next(self) -> Token:
        """A token newer than all of this walker's before."""
        self.sequence += 1
        return Token(self.shard, self.epoch, self.sequence)

    def at(self, epoch: int, sequence: int) -> Token:
        """A token of this walker's shard."""
        return Token(self.shard, epoch, sequence)

    def elsewhere(self) -> Token:
        """A first token of another shard: never fenced."""
        return Token(self.probe.shard(), 1, 1)

    async def try_create(self, token: Token | None = None) -> Answer:
        """Create, whatever comes back."""
        return await self.probe.create(self.id, token or self.next())

    async def try_configure(self, binding: Binding, token: Token | None = None) -> Answer:
        """Configure, whatever comes back."""
        return await self.probe.configure(self.id, token or self.next(), binding)

    async def try_drain(self, token: Token | None = None, *, grace: int = 0) -> Answer:
        """Drain, whatever comes back."""
        return await self.probe.drain(self.id, token or self.next(), grace)

    async def try_delete(self, token: Token | None = None) -> Answer:
        """Delete, whatever comes back."""
        return await self.probe.delete(self.id, token or self.next())

    async def create(self) -> pb.TransitionAck:
        """Create, and wait for IDLE."""
        ack = (await self.try_create()).must_be_ok()
        await self.probe.until(self.id, IDLE)
        return ack

    async def configure(self, binding: Binding) -> pb.TransitionAck:
        """Configure, and wait for CONFIGURED."""
        ack = (await self.try_configure(binding)).must_be_ok()
        await self.probe.until(self.id, CONFIGURED)
        return ack

    async def drain(self) -> pb.TransitionAck:
        """Drain, and wait for IDLE."""
        ack = (await self.try_drain()).must_be_ok()
        await self.probe.until(self.id, IDLE)
        return ack

    async def delete(self) -> pb.TransitionAck:
        """Delete, and wait for SPECULATIVE."""
        ack = (await self.try_delete()).must_be_ok()
        await self.probe.until(self.id, SPECULATIVE)
        return ack

    async def see(self) -> pb.Machine:
        """The record now."""
        return await self.probe.see(self.id)

    async def until(self, *states: int, within_s: float | None = None) -> pb.Machine:
        """Wait for one of the states."""
        return await self.probe.until(self.id, *states, within_s=within_s)

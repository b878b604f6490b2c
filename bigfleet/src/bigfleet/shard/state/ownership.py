"""Which machines are this shard's: one owner for each, also across restarts.

    given away by a transfer      not this shard's, whatever else holds
    received by a transfer        this shard's, although outside its domains
    in a domain of another shard  not this shard's
    in a domain of this shard     this shard's
    outside all domains           the default shard's

Where domains are assigned by several label keys, the key in use for the longest decides; where it
is not known which that is, another shard's domain does.

A shard that has never heard from a coordinator owns everything. One whose coordinator sends no
tables, only instructions, owns its domains, or everything while it has none. What is known is in a
small file; a change takes effect once it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import msgspec

from bigfleet.model import Machine
from bigfleet.model.machine import LABEL_CAPACITY_TYPE, LABEL_INSTANCE_TYPE, LABEL_ZONE
from bigfleet.observe.process import Offload
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.errors import OwnershipError
from bigfleet.shard.state.state_file import StateFile

FILE: Final = "ownership"
Domain = tuple[str, str]
"""A topology key and one of its values."""
_FIELDS: Final[dict[str, Callable[[Machine], str]]] = {
    LABEL_INSTANCE_TYPE: lambda machine: machine.instance_type,
    LABEL_ZONE: lambda machine: machine.zone,
    LABEL_CAPACITY_TYPE: lambda machine: machine.capacity_type.label,
}


class TransferRole(Enum):
    """Which end of a transfer this shard is."""

    DONOR = "donor"
    RECIPIENT = "recipient"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer carried out here and not yet settled by the coordinator."""

    move_id: str
    role: TransferRole
    machine_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Domains:
    """Who has which domains. `revision` is the coordinator's; 0 for a table it never sent."""

    own: frozenset[Domain] = frozenset()
    foreign: frozenset[Domain] = frozenset()
    is_default: bool = True
    revision: int = 0
    keys: tuple[str, ...] = ()
    """Label keys, the one in use for the longest first."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The content of the file."""

    domains: Domains = Domains()
    received: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
    transfers: tuple[Transfer, ...] = ()


_REMEDY: Final = (
    "restore it from a backup; or remove it, after which the coordinator names this shard's "
    "domains again but machines moved between shards go back to their domain's owner"
)


class OwnershipFile:
    """The rules and what they go by. `load` first."""

    def __init__(self, disk: Disk, offload: Offload) -> None:
        self._file = StateFile(disk, FILE, msgspec.json.encode, _decoded, _REMEDY, OwnershipError)
        self._offload = offload
        self._known = _Known()
        self._writing = asyncio.Lock()
        self._keys: tuple[tuple[str, Callable[[Machine], str] | None], ...] = ()
        self._answers: dict[tuple[str, ...], bool] = {}
        self.on_change: list[Callable[[frozenset[str] | None], None]] = []
        """Told of every change that may change an answer: for which machines, None for all."""

    def load(self) -> None:
        """Read the file. Blocking."""
        known = self._file.load()
        if known is not None:
            self._apply(known)

    @property
    def domains(self) -> Domains:
        """Who has which domains."""
        return self._known.domains

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """What the coordinator must be told of until it settles it."""
        return self._known.transfers

    def owns(self, machine: Machine) -> bool:
        """Whether a machine is this shard's."""
        known = self._known
        if machine.id in known.given:
            return False
        if machine.id in known.received:
            return True
        values = tuple([
            (field(machine) if field else "") or machine.labels.get(key, "")
            for key, field in self._keys
        ])  # fmt: skip
        answer = self._answers.get(values)
        if answer is None:
            answer = self._answers[values] = self._in_domains(values)
        return answer

    def has_given(self, machine_id: str) -> bool:
        """Whether a machine is another shard's because this one gave it away."""
        return machine_id in self._known.given

    async def assign(self, domains: Domains) -> None:
        """The coordinator's whole table."""
        await self._change(lambda known: replace(known, domains=domains))

    async def assign_domain(self, domain: Domain) -> None:
        """One more domain is this shard's."""
        await self._change(lambda known: replace(known, domains=_with(known.domains, domain)))

    async def unassign_domain(self, domain: Domain) -> None:
        """One domain is no longer this shard's."""
        await self._change(
            lambda known: replace(
                known, domains=_only_told(replace(known.domains, own=known.domains.own - {domain}))
            )
        )

    async def give(self, move_id: str, machine_ids: Iterable[str]) -> None:
        """These are another shard's from now on. Again under the same id changes nothing."""
        ids = frozenset(machine_ids)
        await self._change(
            lambda known: replace(
                known,
                given=known.given | ids,
                received=known.received - ids,
                transfers=_noted(
                    known.transfers, Transfer(move_id, TransferRole.DONOR, _sorted(ids))
                ),
            )
        )

    async def receive(self, move_id: str, machine_ids: Iterable[str]) -> None:
        """These are this shard's from now on. Again under the same id changes nothing."""
        ids = frozenset(machine_ids)
        await self._change(
            lambda known: replace(
                known,
                received=known.received | ids,
                given=known.given - ids,
                transfers=_noted(
                    known.transfers, Transfer(move_id, TransferRole.RECIPIENT, _sorted(ids))
                ),
            )
        )

    async def settle(self, move_id: str) -> None:
        """The coordinator knows of a transfer: it need not be told any more."""
        await self._change(
            lambda known: replace(
                known, transfers=tuple(t for t in known.transfers if t.move_id != move_id)
            )
        )

    async def _change(self, change: Callable[[_Known], _Known]) -> None:
        async with self._writing:
            known = change(self._known)
            if known == self._known:
                return
            await self._file.write(known, self._offload)
            self._apply(known)

    def _apply(self, known: _Known) -> None:
        before, self._known = self._known, known
        keys = sorted({key for key, _ in known.domains.own | known.domains.foreign})
        self._keys = tuple((key, _FIELDS.get(key)) for key in keys)
        self._answers = {}
        moved: frozenset[str] | None = None
        if before.domains == known.domains:
            moved = (before.received ^ known.received) | (before.given ^ known.given)
        if moved is None or moved:
            for listener in self.on_change:
                listener(moved)

    def _in_domains(self, values: tuple[str, ...]) -> bool:
        domains = self._known.domains
        mine = {(key, value) for (key, _), value in zip(self._keys, values, strict=True) if value}
        at = {domain[0]: domain for domain in mine}
        for domain in (at[key] for key in domains.keys if key in at):
            if domain in domains.own or domain in domains.foreign:
                return domain in domains.own
        if mine & domains.foreign:
            return False
        return bool(mine & domains.own) or domains.is_default


def _decoded(content: bytes) -> _Known:
    return msgspec.json.decode(content, type=_Known)


def _with(domains: Domains, domain: Domain) -> Domains:
    return _only_told(
        replace(domains, own=domains.own | {domain}, foreign=domains.foreign - {domain})
    )


def _only_told(domains: Domains) -> Domains:
    """Without a table, who has the rest is not known: all or nothing of it is this shard's."""
    return domains if domains.revision else replace(domains, is_default=not domains.own)


def _noted(transfers: tuple[Transfer, ...], new: Transfer) -> tuple[Transfer, ...]:
    others = tuple(t for t in transfers if (t.move_id, t.role) != (new.move_id, new.role))
    return (*others, new)


def _sorted(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(ids))

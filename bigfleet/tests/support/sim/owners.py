"""Every machine has one owner: checked whenever anybody's ownership or book changes.

    S14  no two shards own a machine, or have it in their books; a machine that no shard owns is on
         its way, and the disk of the shard that gave it says so

Between two changes nothing can go wrong, so this is a check of every step. A shard that is down
owns what its disk says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from bigfleet.model import Machine
from bigfleet.shard.state.ownership import OwnershipFile, TransferRole
from bigfleet.wire.machines import machine_from_proto
from sim.hosts import Host
from sim.slots import Slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.world import World

T = TypeVar("T")


async def _never(function: Callable[[], T]) -> T:
    """Nothing is written here."""
    return function()


class Owners:
    """Who owns what, in a world of one shard or of many."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._machines: dict[str, Machine] = {}
        self._is_begun = False
        """Whether every shard has heard whose is what; until then it has no provider to ask."""

    def machine(self, slot: Slot, provider: str) -> Machine:
        """A slot as far as ownership is concerned."""
        known = self._machines.get(slot.id)
        if known is None:
            record = slot.record(provider)
            known = self._machines[slot.id] = machine_from_proto(record, provider, "r1")
        return known

    def of(self, host: Host) -> OwnershipFile:
        """What a shard goes by now, or will when it starts."""
        if host.is_up and (live := host.life.ownership) is not None:
            return live
        kept = OwnershipFile(host.disk, _never)
        kept.load()
        return kept

    def changed(self, moved: Iterable[str] | None) -> None:
        """Something is another shard's, or a shard died: None for any machine."""
        hosts = self._world.hosts
        if len(hosts) == 1:
            return
        owners = {name: self.of(host) for name, host in hosts.items()}
        if not self._is_begun:
            self._is_begun = all(owner.domains.revision for owner in owners.values())
        if not self._is_begun:
            return
        on_way = {
            name
            for owner in owners.values()
            for transfer in owner.transfers
            if transfer.role is TransferRole.DONOR
            for name in transfer.machine_ids
        }
        named = None if moved is None else set(moved)
        for provider in self._world.providers.values():
            for slot in provider.slots.values():
                if named is None or slot.id in named:
                    self._check(self.machine(slot, provider.name), owners, slot.id in on_way)

    def _check(self, machine: Machine, owners: dict[str, OwnershipFile], is_on_way: bool) -> None:
        found = [name for name, owner in owners.items() if owner.owns(machine)]
        if len(found) > 1:
            self._world.trace.broken("S14", f"{machine.id} is owned by {' and '.join(found)}")
        if not found and not is_on_way:
            self._world.trace.broken(
                "S14", f"{machine.id} is lost: no shard owns it or gave it away"
            )

    def booked(self, host: Host, machine_id: str) -> None:
        """A shard has a machine in its book that it did not have."""
        for other in self._world.hosts.values():
            if other is not host and other.is_up and other.life.book.get(machine_id) is not None:
                told = f"{machine_id} is in the books of {host.name} and {other.name}"
                self._world.trace.broken("S14", told)

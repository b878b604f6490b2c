"""Removes what hosts and cancelled launches left behind and that is not a host.

Interfaces, volumes, user data and tags are listed by the substrate (`leftovers`) and removed after
the same grace and within the same rails as orphaned hosts. What a running Create is making, and
what belongs to the host of a slot, stays. Hosts themselves are judged in `plan`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.backend.reconcile.rails import RailLimits
from bigfleet_providerkit.calls.limiter import polling
from bigfleet_providerkit.clock import Runtime
from bigfleet_providerkit.errors import SubstrateError
from bigfleet_providerkit.substrate import LeavesLitter, Litter, Substrate


@dataclass(slots=True)
class LitterSweep:
    """What was seen of leftovers, and what is to be done about them."""

    substrate: Substrate
    runtime: Runtime
    log: FilteringBoundLogger
    limits: RailLimits
    in_use: Callable[[], frozenset[str]]
    """The operations of running Creates and of the hosts of slots."""
    seen: dict[str, float] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    async def run(self, known_hosts: int) -> int:
        """One pass; how many leftovers there are. A listing that raises is the caller's."""
        found = await self._found()
        due = self._due(found)
        if self.limits.remove_orphans:
            fresh = [item for item in due if item.ref not in self.held]
            await self._discard(fresh[: self.limits.removals(known_hosts)])
            waiting = [item for item in due if item.ref in self.seen]
            self.held = {item.ref for item in waiting}
            if waiting:
                self.log.error(
                    "removals of leftovers held; confirm them with `sweep`", count=len(waiting),
                    leftovers=",".join(f"{item.kind}/{item.ref}" for item in waiting[:10]),
                )  # fmt: skip
        return len(self.seen)

    async def sweep(self) -> list[str]:
        """Remove all that were seen; a person has confirmed it."""
        before = self.seen.keys()
        confirmed = [item for item in await self._found() if item.ref in before]
        await self._discard(confirmed)
        self.held &= self.seen.keys()
        return [item.ref for item in confirmed if item.ref not in self.seen]

    async def _found(self) -> list[Litter]:
        if not isinstance(self.substrate, LeavesLitter):
            return []
        with polling():
            listed = await self.substrate.leftovers()
        used = self.in_use()
        found = [item for item in listed if not item.operation or item.operation not in used]
        self._remember({item.ref: item for item in found})
        return found

    def _remember(self, found: Mapping[str, Litter]) -> None:
        now = self.runtime.clock.now()
        self.held &= found.keys()
        self.seen = {ref: self.seen.get(ref, item.created or now) for ref, item in found.items()}

    def _due(self, found: Sequence[Litter]) -> list[Litter]:
        now = self.runtime.clock.now()
        return [item for item in found if now - self.seen[item.ref] >= self.limits.orphan_grace]

    async def _discard(self, items: Sequence[Litter]) -> None:
        if not isinstance(self.substrate, LeavesLitter):
            return
        for item in items:
            try:
                await self.substrate.discard(item)
            except SubstrateError as error:
                self.log.warning(
                    "leftover not removed", kind=item.kind, ref=item.ref, error=str(error)
                )
                continue
            self.log.warning("leftover removed", kind=item.kind, ref=item.ref)
            self.seen.pop(item.ref, None)

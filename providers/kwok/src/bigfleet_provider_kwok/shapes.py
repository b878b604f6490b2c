"""What each machine is, as the shard was told: read from the same offerings as the kit reads.

A host does not carry its offering, so this looks it up by machine id, and reads the offerings again
when it meets an id that it does not know (they may have been reloaded).
"""

from collections.abc import Callable, Mapping

from bigfleet_providerkit import Host, InvalidRequest
from bigfleet_providerkit.machines.record import Shape


class Shapes:
    """Shapes by machine id."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, Shape]],
        unlisted: Callable[[Host], Shape | None] = lambda host: None,
    ) -> None:
        self._read = read
        self._unlisted = unlisted
        self._known = read()

    def of(self, host: Host) -> Shape:
        """The shape of a host's machine; one outside the offerings is judged by its type."""
        if host.machine_id not in self._known:
            self._known = self._read()
        shape = self._known.get(host.machine_id) or self._unlisted(host)
        if shape is None:
            raise InvalidRequest(f"the shape of {host.machine_id} is unknown; is it offered?")
        return shape

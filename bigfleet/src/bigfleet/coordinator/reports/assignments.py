"""What a shard is given: its domains and those of the others, its clusters, quotas and providers.

Complete for one shard, and sent whenever it holds another revision than the coordinator's. Domains
of others are most of it, up to a hundred thousand for each of two hundred shards, so they are kept
encoded in parts, and an answer is those parts strung together: concatenated messages are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bigfleet.coordinator.state import Domain, FleetState, ProviderEntry
from bigfleet.coordinator.state.tables import Part
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

_FIELD: Final = pb.ReportAck.DESCRIPTOR.fields_by_name["assignments"].number
_BYTES: Final = 2
"""The wire type of a nested message."""


@dataclass(frozen=True, slots=True)
class ReportReply:
    """The answer to a report; what is assigned, if anything is due, is encoded already."""

    head: pb.ReportAck
    assignments: tuple[bytes, ...] | None = None
    """In pieces, to be copied once."""

    def encode(self) -> bytes:
        """The answer as it is sent."""
        head = self.head.SerializeToString()
        if self.assignments is None:
            return head
        tag, length = _varint(_FIELD << 3 | _BYTES), _varint(sum(map(len, self.assignments)))
        return b"".join((head, tag, length, *self.assignments))

    def to_proto(self) -> pb.ReportAck:
        """The answer as a message."""
        return pb.ReportAck.FromString(self.encode())


class AssignmentTable:
    """Builds them from the state; keeps what is slow to build."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._foreign: dict[Part, bytes] = {}
        state.on_domains.append(self._changed)

    def is_due(self, held: int) -> bool:
        """Whether a shard that holds this revision needs new ones. One from the future does too:
        the state was restored from before it."""
        return held != self._state.revision

    def of(self, shard_id: str) -> tuple[bytes, ...]:
        """Everything of one shard, encoded, in pieces."""
        state = self._state
        own = pb.ShardAssignments(
            domains=[_domain(domain, shard_id) for domain in sorted(state.domains_of(shard_id))],
            clusters=sorted(state.clusters_of(shard_id)),
            quotas=[
                pb.QuotaAllocation(
                    provider=pool[0],
                    region=pool[1],
                    per_shard={shard_id: state.quotas[pool].get(shard_id, 0)},
                )
                for pool in sorted(state.quotas)
            ],
            providers=[
                provider_to_proto(state.providers[name])
                for name in sorted(state.providers)
                if state.providers[name].serves(shard_id)
            ],
            revision=state.revision,
            is_default=state.default_shard == shard_id,
            topology_keys=state.topology_keys(),
        )
        foreign = (self._encoded(part) for part in state.parts() if part[0] != shard_id)
        return (own.SerializeToString(), *foreign)

    def _changed(self, part: Part) -> None:
        self._foreign.pop(part, None)

    def _encoded(self, part: Part) -> bytes:
        kept = self._foreign.get(part)
        if kept is None:
            built = pb.ShardAssignments()
            for key, value in sorted(self._state.part(part)):
                built.foreign_domains.add(topology_key=key, topology_value=value, shard_id=part[0])
            kept = self._foreign[part] = built.SerializeToString()
        return kept


def provider_to_proto(provider: ProviderEntry) -> pb.ProviderEntry:
    """A provider as it is sent."""
    return pb.ProviderEntry(
        name=provider.name,
        address=provider.address,
        region=provider.region,
        shards=provider.shards,
    )


def _domain(domain: Domain, shard_id: str) -> pb.DomainAssignment:
    return pb.DomainAssignment(topology_key=domain[0], topology_value=domain[1], shard_id=shard_id)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)

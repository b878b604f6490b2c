"""Mutants of metadata and of the shape of records (M054-M067)."""

import math

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from mutantkit.registry import broken
from reference.inventory import Slot
from reference.provider import CONFIGURED, CONFIGURING, Call, Provider
from reference.reads import RefusedError


@broken("M054")
class SharedMap(Provider):
    def bind(self, slot: Slot, request: pb.ConfigureRequest) -> None:
        super().bind(slot, request)
        for other in self.inventory.slots.values():
            if other.record.state in (CONFIGURING, CONFIGURED) and other is not slot:
                other.record.shard_metadata.clear()
                other.record.shard_metadata.update(dict(request.shard_metadata))
                other.encoded = b""


@broken("M055")
class EmptyValuesDropped(Provider):
    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {key: value for key, value in metadata.items() if value}


@broken("M056")
class ValuesTrimmed(Provider):
    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {key: value.strip() for key, value in metadata.items()}


@broken("M057")
class ValuesCutAtNul(Provider):
    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        return {key: value.partition("\0")[0] for key, value in metadata.items()}


@broken("M058")
class LargeMetadataCut(Provider):
    def kept(self, metadata: dict[str, str]) -> dict[str, str]:
        room, found = 256 * 1024, {}
        for key, value in metadata.items():
            room -= len(key) + len(value)
            if room < 0:
                break
            found[key] = value
        return found


@broken("M059")
class BlobRefusedLate(Provider):
    async def accept(self, call: Call) -> pb.TransitionAck:
        answer = await super().accept(call)
        request = call.request
        if isinstance(request, pb.ConfigureRequest) and len(request.bootstrap_blob) > 1 << 20:
            raise RefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "the blob is too large")
        return answer


@broken("M060")
class OldMetadataMerged(Provider):
    def unbind(self, slot: Slot) -> None:
        left = self.__dict__.setdefault("left", {})
        left[slot.record.id] = dict(slot.record.shard_metadata)
        super().unbind(slot)

    def bind(self, slot: Slot, request: pb.ConfigureRequest) -> None:
        old = self.__dict__.get("left", {}).get(slot.record.id, {})
        super().bind(slot, request)
        for key, value in old.items():
            slot.record.shard_metadata.setdefault(key, value)


class OddSlots(Provider):
    """Every record is seeded with one thing wrong."""

    def load(self) -> None:
        super().load()
        for slot in self.inventory.slots.values():
            self.spoil(slot.record)
            slot.encoded = b""

    def spoil(self, record: pb.Machine) -> None:
        """The one thing."""


@broken("M061")
class TypeInLabels(OddSlots):
    def spoil(self, record: pb.Machine) -> None:
        record.labels["instance_type"] = record.instance_type


@broken("M062")
class PriceNan(OddSlots):
    def spoil(self, record: pb.Machine) -> None:
        record.price_per_hour = math.nan


@broken("M063")
class SpotWithoutRisk(OddSlots):
    def spoil(self, record: pb.Machine) -> None:
        record.interruption_probability = 0.0


@broken("M064")
class OddQuantity(OddSlots):
    def spoil(self, record: pb.Machine) -> None:
        record.resources.resources["memory"] = "16 GB"


@broken("M065")
class HostProviderChanges(Provider):
    def ended(self, slot: Slot, kind: str) -> None:
        if kind == "configure":
            slot.record.host.provider = "another"


@broken("M066")
class ZoneLost(Provider):
    def ended(self, slot: Slot, kind: str) -> None:
        if kind == "create":
            slot.record.ClearField("zone")


@broken("M067")
class NoResources(OddSlots):
    def spoil(self, record: pb.Machine) -> None:
        record.ClearField("resources")

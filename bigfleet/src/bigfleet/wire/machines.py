"""Machine records of providers as values, and stamps as `shard_metadata`.

A record that breaks a rule is refused alone with a MachineError. A state outside the enum is worse:
its meaning is unknown, so it makes the whole answer unusable. Keeping the last good
record, counting and logging refusals are left to the shard.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from bigfleet.model import (
    CapacityType,
    HostRef,
    Machine,
    MachineError,
    MachineState,
    PenaltyBucket,
    QuantityError,
    Stamp,
    Taint,
    TaintError,
    bucket_of,
    format_resources,
    parse_resources,
    validate_machine,
)
from bigfleet.wire.errors import UnknownStateError
from bigfleet.wire.taints import (
    LABEL_TAINTS,
    taints_from_proto,
    taints_of_label,
    taints_to_proto,
)
from bigfleet_api.v1alpha1 import provider_pb2 as pb

KEY_PRIORITY: Final = "bigfleet.lucy.sh/assigned-priority"
KEY_INTERRUPTION: Final = "bigfleet.lucy.sh/assigned-interruption-penalty-dollars"
KEY_RECLAMATION: Final = "bigfleet.lucy.sh/assigned-reclamation-penalty-dollars"
KEY_FINGERPRINT: Final = "bigfleet.lucy.sh/assigned-need-fingerprint"
KEY_GROUP: Final = "bigfleet.lucy.sh/assigned-group"
KEY_SHAPE: Final = "bigfleet.lucy.sh/assigned-need-shape"
KEY_SIZE_CLASS: Final = "bigfleet.lucy.sh/assigned-size-class"
KEY_SEQUENCE: Final = "bigfleet.lucy.sh/assigned-sequence"
"""The last three are read where they are there: without them a stamp is known by its fingerprint
and counts as the oldest."""
STAMP_KEYS: Final = frozenset(
    {KEY_PRIORITY, KEY_INTERRUPTION, KEY_RECLAMATION, KEY_FINGERPRINT, KEY_GROUP}
)

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_DOLLARS: Final = re.compile(r"\+?(?:inf|[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)", re.IGNORECASE)
_COUNT: Final = re.compile(r"[0-9]{1,19}")
_INT64_MAX: Final = 2**63 - 1
_INT32: Final = range(-(2**31), 2**31)
_TEXTS: Final = 4096
"""Texts of metadata that are read once: fleets write few different ones."""
_STATES: Final = {int(state): state for state in MachineState}
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
Complain = Callable[[str], None]


def _warn(complaint: str) -> None:
    _log.warning("%s", complaint)


def machine_from_proto(
    proto: pb.Machine, provider: str, region: str, complain: Complain = _warn
) -> Machine:
    """The record as a value.

    Raises MachineError when a shard must not take it, UnknownStateError when its state has a number
    without a name. A malformed value of `shard_metadata` is complained about and passed over.
    """
    state = _STATES.get(proto.state)
    if state is None:
        raise UnknownStateError(
            f"machine {proto.id!r} has state {proto.state}, which this release does not know: "
            "nothing of this answer is used"
        )
    machine = Machine(
        id=proto.id,
        state=state,
        host=_host(proto),
        provider=provider,
        region=region,
        cluster=proto.cluster,
        instance_type=proto.instance_type,
        zone=proto.zone,
        capacity_type=_capacity_type(proto),
        labels=dict(proto.labels),
        resources=_resources(proto, proto.resources, "resources"),
        allocatable=(
            _resources(proto, proto.allocatable, "allocatable")
            if proto.HasField("allocatable")
            else None
        ),
        price_per_hour=proto.price_per_hour,
        interruption_probability=proto.interruption_probability,
        interruption_at_ns=max(0, proto.interruption_unix_nanos),
        stamp=stamp_from_metadata(proto.id, proto.cluster, proto.shard_metadata, complain),
        last_error=proto.last_error,
        taints=_taints(proto),
    )
    validate_machine(machine)
    return machine


def stamp_from_metadata(
    machine: str, cluster: str, metadata: Mapping[str, str], complain: Complain = _warn
) -> Stamp | None:
    """What a bound machine was taken for, as far as its metadata says so.

    Where the shape is not in it, a shard knows it again from the demand with this fingerprint.
    """
    if not cluster or not metadata:
        return None
    metadata = dict(metadata)
    if STAMP_KEYS.isdisjoint(metadata):
        return None

    def read(key: str, parse: Callable[[str], _T], otherwise: _T) -> _T:
        text = metadata.get(key)
        if text is None:
            return otherwise
        try:
            return parse(text)
        except ValueError as error:
            complain(f"machine {machine!r}: {key} is passed over: {error}")
            return otherwise

    return Stamp(
        cluster=cluster,
        shape=metadata.get(KEY_SHAPE, ""),
        group=metadata.get(KEY_GROUP, ""),
        fingerprint=metadata.get(KEY_FINGERPRINT, ""),
        priority=read(KEY_PRIORITY, _priority, 0),
        interruption=read(KEY_INTERRUPTION, _bucket, PenaltyBucket.UNSPECIFIED),
        reclamation=read(KEY_RECLAMATION, _bucket, PenaltyBucket.UNSPECIFIED),
        sequence=read(KEY_SEQUENCE, _sequence, 0),
        size_class=metadata.get(KEY_SIZE_CLASS, ""),
    )


def metadata_from_stamp(stamp: Stamp) -> dict[str, str]:
    """What a shard sends with Configure. A penalty that was not stated is left out."""
    metadata = {KEY_PRIORITY: str(stamp.priority)}
    penalties = ((KEY_INTERRUPTION, stamp.interruption), (KEY_RECLAMATION, stamp.reclamation))
    for key, bucket in penalties:
        if bucket is not PenaltyBucket.UNSPECIFIED:
            metadata[key] = _DOLLAR_TEXTS[bucket]
    if stamp.fingerprint:
        metadata[KEY_FINGERPRINT] = stamp.fingerprint
    if stamp.group:
        metadata[KEY_GROUP] = stamp.group
    if stamp.shape:
        metadata[KEY_SHAPE] = stamp.shape
    if stamp.size_class:
        metadata[KEY_SIZE_CLASS] = stamp.size_class
    if stamp.sequence:
        metadata[KEY_SEQUENCE] = str(stamp.sequence)
    return metadata


_DOLLAR_TEXTS: Final = {bucket: repr(bucket.dollars).removesuffix(".0") for bucket in PenaltyBucket}


def _host(proto: pb.Machine) -> HostRef | None:
    host = proto.host
    return HostRef(host.provider, host.ref) if host.provider or host.ref else None


def _taints(proto: pb.Machine) -> tuple[Taint, ...]:
    if not proto.taints:
        text = proto.labels.get(LABEL_TAINTS, "")
        return taints_of_label(text) if text else ()
    try:
        return taints_from_proto(proto.taints)
    except TaintError as error:
        raise MachineError(f"machine {proto.id!r}: {error}") from error


def _capacity_type(proto: pb.Machine) -> CapacityType:
    try:
        return CapacityType(proto.capacity_type)
    except ValueError:
        raise MachineError(
            f"machine {proto.id!r} has capacity type {proto.capacity_type}, which this release "
            "does not know: report bare metal, reserved, on-demand or spot"
        ) from None


def _resources(proto: pb.Machine, amounts: pb.Resources, what: str) -> dict[str, int]:
    try:
        return parse_resources(amounts.resources)
    except QuantityError as error:
        raise MachineError(f"machine {proto.id!r}: {what}: {error}") from error


@lru_cache(_TEXTS)
def _priority(text: str) -> int:
    if not _INTEGER.fullmatch(text) or int(text) not in _INT32:
        raise ValueError(f"{text!r} is not a priority; write a whole number of 32 bits")
    return int(text)


def _sequence(text: str) -> int:
    if not _COUNT.fullmatch(text) or int(text) > _INT64_MAX:
        raise ValueError(f"{text!r} is not a sequence number; write a whole number of 64 bits")
    return int(text)


@lru_cache(_TEXTS)
def _bucket(text: str) -> PenaltyBucket:
    if not _DOLLARS.fullmatch(text):
        raise ValueError(f"{text!r} is not a penalty; write dollars of zero or more, or inf")
    return bucket_of(float(text))


def machine_to_proto(machine: Machine) -> pb.Machine:
    """A machine as its shard knows it; the stamp of a bound one as its provider was given it."""
    record = pb.Machine(
        id=machine.id,
        state=pb.MachineState.ValueType(machine.state),
        instance_type=machine.instance_type,
        zone=machine.zone,
        capacity_type=pb.CapacityType.ValueType(machine.capacity_type),
        price_per_hour=machine.price_per_hour,
        interruption_probability=machine.interruption_probability,
        resources=pb.Resources(resources=format_resources(machine.resources)),
        labels=machine.labels,
        last_error=machine.last_error,
        cluster=machine.cluster,
        interruption_unix_nanos=machine.interruption_at_ns,
        taints=taints_to_proto(machine.taints),
    )
    if machine.host is not None:
        record.host.provider, record.host.ref = machine.host.provider, machine.host.ref
    if machine.allocatable is not None:
        record.allocatable.resources.update(format_resources(machine.allocatable))
    if machine.stamp is not None and machine.cluster:
        record.shard_metadata.update(metadata_from_stamp(machine.stamp))
    return record

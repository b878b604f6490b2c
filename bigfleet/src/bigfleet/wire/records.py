"""Machines as records, for those who read a shard: the way back from values to protobuf."""

from __future__ import annotations

from bigfleet.model import Machine, format_resources
from bigfleet.wire.machines import metadata_from_stamp
from bigfleet.wire.taints import taints_to_proto
from bigfleet_api.v1alpha1 import provider_pb2 as pb


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

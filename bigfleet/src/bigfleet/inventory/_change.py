"""One machine that moved on: written column by column, where a full put would look at everything.

A machine that changes its state, host, cluster, stamp or the marks on it keeps its class and its
labels, so there is nothing to intern and nothing to look up. Anything more is a put.
"""

from __future__ import annotations

from bigfleet.inventory._store import Store
from bigfleet.model.columns import Flag
from bigfleet.model.machine import Machine


def keeps_attributes(before: Machine, after: Machine) -> bool:
    """Whether only what has a column of its own may differ."""
    return (
        before.instance_type == after.instance_type
        and before.zone == after.zone
        and before.price_per_hour == after.price_per_hour
        and before.provider == after.provider
        and before.region == after.region
        and before.capacity_type is after.capacity_type
        and before.interruption_probability == after.interruption_probability
        and before.last_error == after.last_error
        and (before.labels is after.labels or before.labels == after.labels)
        and (before.resources is after.resources or before.resources == after.resources)
        and before.allocatable == after.allocatable
    )


def write_change(store: Store, row: int, before: Machine, after: Machine) -> None:
    """Write what differs."""
    if before.host != after.host:
        store.write_host(row, after.host)
    if before.state is not after.state:
        store.state.put(row, int(after.state))
    if before.cluster != after.cluster:
        store.cluster.put(row, store.symbols.clusters.of(after.cluster) if after.cluster else -1)
    if before.stamp != after.stamp:
        _write_stamp(store, row, after)
    if before.idle_since_ns != after.idle_since_ns:
        store.idle_since.put(row, after.idle_since_ns)
    if before.pods != after.pods:
        store.pods.put(row, -1 if after.pods is None else after.pods)
    if before.leaving != after.leaving:
        _write_leaving(store, row, after)
    if before.interruption_at_ns != after.interruption_at_ns:
        store.sparse["ending_at"].put(row, after.interruption_at_ns)
    if before.not_ready_since_ns != after.not_ready_since_ns:
        store.sparse["not_ready_since"].put(row, after.not_ready_since_ns)
    flags = _flags(after)
    if flags != _flags(before):
        store.flags.put(row, flags)


def _write_stamp(store: Store, row: int, after: Machine) -> None:
    stamp = after.stamp
    store.stamp.put(row, -1 if stamp is None else store.symbols.identity(stamp))
    store.sequence.put(row, 0 if stamp is None else stamp.sequence)


def _write_leaving(store: Store, row: int, after: Machine) -> None:
    leaving = after.leaving
    meant = None if leaving is None else leaving.for_stamp
    store.leaving_for.put(row, -1 if meant is None else store.symbols.identity(meant))
    store.leaving_since.put(row, 0 if leaving is None else leaving.since_ns)
    store.sparse["leaving_sequence"].put(row, 0 if meant is None else meant.sequence)


def _flags(machine: Machine) -> int:
    return (
        (Flag.LEAVING if machine.leaving is not None else 0)
        | (Flag.FINAL if machine.leaving is not None and machine.leaving.final else 0)
        | (Flag.DO_NOT_DISRUPT if machine.do_not_disrupt else 0)
        | (Flag.EXCLUDED if machine.excluded else 0)
        | (Flag.RESERVED if machine.reserved else 0)
        | (Flag.BACKING_OFF if machine.backing_off else 0)
        | (Flag.ENDING if machine.interruption_at_ns else 0)
        | (Flag.NOT_READY if machine.not_ready_since_ns else 0)
    )

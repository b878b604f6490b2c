"""Which engine the settings mean."""

from __future__ import annotations

from bigfleet.coordinator.store.call_metrics import NoStoreCounts
from bigfleet.coordinator.store.errors import StoreSettingsError
from bigfleet.coordinator.store.etcd import EtcdAddress, EtcdStore
from bigfleet.coordinator.store.etcd.connection.address import SCHEME
from bigfleet.coordinator.store.interface import StoreCounts, StorePlace
from bigfleet.coordinator.store.sqlite import SqliteStore
from bigfleet.observe.process import Clock, Offload

Engine = SqliteStore | EtcdStore
"""Both are a `Store` and `Restorable`."""


def open_store(
    place: StorePlace, clock: Clock, offload: Offload, counts: StoreCounts | None = None
) -> Engine:
    """The engine for a place, not yet opened. The Offload has to be one with threads of its own."""
    counts = counts if counts is not None else NoStoreCounts()
    if place.address == "sqlite":
        return SqliteStore(place.data_dir, clock, offload, counts)
    if place.address.startswith(SCHEME):
        address = EtcdAddress.of(place.address, place.tls, place.username, place.password_file)
        return EtcdStore(address, place.replica, clock, offload, counts)
    raise StoreSettingsError(
        f"--store {place.address!r} is neither sqlite nor etcd://host:2379,host:2379"
    )

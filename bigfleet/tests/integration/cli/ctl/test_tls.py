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


def refused(secured: Secured, *words: str) -> str:
    """The one line with which a command ends."""
    result = ctl("--coordinator", secured.coordinator, *words, "list-shards")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    return line


def test_missing_certificates_are_named(secured: Secured) -> None:
    line = refused(secured)
    assert "it speaks TLS, and no certificate was given: add --tls-cert, --tls-key" in line


def test_an_expired_certificate_is_named(secured: Secured, tmp_path: Path) -> None:
    mine = write_files(tmp_path / "me", secured.ca, ["bigfleet://admin"], hours=-0.5)
    assert f"{mine.cert} expired at 20" in refused(secured, *flags(mine))


def test_a_ca_that_did_not_issue_the_servers_certificate_is_named(
    secured: Secured, tmp_path: Path
) -> None:
    other = trustme.CA(key_type=trustme.KeyType.ECDSA)
    mine = write_files(tmp_path / "me", other, ["bigfleet://admin"])
    line = refused(secured, *flags(mine))
    assert f"its certificate is not issued by a CA of {mine.ca}: give the CA of the fleet" in line


def test_a_certificate_of_another_ca_is_named(secured: Secured, tmp_path: Path) -> None:
    other = trustme.CA(key_type=trustme.KeyType.ECDSA)
    mine = write_files(tmp_path / "me", other, ["bigfleet://admin"])
    secured.ca.cert_pem.write_to_path(mine.ca)
    line = refused(secured, *flags(mine))
    assert str(mine.cert) in line
    assert "use a certificate that the CA of the fleet issued" in line


def test_an_expired_certificate_of_the_server_is_named(tmp_path: Path) -> None:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    files = write_files(tmp_path / "server", ca, ["bigfleet://admin"], hours=-0.5)
    mine = write_files(tmp_path / "me", ca, ["bigfleet://admin"])
    with serving(CannedCoordinator(), files) as address:
        line = refused(Secured(address, "", ca), *flags(mine))
    assert "its certificate has expired: renew the certificate of the server" in line


def test_certificates_for_a_plaintext_server_are_named(tmp_path: Path) -> None:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    mine = write_files(tmp_path / "me", ca, ["bigfleet://admin"])
    with serving(CannedCoordinator()) as address:
        line = refused(Secured(address, "", ca), *flags(mine))
    assert "it speaks plaintext: leave --tls-cert, --tls-key and --tls-ca out" in line


def test_a_name_that_the_certificate_does_not_have_is_named(
    secured: Secured, tmp_path: Path
) -> None:
    mine = write_files(tmp_path / "me", secured.ca, ["bigfleet://admin"])
    port = secured.coordinator.rpartition(":")[2]
    named = Secured(f"127.0.0.2:{port}", "", secured.ca)
    # The server listens on 127.0.0.1 only; here nothing answers, and no certificate is blamed.
    assert "certificate" not in refused(named, *flags(mine))


def test_a_key_of_another_certificate_is_bad_input(secured: Secured, tmp_path: Path) -> None:
    one = write_files(tmp_path / "one", secured.ca)
    two = write_files(tmp_path / "two", secured.ca)
    mixed = flags(TlsFiles(one.cert, two.key, one.ca))
    result = ctl("--coordinator", secured.coordinator, *mixed, "list-shards")
    assert result.exit_code == 2
    assert "is not the key of" in result.stderr

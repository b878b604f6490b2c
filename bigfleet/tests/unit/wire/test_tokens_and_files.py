"""Fencing tokens, and TLS files that are all there or not at all and may change."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from bigfleet.wire.channel import CLIENT_OPTIONS, MAX_MESSAGE_BYTES
from bigfleet.wire.errors import FencingError, TlsFilesError
from bigfleet.wire.fencing import FencingStamps, Token
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import LOOK_EVERY_SECONDS, ClientTls, TlsFiles
from certificates import damage_certificate, no_file_handles, write_files, write_unknown_key


def test_numbers_begin_at_one_and_are_given_once() -> None:
    stamps = FencingStamps("shard-a", 7)
    assert [stamps.next() for _ in range(3)] == [Token("shard-a", 7, n) for n in (1, 2, 3)]


@pytest.mark.parametrize(("shard", "epoch"), [("", 1), ("a", 0), ("a", -1), ("a", 2**63)])
def test_an_identity_that_cannot_fence_is_refused(shard: str, epoch: int) -> None:
    with pytest.raises(FencingError):
        FencingStamps(shard, epoch)


def test_channels_take_large_messages_and_repeat_nothing() -> None:
    options = dict(CLIENT_OPTIONS)
    assert MAX_MESSAGE_BYTES == 268_435_456
    assert options["grpc.max_receive_message_length"] == MAX_MESSAGE_BYTES
    assert options["grpc.max_send_message_length"] == MAX_MESSAGE_BYTES
    assert options["grpc.keepalive_time_ms"] == 30_000
    assert options["grpc.keepalive_timeout_ms"] == 20_000
    assert options["grpc.enable_retries"] == 0
    assert options["grpc.lb_policy_name"] == "pick_first"


def test_the_floor_of_tls_is_set_before_grpc_starts() -> None:
    import bigfleet.wire.channel  # noqa: F401

    assert os.environ["GRPC_SSL_CIPHER_SUITES"] == "PSK-AES128-CBC-SHA"


def install(folder: Path, ca: trustme.CA) -> TlsFiles:
    """Files of one authority, in place of what was there."""
    leaf = ca.issue_cert("127.0.0.1")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    leaf.private_key_pem.write_to_path(folder / "key.pem")
    ca.cert_pem.write_to_path(folder / "ca.pem")
    return TlsFiles(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")


def test_all_files_or_none() -> None:
    assert TlsFiles.of(None, "", None) is None
    whole = TlsFiles.of("c", "k", "a")
    assert whole == TlsFiles(Path("c"), Path("k"), Path("a"))
    with pytest.raises(TlsFilesError, match="add --tls-key and --tls-ca"):
        TlsFiles.of("c", None, "")


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    files = install(tmp_path, trustme.CA())
    trustme.CA().issue_cert("x").private_key_pem.write_to_path(tmp_path / "key.pem")
    with pytest.raises(TlsFilesError, match="is not the key of"):
        files.read()
    (tmp_path / "key.pem").write_text("junk")
    with pytest.raises(TlsFilesError, match="cannot be used"):
        files.read()
    (tmp_path / "ca.pem").unlink()
    with pytest.raises(TlsFilesError, match=r"ca\.pem"):
        files.read()


def test_changed_files_are_seen_at_the_next_look_and_broken_ones_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = [100.0]
    tls = ClientTls(install(tmp_path, trustme.CA()), lambda: time[0])
    first = tls.credentials
    install(tmp_path, trustme.CA())
    assert not tls.fresh()
    time[0] += LOOK_EVERY_SECONDS
    assert tls.fresh()
    assert tls.credentials is not first
    second = tls.credentials
    (tmp_path / "cert.pem").write_text("broken")
    time[0] += LOOK_EVERY_SECONDS
    with caplog.at_level(logging.WARNING):
        assert not tls.fresh()
    assert "the last good TLS files stay in use" in caplog.text
    assert tls.credentials is second
    time[0] += LOOK_EVERY_SECONDS
    assert not tls.fresh()


@pytest.mark.parametrize("spoil", [damage_certificate, write_unknown_key])
def test_what_can_only_be_read_in_part_is_not_used_either(
    tmp_path: Path, spoil: Callable[[TlsFiles], None]
) -> None:
    time = [100.0]
    files = write_files(tmp_path, trustme.CA())
    tls = ClientTls(files, lambda: time[0])
    first = tls.credentials
    spoil(files)
    with pytest.raises(TlsFilesError, match="cannot be used"):
        files.read()
    time[0] += LOOK_EVERY_SECONDS
    assert not tls.fresh()
    assert tls.credentials is first


def test_new_files_that_could_not_be_read_once_are_read_when_they_can_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time = [100.0]
    client = ClientTls(install(tmp_path, trustme.CA()), lambda: time[0])
    server = ServerTls(install(tmp_path, trustme.CA()))
    before = client.credentials
    install(tmp_path, trustme.CA())
    with no_file_handles(), caplog.at_level(logging.WARNING):
        for _ in range(3):
            time[0] += LOOK_EVERY_SECONDS
            assert not client.fresh()
            assert not server.look()
    assert caplog.text.count("the last good TLS files stay in use") == 2
    assert client.credentials is before
    time[0] += LOOK_EVERY_SECONDS
    assert client.fresh()
    assert server.look()
    time[0] += LOOK_EVERY_SECONDS
    assert not client.fresh()
    assert not server.look()

"""New TLS files are noticed while a session lasts, and what is shown of them follows."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import trustme

from bigfleet.operator.server import tell_expiry
from bigfleet.operator.session.grpc_dial import GrpcDial
from bigfleet.wire.tls import LOOK_EVERY_SECONDS, ClientTls
from certificates import no_file_handles, write_files
from sim.loop import virtual_loop
from sim.ports import SimClock


def test_when_a_renewed_certificate_ends_is_told_without_a_new_session(tmp_path: Path) -> None:
    async def scene() -> None:
        ca = trustme.CA()
        tls = ClientTls(write_files(tmp_path, ca, hours=1), SimClock().monotonic)
        ends: dict[str, float] = {}
        tell = partial(tell_expiry, tls, ends.__setitem__)
        tell()
        first = dict(ends)
        following = asyncio.ensure_future(GrpcDial("127.0.0.1:1", tls, tell).follow())
        await asyncio.sleep(LOOK_EVERY_SECONDS + 1)
        assert ends == first
        renewed = write_files(tmp_path, ca, hours=9)
        with no_file_handles():
            await asyncio.sleep(LOOK_EVERY_SECONDS)
        assert ends == first
        await asyncio.sleep(LOOK_EVERY_SECONDS)
        assert ends["client"] == renewed.contents().cert_ends > first["client"]
        assert set(ends) == {"client", "ca"}
        following.cancel()

    virtual_loop(1).run(scene())


def test_the_next_line_uses_files_that_were_noticed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[object] = []

    class Channel:
        async def close(self) -> None:
            used.append("closed")

    def opened(_address: str, credentials: object) -> Channel:
        used.append(credentials)
        return Channel()

    monkeypatch.setattr("bigfleet.operator.session.grpc_dial.open_channel", opened)
    monkeypatch.setattr(
        "bigfleet.operator.session.grpc_dial.open_session_stream", lambda channel: channel
    )

    async def scene() -> None:
        ca = trustme.CA()
        tls = ClientTls(write_files(tmp_path, ca), SimClock().monotonic)
        first, dial = tls.credentials, GrpcDial("127.0.0.1:1", tls)
        following = asyncio.ensure_future(dial.follow())
        await dial()
        write_files(tmp_path, ca, hours=9)
        await asyncio.sleep(LOOK_EVERY_SECONDS + 1)
        # The line that is open keeps its connection.
        assert used == [first]
        await dial()
        await dial()
        assert used == [first, "closed", tls.credentials]
        assert tls.credentials is not first
        following.cancel()

    virtual_loop(1).run(scene())


def test_without_tls_there_is_nothing_to_follow() -> None:
    virtual_loop(1).run(GrpcDial("127.0.0.1:1").follow())

"""Getting into etcd: TLS with client certificates, user names and passwords."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

import etcd
from bigfleet.coordinator.store.errors import StoreError, StoreSettingsError, StoreUnavailableError
from bigfleet.coordinator.store.etcd.connection import members
from bigfleet.coordinator.store.factory import Engine, open_store
from bigfleet.coordinator.store.interface import StorePlace
from bigfleet.wire.tls import TlsFiles
from certificates import write_files
from etcd_members import Cluster, running
from storing import RealClock, domain, in_threads, leading, opened, until
from tcp_proxy import Proxy

pytestmark = pytest.mark.usefixtures("long_lease")

SPEAKS_TLS_1_3 = (3, 5, 8)


def engine(place: StorePlace) -> Engine:
    return open_store(place, RealClock(), in_threads)


async def works(place: StorePlace) -> None:
    async with opened(engine(place)) as store:
        leadership = await leading(store)
        loaded = await store.load()
        await store.commit([domain("r1", "a")], [], loaded.revision, leadership)


async def test_the_connection_is_encrypted_and_both_sides_show_a_certificate(
    one_member: Cluster, tmp_path: Path, prefix: str
) -> None:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    client = write_files(tmp_path / "client", ca)
    stranger = write_files(tmp_path / "stranger", trustme.CA(key_type=trustme.KeyType.ECDSA))
    async with encrypted(one_member, write_files(tmp_path / "server", ca)) as address:
        place = StorePlace(one_member.address(prefix, [address]), "r", tmp_path, client)
        await works(place)
        with pytest.raises(StoreUnavailableError, match="check the certificates of both sides"):
            await engine(replace(place, tls=stranger)).open()
        with pytest.raises(StoreUnavailableError):
            await engine(replace(place, tls=None)).open()


@asynccontextmanager
async def encrypted(cluster: Cluster, server: TlsFiles) -> AsyncIterator[str]:
    """An etcd behind TLS 1.3; where an etcd does not speak that, the end of it stands before it."""
    if etcd.find().version >= SPEAKS_TLS_1_3:
        with running(1, tls=server) as secure:
            yield secure.endpoints[0]
    else:
        async with Proxy(cluster.endpoints[0], server_context(server)) as proxy:
            yield proxy.address


class LeapingClock(RealClock):
    """The clock of this machine, which a test may put forward."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


async def test_certificates_that_were_replaced_are_used_without_a_restart(
    one_member: Cluster, tmp_path: Path, prefix: str
) -> None:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server = write_files(tmp_path / "server", ca)
    client = write_files(tmp_path / "client", ca)
    clock = LeapingClock()
    async with Proxy(one_member.endpoints[0], server_context(server)) as proxy:
        place = StorePlace(one_member.address(prefix, [proxy.address]), "r", tmp_path, client)
        async with opened(open_store(place, clock, in_threads)) as store:
            await store.load()
            assert ("URI", "bigfleet://admin") not in proxy.names
            write_files(tmp_path / "client", ca, ["bigfleet://admin"])
            clock.ahead += 11.0
            await store.load()
        assert ("URI", "bigfleet://admin") in proxy.names


async def test_who_leads_is_still_followed_after_certificates_were_replaced(
    one_member: Cluster, tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The former connections are let go of at once.
    monkeypatch.setattr(members, "WRITE_SECONDS", 0.0)
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server, client = write_files(tmp_path / "server", ca), write_files(tmp_path / "client", ca)
    clock, changes = LeapingClock(), 0
    async with Proxy(one_member.endpoints[0], server_context(server)) as proxy:
        place = StorePlace(one_member.address(prefix, [proxy.address]), "r", tmp_path, client)
        plain = replace(place, address=one_member.address(prefix), replica="other", tls=None)
        async with opened(open_store(place, clock, in_threads)) as store:
            for changes in range(1, 3):
                write_files(tmp_path / "client", ca, [f"bigfleet://shard/{changes}"])
                clock.ahead += 11.0
                await store.load()
                async with opened(engine(plain)) as other:
                    await leading(other, f"there:{changes}")
                    await until(lambda: store.leader() is not None)
                await until(lambda: store.leader() is None)
        assert ("URI", f"bigfleet://shard/{changes}") in proxy.names


def server_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(files.cert, files.key)
    context.load_verify_locations(files.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context


def guard(cluster: Cluster, prefix: str) -> None:
    """From now on it wants a log-in; user `fleet` may use the prefix, `other` nothing."""
    key = f"/{prefix}/".encode()
    end = key[:-1] + bytes([key[-1] + 1])
    permission = {
        "permType": "READWRITE",
        "key": base64.b64encode(key).decode(),
        "range_end": base64.b64encode(end).decode(),
    }
    for role in ("root", "fleet"):
        cluster.post("/v3/auth/role/add", {"name": role})
    cluster.post("/v3/auth/role/grant", {"name": "fleet", "perm": permission})
    for user in ("root", "fleet", "other"):
        cluster.post("/v3/auth/user/add", {"name": user, "password": f"{user}-secret"})
    for user in ("root", "fleet"):
        cluster.post("/v3/auth/user/grant", {"user": user, "role": user})
    cluster.post("/v3/auth/enable", {})


@pytest.fixture
def guarded(prefix: str) -> Iterator[Cluster]:
    """An etcd that wants a log-in."""
    with running(1) as cluster:
        guard(cluster, prefix)
        yield cluster


def login(cluster: Cluster, prefix: str, folder: Path, user: str, password: str) -> StorePlace:
    file = folder / "password"
    file.write_text(f"{password}\n", encoding="utf-8")
    return StorePlace(cluster.address(prefix), "r", folder, username=user, password_file=file)


async def test_a_user_with_the_right_password_gets_in_and_others_are_told_why_not(
    guarded: Cluster, prefix: str, tmp_path: Path
) -> None:
    await works(login(guarded, prefix, tmp_path, "fleet", "fleet-secret"))
    with pytest.raises(StoreSettingsError, match="Check the user name and the password file"):
        await engine(login(guarded, prefix, tmp_path, "fleet", "wrong")).open()
    missing = replace(
        login(guarded, prefix, tmp_path, "fleet", "x"), password_file=tmp_path / "none"
    )
    with pytest.raises(StoreSettingsError, match="cannot be read"):
        await engine(missing).open()
    with pytest.raises(StoreSettingsError, match="Grant the store's user readwrite"):
        await engine(login(guarded, prefix, tmp_path, "other", "other-secret")).open()
    with pytest.raises(StoreSettingsError, match="Give the store a user name"):
        await engine(StorePlace(guarded.address(prefix), "r", tmp_path)).open()


async def test_a_certificate_and_a_password_are_both_asked_for(
    guarded: Cluster, prefix: str, tmp_path: Path
) -> None:
    ca = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server, client = write_files(tmp_path / "server", ca), write_files(tmp_path / "client", ca)
    async with AsyncExitStack() as stack:
        if etcd.find().version >= SPEAKS_TLS_1_3:
            cluster = stack.enter_context(running(1, tls=server))
            await asyncio.to_thread(guard, cluster, prefix)
            address = cluster.endpoints[0]
        else:
            address = await stack.enter_async_context(encrypted(guarded, server))
        place = login(guarded, prefix, tmp_path, "fleet", "fleet-secret")
        place = replace(place, address=guarded.address(prefix, [address]), tls=client)
        await works(place)
        unknown = replace(place, username="", password_file=None)
        # One of them takes the name in the certificate, which is empty, for the user's.
        with pytest.raises(StoreSettingsError, match=r"(Give|Grant) the store"):
            await engine(unknown).open()
        with pytest.raises(StoreUnavailableError):
            await engine(replace(place, tls=None)).open()


async def test_a_token_that_is_no_longer_known_is_replaced(
    guarded: Cluster, prefix: str, tmp_path: Path
) -> None:
    async with opened(engine(login(guarded, prefix, tmp_path, "fleet", "fleet-secret"))) as store:
        leadership = await leading(store)
        await store.commit([domain("r1", "a")], [], 0, leadership)
        # Tokens live in the memory of members.
        (member,) = guarded.members
        await asyncio.to_thread(member.kill)
        await asyncio.to_thread(guarded.start, member)
        await asyncio.to_thread(guarded.wait_until_ready, member)
        again = leadership if leadership.holds() else await leading(store)
        loaded = await store.load()
        try:
            await store.commit([domain("r2", "a")], [], loaded.revision, again)
        except StoreError:
            # The lease ended while etcd was away.
            again = await leading(store)
            await store.commit([domain("r2", "a")], [], loaded.revision, again)
        assert len((await store.load()).rows) == 2

"""TLS and identity: who may talk to a provider, and how its certificates change (B2011, B2024)."""

import asyncio
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import BootError, Finding, check
from bigfleet_conformance.harness.calls import ZERO, Code
from bigfleet_conformance.harness.certificates import Authority, Credentials, shard_san
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.harness.oracles import IDLE
from bigfleet_conformance.harness.probe import Probe
from bigfleet_conformance.registry import Area, Capability, Chapter, LaneName, Profile
from bigfleet_conformance.runner.source import BootPlan, TlsPaths
from bigfleet_conformance.runner.workshop import Subject

row = Chapter(
    Area.ADDITIONAL,
    section="6",
    profiles=(Profile.SECURE,),
    lane=LaneName.SECURE,
    needs=(Capability.TLS,),
).row
SHORT_S = 3.0
HOSTS = ("127.0.0.1", "localhost")


class Files:
    """The three files of a server, written so that a reader never sees half of one."""

    def __init__(self, folder: Path) -> None:
        self.paths = TlsPaths(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")

    def write(self, leaf: Credentials, ca: bytes) -> None:
        """Replace all three."""
        for path, content in (
            (self.paths.key, leaf.key),
            (self.paths.certificate, leaf.certificate),
            (self.paths.ca, ca),
        ):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(content)
            fresh.chmod(0o600)
            fresh.replace(path)


async def refused_handshake(address: str, credentials: Credentials | None, who: str) -> None:
    """A client that never gets through."""
    link = ChannelLink(address, None if credentials is None else lambda _: credentials)
    try:
        await link.stub().List(pb.ListFilter(max_results=1), timeout=SHORT_S)
    except grpc.aio.AioRpcError as error:
        codes = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
        check(error.code() in codes, f"{who} got through the handshake: {error.code().name}")
    else:
        raise Finding(f"{who} is served")
    finally:
        await link.close()


def handshake(address: str, leaf: Credentials, folder: Path, newest: ssl.TLSVersion) -> bytes:
    """One TLS handshake up to a version; the server's certificate."""
    certificate, key = folder / "client.crt", folder / "client.key"
    certificate.write_bytes(leaf.certificate)
    key.write_bytes(leaf.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = newest
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(certificate, key)
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=SHORT_S) as raw,
        context.wrap_socket(raw) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


async def boot(p: Probe, files: Files, authority: Authority, offset: int, name: str) -> Subject:
    """A provider with mutual TLS, talked to with one certificate per shard."""
    leaves: dict[str, Credentials] = {}

    def credentials_of(shard: str) -> Credentials:
        if shard not in leaves:
            leaves[shard] = authority.leaf([shard_san(shard)])
        return leaves[shard]

    plan = BootPlan(LaneName.SECURE, offset, 64, tls=files.paths, name=name)
    return await p.workshop.boot(plan, credentials_of=credentials_of)


@row("B2011", slots=4, section="6")
async def only_shards_get_in(p: Probe) -> None:
    """With TLS only the shard that a request names may mutate.

    Why: a caller that can move a machine can take a cluster down.
    Does: mTLS instance: plaintext client; no client certificate; foreign CA; TLS 1.2; right SAN;
    another shard's SAN; cluster SAN; no SAN; two SANs; zero token; boots with one or two of the
    three TLS flags.
    Passes: handshake refused for the first four; right SAN works; wrong ones PERMISSION_DENIED with
    nothing applied and no mark moved; reads open to any shard SAN; partial flags: start-up error.
    """
    folder = p.workshop.new_folder("secure")
    authority, files = Authority.make("conformance"), Files(folder)
    files.write(authority.leaf(hosts=HOSTS), authority.pem)
    subject = await boot(p, files, authority, 7, "secure")
    address = subject.instance.address
    await refused_handshake(address, None, "a plaintext client")
    anonymous = Credentials(authority.pem, b"", b"")
    await refused_handshake(address, anonymous, "a client without a certificate")
    stranger = Authority.make("stranger").leaf([shard_san("x")])
    foreign = Credentials(authority.pem, stranger.certificate, stranger.key)
    await refused_handshake(address, foreign, "a client of a foreign CA")
    await refuses_tls_1_2(address, authority, folder)
    await judge_identities(subject.probe(p), address, authority)
    await subject.kill()
    await refuses_partial_flags(p, files)


async def refuses_tls_1_2(address: str, authority: Authority, folder: Path) -> None:
    """TLS 1.3 is the oldest that is spoken."""
    leaf = authority.leaf([shard_san("old-tls")])
    try:
        await asyncio.to_thread(handshake, address, leaf, folder, ssl.TLSVersion.TLSv1_2)
    except (ssl.SSLError, ConnectionError):
        return
    raise Finding("a client that speaks TLS 1.2 at most is served")


async def judge_identities(q: Probe, address: str, authority: Authority) -> None:
    """Every kind of certificate that gets through the handshake."""
    walker = q.slot()
    before = await walker.see()
    wrong = {
        "another shard": [shard_san("another")],
        "a cluster": ["bigfleet://cluster/c1"],
        "unknown": [],
        "two identities": [shard_san(walker.shard), shard_san("second")],
    }
    for who, uris in wrong.items():
        leaf = authority.leaf(uris)
        link = ChannelLink(address, lambda _, leaf=leaf: leaf)  # type: ignore[misc]
        other = Probe(replace(q.setting, link=link), q.behaviour, q.seed, q.evidence)
        for token in (walker.at(9, 9), ZERO):
            answer = await other.create(walker.id, token)
            answer.must_be(Code.PERMISSION_DENIED, why=f"the certificate is that of {who}")
        read = await other.get(walker.id)
        if who == "another shard":
            check(isinstance(read, pb.Machine), "a shard may read, whatever its name")
        elif who == "a cluster":
            check(read is Code.PERMISSION_DENIED, "a cluster reads from a provider")
        await link.close()
    await q.untouched(before)
    (await walker.try_create(ZERO)).must_be(Code.PERMISSION_DENIED)
    # (9,9) was refused for its identity, so it moved no mark: a lower token is still the newest.
    (await walker.try_create(walker.at(1, 1))).must_be_ok()
    await walker.until(IDLE)


async def refuses_partial_flags(p: Probe, files: Files) -> None:
    """One or two of the three flags are a mistake that is named at the start."""
    flags = {
        "--tls-cert": files.paths.certificate,
        "--tls-key": files.paths.key,
        "--tls-ca": files.paths.ca,
    }
    for given in (("--tls-cert",), ("--tls-cert", "--tls-key"), ("--tls-ca",)):
        extra = tuple(f"{name}={flags[name]}" for name in given)
        plan = BootPlan(LaneName.SECURE, 27, 64, extra=extra, name="partial-tls")
        try:
            instance = await p.workshop.boot_instance(plan)
        except BootError as error:
            check(error.exit_code, f"with {given} it neither starts nor ends: {error}")
            continue
        await instance.kill()
        raise Finding(f"it starts with {' and '.join(given)} alone")


@row("B2024", slots=1, section="6")
async def certificates_are_read_again(p: Probe) -> None:
    """New certificates are used without a restart.

    Why: certificates live for days, providers for months.
    Does: leaf, key and CA bundle replaced on disk, then broken files.
    Passes: the next handshake uses the new ones without restart; broken files leave the last good
    set; open connections live.
    """
    folder = p.workshop.new_folder("reload")
    first, second, files = Authority.make("first"), Authority.make("second"), Files(folder)
    files.write(first.leaf(hosts=HOSTS), first.pem)
    subject = await boot(p, files, first, 28, "reload")
    address = subject.instance.address
    old = subject.probe(p)
    walker = await old.idle()
    client = first.leaf([shard_san("reader")])
    before = await asyncio.to_thread(handshake, address, client, folder, ssl.TLSVersion.TLSv1_3)
    files.write(second.leaf(hosts=HOSTS), second.pem)
    newcomer = second.leaf([shard_san("newcomer")])
    await served(p, address, newcomer, "the new CA's clients after the files were replaced")
    after = await asyncio.to_thread(handshake, address, newcomer, folder, ssl.TLSVersion.TLSv1_3)
    check(before != after, "the next handshake still shows the old certificate")
    await walker.see()
    for path in (files.paths.certificate, files.paths.key, files.paths.ca):
        path.write_bytes(b"-----BEGIN NONSENSE-----\n")
    await served(p, address, newcomer, "clients after the files were broken")
    await walker.see()
    check(subject.instance.alive(), "broken files ended the process")
    await subject.kill()


async def served(p: Probe, address: str, client: Credentials, who: str) -> None:
    """A new connection of this client gets an answer."""

    async def answered() -> bool:
        link = ChannelLink(address, lambda _: client)
        try:
            await link.stub().List(pb.ListFilter(max_results=1), timeout=SHORT_S)
        except grpc.aio.AioRpcError:
            return False
        finally:
            await link.close()
        return True

    await p.until_true(answered, SHORT_S, f"serving {who}")

"""This machine: Python, engine, disk, data folder, store, ports, certificates."""

from __future__ import annotations

import platform
import shutil
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from bigfleet.cli.doctor.findings import Finding, fine, note, wrong
from bigfleet.cli.extras import ENGINE, missing
from bigfleet.wire.errors import TlsFilesError
from bigfleet.wire.tls import TlsFiles

PORTS: Final[Mapping[int, str]] = {
    7780: "shard",
    8780: "shard's /metrics",
    7790: "coordinator",
    8790: "coordinator's /metrics",
    9001: "provider",
    9002: "provider's /metrics",
    8700: "dashboard",
}
_LEAST_DISK: Final = 1 << 30
_SOON: Final = timedelta(days=7)
_IDENTITY: Final = "bigfleet"


def look_here(data_dir: Path, tls: TlsFiles | None) -> Iterator[Finding]:
    """Everything that can be seen without asking anybody."""
    yield python()
    yield engine()
    yield from folder(data_dir)
    yield from store(data_dir / "coordinator" / "coordinator.db")
    yield from (port(number, what) for number, what in PORTS.items())
    if tls is None:
        yield note("TLS", "no certificate named: plaintext", "give --tls-cert, --tls-key, --tls-ca")
    else:
        yield from certificates(tls)


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether this Python will do."""
    text = f"{platform.python_implementation()} {'.'.join(map(str, version))}"
    if version < (3, 11):
        return wrong("Python", text, "install Python 3.11 or newer")
    return fine("Python", text)


def engine() -> Finding:
    """Whether the engine's compiled code is there, or the first decision compiles it."""
    if missing(*ENGINE):
        return note("Engine", "not installed", "a shard needs it: pip install 'bigfleet[shard]'")
    from bigfleet.engine_warm_up import is_warm
    from bigfleet.jit.cache import home

    if is_warm():
        return fine("Engine", f"compiled code is kept in {home()}")
    text = f"not compiled yet: the first cycle compiles it, and keeps it in {home()}"
    return note("Engine", text, "any `bigfleet plan`, or `make kernels` in a checkout")


def folder(data_dir: Path) -> Iterator[Finding]:
    """Whether a data folder can be written, and has room."""
    near = next(each for each in (data_dir, *data_dir.absolute().parents) if each.is_dir())
    try:
        with tempfile.NamedTemporaryFile(dir=near):
            yield fine("Data folder", f"{data_dir} can be written")
    except OSError as error:
        text = f"{near} cannot be written: {error.strerror}"
        yield wrong("Data folder", text, "change its rights, or name another with --data-dir")
    free = shutil.disk_usage(near).free
    text = f"{free / (1 << 30):,.1f} GiB free at {near}"
    if free < _LEAST_DISK:
        yield wrong("Disk", text, "make room: a full disk stops store and journal")
    else:
        yield fine("Disk", text)


def store(path: Path) -> Iterator[Finding]:
    """Whether the embedded store, where there is one, is whole."""
    if not path.is_file():
        yield note("Store", f"no embedded store at {path} yet")
        return
    if path.stat().st_size == 0:
        remedy = "move it away and restore a snapshot: bigfleetctl snapshot restore"
        yield wrong("Store", f"{path} is empty: it has lost what it held", remedy)
        return
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=2.0) as opened:
            result = opened.execute("PRAGMA quick_check").fetchone()[0]
        opened.close()
    except sqlite3.Error as error:
        result = str(error)
    if result == "ok":
        yield fine("Store", f"{path} is whole")
    else:
        remedy = "stop the coordinator and restore a snapshot: bigfleetctl snapshot restore"
        yield wrong("Store", f"{path}: {result}", remedy)


def port(number: int, what: str) -> Finding:
    """Whether a default port is free, or who has it."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        if probe.connect_ex(("127.0.0.1", number)) == 0:
            return note(f"Port {number}", f"something listens here ({what} by default)")
    return fine(f"Port {number}", f"free for a {what}")


def certificates(files: TlsFiles) -> Iterator[Finding]:
    """Whether the three files belong together, whose they are, and how long they last."""
    try:
        files.read()
        leaf = x509.load_pem_x509_certificates(files.cert.read_bytes())[0]
    except (TlsFilesError, OSError, ValueError) as error:
        yield wrong("TLS", str(error), "name files that belong together, and that can be read")
        return
    left = leaf.not_valid_after_utc - datetime.now(UTC)
    text = f"{files.cert} ends {leaf.not_valid_after_utc:%Y-%m-%d}"
    if left < timedelta(0):
        yield wrong("TLS", f"{text}: it is over", "renew it; processes read it again themselves")
    elif left < _SOON:
        yield wrong("TLS", f"{text}: in {left.days} days", "renew it now")
    else:
        yield fine("TLS", text)
    found = identities(leaf)
    if len(found) == 1:
        yield fine("Identity", found[0])
    else:
        text = f"{len(found)} identities in {files.cert}"
        yield wrong("Identity", text, "issue it with exactly one URI SAN, as bigfleet://shard/s-1")


def identities(leaf: x509.Certificate) -> list[str]:
    """The URI SANs of BigFleet in a certificate."""
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    found = names.get_values_for_type(x509.UniformResourceIdentifier)
    return [uri for uri in found if uri.partition(":")[0] == _IDENTITY]

"""The coordinator's state as a file: taken from a running leader, put back into a store at rest.

What a snapshot is, and how it gets into a store, is the store's; here are a file and a command.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from bigfleet.cli.ctl.context import ctl_of, run
from bigfleet.cli.ctl.groups import CtlGroup
from bigfleet.cli.ctl.render.formats import moment, plural
from bigfleet.cli.ctl.render.rows import print_done
from bigfleet.cli.errors import FailureError, InputError
from bigfleet.cli.help_format import HelpfulCommand, examples
from bigfleet.cli.output import stage

if TYPE_CHECKING:
    from bigfleet.coordinator.store.interface import StorePlace
    from bigfleet.coordinator.store.snapshots.documents import Document

T = TypeVar("T")

SAVE_EXAMPLES: Final = examples("bigfleetctl snapshot save fleet.json")
RESTORE_EXAMPLES: Final = examples(
    "bigfleetctl snapshot restore fleet.json --store sqlite --data-dir /var/lib/bigfleet",
    "bigfleetctl snapshot restore fleet.json --store etcd://e-1:2379,e-2:2379,e-3:2379",
)

app = typer.Typer(
    cls=CtlGroup,
    no_args_is_help=True,
    help="Save the coordinator's state to a file, or restore it into a store at rest.",
    epilog=SAVE_EXAMPLES,
)


@app.command(cls=HelpfulCommand, epilog=SAVE_EXAMPLES)
def save(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
) -> None:
    """Take a fresh snapshot of the coordinator's state."""
    ctl = ctl_of(ctx)
    if file.is_dir() or not file.parent.is_dir():
        raise InputError(f"{file}: name a file in a directory that exists")
    frames = run(ctl, lambda fleet: fleet.coordinator.snapshot(), "taking a snapshot")
    data = b"".join(frame.data for frame in frames)
    meta = _meta(frames[0].meta_json if frames else b"")
    if not data or len(data) != meta.get("bytes", len(data)):
        raise FailureError(
            f"the snapshot is cut short ({len(data)} bytes): nothing was written, try again"
        )
    _write(file, data)
    term, revision = meta.get("term"), meta.get("revision")
    print_done(
        ctl,
        f"Saved {plural(len(data), 'byte')} to {file}: term {term}, revision {revision}.",
        "snapshot save",
        file=str(file),
        bytes=len(data),
        meta=meta,
    )


@app.command(cls=HelpfulCommand, epilog=RESTORE_EXAMPLES)
def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="The snapshot.")],
    store: Annotated[
        str, typer.Option("--store", help="sqlite, or etcd://host:2379,host:2379.")
    ] = "sqlite",
    data_dir: Annotated[
        Path, typer.Option("--data-dir", help="The coordinator's directory, for sqlite.")
    ] = Path(".bigfleet/coordinator"),
    force: Annotated[
        bool, typer.Option("--force", help="Write over what is in the store.")
    ] = False,
    store_tls_cert: Annotated[str, typer.Option(help="Certificate for etcd.")] = "",
    store_tls_key: Annotated[str, typer.Option(help="Its key.")] = "",
    store_tls_ca: Annotated[str, typer.Option(help="CA bundle for etcd.")] = "",
    store_username: Annotated[str, typer.Option(help="User of etcd.")] = "",
    store_password_file: Annotated[
        Path | None, typer.Option(help="File with the password of that user.")
    ] = None,
) -> None:
    """Put a snapshot into a store while no coordinator runs on it.

    Also the way from one engine to another: the document is the same for both.
    """
    from bigfleet.coordinator.store.errors import (
        SnapshotError,
        StoreError,
        StoreSettingsError,
    )
    from bigfleet.coordinator.store.interface import StorePlace
    from bigfleet.wire.errors import TlsFilesError
    from bigfleet.wire.tls import TlsFiles

    ctl = ctl_of(ctx)
    try:
        data = file.read_bytes()
        tls = TlsFiles.of(store_tls_cert, store_tls_key, store_tls_ca)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except TlsFilesError as error:
        raise InputError(str(error).replace("--tls-", "--store-tls-")) from None
    if bool(store_username) != (store_password_file is not None):
        raise InputError("--store-username and --store-password-file belong together: give both")
    place = StorePlace(
        address=store,
        replica="bigfleetctl",
        data_dir=data_dir,
        tls=tls,
        username=store_username,
        password_file=store_password_file,
    )
    try:
        with stage("restoring", quiet=ctl.options.quiet):
            restored = asyncio.run(_put_back(place, data, force))
    except SnapshotError as error:
        raise InputError(f"{file}: {error}") from None
    except StoreSettingsError as error:
        raise InputError(str(error)) from None
    except (StoreError, TlsFilesError) as error:
        raise FailureError(str(error)) from None
    print_done(
        ctl,
        f"Restored {plural(len(restored.rows), 'row')} of {moment(restored.taken_at)} into "
        f"{store}: the next leader's term is above {restored.term}. Start the coordinators.",
        "snapshot restore",
        file=str(file),
        store=store,
        rows=len(restored.rows),
        term=restored.term,
        revision=restored.revision,
        taken_at=moment(restored.taken_at),
    )


@dataclass(frozen=True, slots=True)
class _WallClock:
    def now(self) -> int:
        return time.time_ns()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class _Threads:
    pool: ThreadPoolExecutor

    async def __call__(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, function)


async def _put_back(place: StorePlace, data: bytes, force: bool) -> Document:
    from bigfleet.coordinator.store.factory import open_store
    from bigfleet.coordinator.store.interface import RestoreScope
    from bigfleet.coordinator.store.snapshots.documents import decode
    from bigfleet.coordinator.store.snapshots.documents import restore as put_back

    # A store is opened, and its file made, for a good document alone.
    decode(data)
    with ThreadPoolExecutor(max_workers=2) as pool:
        store = open_store(place, _WallClock(), _Threads(pool))
        await store.open()
        try:
            return await put_back(
                store, data, RestoreScope.EVERYTHING if force else RestoreScope.NOTHING
            )
        finally:
            await store.close()


def _meta(text: bytes) -> dict[str, object]:
    try:
        meta = json.loads(text)
    except ValueError:
        meta = None
    if not isinstance(meta, dict):
        raise FailureError("the coordinator sent no snapshot: nothing was written, try again")
    return meta


def _write(file: Path, data: bytes) -> None:
    """The whole file or none; for its owner alone, as it says where everything is."""
    from bigfleet.coordinator.store.snapshots.exporter import write_whole

    try:
        write_whole(file, data)
    except OSError as error:
        raise FailureError(f"{file}: cannot be written: {error.strerror}") from None

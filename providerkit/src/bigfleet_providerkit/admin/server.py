"""The admin socket: `PATH.sock`, one JSON line in, one JSON line out.

inspect shows a machine or a summary, sweep removes what was held back, release heals one slot. Left
out with a warning when the path is too long for a socket.
"""

import asyncio
import json
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit.errors import ProviderKitError
from bigfleet_providerkit.machines.transitions import operations_of
from bigfleet_providerkit.process.assembly import Backend

LONGEST_PATH = 100
ASKED_WITHIN = 10.0
Answer = dict[str, object]


def socket_path(state: Path) -> Path:
    """The socket that belongs to a state file."""
    return state.with_name(state.name + ".sock")


class AdminServer:
    """Listens on the socket."""

    def __init__(self, server: asyncio.Server, path: Path) -> None:
        self._server = server
        self._path = path

    @staticmethod
    async def open(
        state: Path, backend: Backend, log: FilteringBoundLogger
    ) -> "AdminServer | None":
        """Listen, unless the path is too long."""
        path = socket_path(state)
        if len(str(path)) > LONGEST_PATH:
            log.warning("no admin socket: the path of the state is too long", path=str(path))
            return None
        path.unlink(missing_ok=True)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async with asyncio.timeout(ASKED_WITHIN):
                    request = dict(json.loads(await reader.readline()))
                answer = await handle(backend, request)
            except (ValueError, TypeError, TimeoutError) as error:
                answer = {"error": f"bad request: {error}"}
            except ProviderKitError as error:
                answer = {"error": str(error)}
            except Exception as error:
                log.exception("an admin command met a bug")
                answer = {"error": f"{type(error).__name__}: {error}"}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
            writer.close()

        try:
            server = await asyncio.start_unix_server(serve, path=str(path))
        except OSError as error:
            log.warning("no admin socket", path=str(path), error=str(error))
            return None
        path.chmod(0o600)
        return AdminServer(server, path)

    async def close(self) -> None:
        """Stop listening and remove the socket."""
        self._server.close()
        self._path.unlink(missing_ok=True)


async def handle(backend: Backend, request: Answer) -> Answer:
    """Answer one command."""
    match request.get("command"):
        case "inspect":
            return inspect(backend, str(request.get("machine") or ""))
        case "sweep":
            if not request.get("yes"):
                held = [host.ref for host in backend.reconciler.held]
                waiting = list(backend.reconciler.looks.unwanted)
                litter = backend.reconciler.litter
                held += sorted(litter.held)
                waiting += list(litter.seen)
                return {"held": held, "unwanted": waiting, "hint": "sweep --yes removes them"}
            return {"removed": await backend.reconciler.sweep()}
        case "release":
            return {"result": await backend.healer.release(str(request.get("machine") or ""))}
        case other:
            return {"error": f"unknown command {other!r}"}


def inspect(backend: Backend, machine: str) -> Answer:
    """One machine with everything the store knows, or a summary."""
    ledger = backend.ledger
    if not machine:
        counts = {
            f"{state.word}/{kind.word}": number
            for (state, kind), number in sorted(ledger.inventory.counts.items())
            if number
        }
        return {
            "machines": len(ledger.inventory), "by_state": counts,
            "running": len(ledger.work), "late": len(ledger.late),
            "store": ledger.store.path, "store_id": ledger.ids.store_id,
            "revision": ledger.inventory.head, "trouble": ledger.store.trouble,
            "held": [host.ref for host in backend.reconciler.held],
        }  # fmt: skip
    record = ledger.inventory.get(machine)
    if record is None:
        return {"error": f"there is no machine {machine}"}
    work = ledger.work.get(machine)
    notes = ledger.notes.get(machine)
    return {
        "id": record.id, "state": record.state.word, "host": record.host,
        "cluster": record.cluster, "metadata_bytes": len(record.metadata),
        "last_error": record.last_error, "life": record.life,
        "revision": ledger.inventory.revision(machine),
        "extra": record.extra, "price_per_hour": record.shape.price,
        "price_source": backend.steps.price_source(record),
        "allocatable": dict(record.shape.allocatable),
        "reported_by_nodes": backend.steps.reported(record),
        "notes": dict(notes.notes) if notes is not None else {},
        "operations": {kind.word: op for kind, op in operations_of(record).items()},
        "running": None if work is None else
            {"kind": work.kind.word, "operation": work.operation, "deadline": work.deadline},
    }  # fmt: skip

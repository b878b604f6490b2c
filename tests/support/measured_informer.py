"""A process that follows CapacityRequests and says what it cost: `KUBECONFIG [MARKER]`.

One of its own, so that nothing else is in its memory. Prints one JSON object when its copy is
complete. With a marker it goes on, with watches that end every second or two, until a request of
that name is there, and prints what it has then.
"""

import asyncio
import gc
import hashlib
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path

import structlog
from capacity_requests import FULL_REQUESTS, CapacityRequest

from bigfleet.kube import Informer, KubeClient, from_kubeconfig
from bigfleet.kube.reader import WATCH_SECONDS

Facts = dict[str, float | str]


class Counts:
    """Lists and restarts of watches, as the client tells of them."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def requested(self, verb: str, resource: str, code_class: str, seconds: float) -> None:
        """One request ended."""
        self.seen[f"{verb} {code_class}"] += 1

    def watch_restarted(self, resource: str, reason: str) -> None:
        """A watch began again."""
        self.seen[reason] += 1


def resident() -> int:
    """Bytes of memory in use now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def at_most() -> int:
    """Most bytes of memory that were in use so far.

    By the kernel's own mark of this program: what `getrusage` says begins with the memory of the
    process that started us.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (mark,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(mark.split()[1]) * 1024


def digest(versions: dict[str, str]) -> str:
    """The same for the same versions of the same objects."""
    return hashlib.sha256(json.dumps(sorted(versions.items())).encode()).hexdigest()


def facts(informer: Informer[CapacityRequest], counts: Counts) -> Facts:
    """What a copy holds and has cost so far."""
    versions = {key: item.metadata.resource_version for key, item in informer.objects.items()}
    return {
        "objects": len(informer),
        "digest": digest(versions),
        "pages": counts.seen["list 2xx"],
        **{reason: counts.seen[reason] for reason in ("closed", "expired", "error")},
        "bytes_at_most": at_most(),
    }


def say(told: Facts) -> None:
    """One line for the process that started us."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def measure(kubeconfig: Path, marker: str = "") -> None:
    """Seconds until complete, objects, and bytes of memory: with none, with all, at most."""
    gc.collect()
    before = resident()
    counts = Counts()
    config = from_kubeconfig(kubeconfig)
    async with KubeClient.connect(config, observer=counts) as client:
        lasts = 1 if marker else WATCH_SECONDS
        informer = Informer(client, FULL_REQUESTS, watch_seconds=lasts)
        done = asyncio.Event()
        if marker:
            informer.on_change(lambda change: done.set() if marker in change.key else None)
        started = time.monotonic()
        running = asyncio.create_task(informer.run())
        await informer.wait_synced()
        took = time.monotonic() - started
        gc.collect()
        held = {"bytes_before": before, "bytes_after": resident()}
        say({"seconds": round(took, 2), **held, **facts(informer, counts)})
        if marker:
            await done.wait()
            say(facts(informer, counts))
        running.cancel()


if __name__ == "__main__":
    # What it logs is not what it says.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(measure(Path(sys.argv[1]), *sys.argv[2:]))

"""A process that follows CapacityRequests and says what it cost: its argument is a kubeconfig.

One of its own, so that nothing else is in its memory. Prints one JSON object.
"""

import asyncio
import gc
import json
import resource
import sys
import time
from pathlib import Path

from bigfleet.kube import Informer, KubeClient, from_kubeconfig
from bigfleet.kube.fleet import CAPACITY_REQUESTS


def resident() -> int:
    """Bytes of memory in use now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def measure(kubeconfig: Path) -> dict[str, float]:
    """Seconds until complete, objects, and bytes of memory: with none, with all, at most."""
    gc.collect()
    before = resident()
    async with KubeClient.connect(from_kubeconfig(kubeconfig)) as client:
        informer = Informer(client, CAPACITY_REQUESTS)
        started = time.monotonic()
        running = asyncio.create_task(informer.run())
        await informer.wait_synced()
        seconds = time.monotonic() - started
        gc.collect()
        after = resident()
        running.cancel()
        return {
            "seconds": round(seconds, 2),
            "objects": len(informer),
            "bytes_before": before,
            "bytes_after": after,
            "bytes_at_most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(measure(Path(sys.argv[1])))) + "\n")

"""Fifty thousand CapacityRequests: how long the first list takes, and what it keeps."""

import asyncio
import json
import sys
from pathlib import Path

import measured_informer
import pytest

from bigfleet.kube import KubeClient
from bigfleet.kube.fleet import CAPACITY_REQUESTS
from bigfleet.kube.objects import Object
from kube.plane import ControlPlane

REQUESTS = 50_000
WRITERS = 64
LIST_SECONDS = 10
BYTES = 200 * 2**20


def request(number: int) -> dict[str, object]:
    """As the pod controller writes them, one in a hundred of a shape of its own."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [f"z{number % 3}"]}
    labels = {"bigfleet.lucy.sh/owned-by-pod": f"{number:08}-0000-4000-8000-000000000000"}
    resources = {"cpu": f"{100 + number % 100}m", "memory": "512Mi", "pods": "1"}
    return {
        "metadata": {"name": f"cr-pod-web-{number:05}-0123456789", "labels": labels},
        "spec": {"requirements": [zone], "resources": resources, "priority": number % 10},
    }


@pytest.mark.deep
@pytest.mark.timeout(900)
async def test_the_first_list_of_50000_takes_at_most_ten_seconds(
    client: KubeClient, namespace: str, kubernetes: ControlPlane
) -> None:
    numbers = iter(range(REQUESTS))
    small = CAPACITY_REQUESTS.read_as(Object)

    async def write() -> None:
        for number in numbers:
            await client.create(small, request(number), namespace, deadline=300)

    await asyncio.gather(*(write() for _ in range(WRITERS)))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(measured_informer.__file__)),
        str(kubernetes.kubeconfig),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    cost = json.loads(printed)
    assert cost["objects"] == REQUESTS
    assert cost["seconds"] <= LIST_SECONDS, cost
    assert cost["bytes_at_most"] <= BYTES, cost

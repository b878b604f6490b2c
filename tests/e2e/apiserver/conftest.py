"""What tests of the CRDs and the client share: one control plane, a client, a namespace each.

A test that breaks its control plane, or needs two, starts its own with `kube.plane`.
"""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bigfleet.kube import KubeClient, from_kubeconfig
from bigfleet.kube.objects import NAMESPACES, Object, Resource
from kube.plane import ControlPlane, control_plane

CRDS = Path(__file__).parents[3] / "api" / "crd"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", Object)


@pytest.fixture(scope="package")
def kubernetes() -> Iterator[ControlPlane]:
    """The control plane that tests share, with our CRDs."""
    with control_plane(name="shared") as plane:
        plane.install(CRDS)
        yield plane


@pytest.fixture
async def client(kubernetes: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client that may do everything, quickly."""
    config = from_kubeconfig(kubernetes.kubeconfig)
    async with KubeClient.connect(config, qps=100_000, burst=1000) as connected:
        yield connected


@pytest.fixture
async def namespace(client: KubeClient) -> AsyncIterator[str]:
    """A namespace of this test alone, in which Pods can be made."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    # Made here and not waited for: the controller finds it and leaves it alone.
    await client.apply(ACCOUNTS, "default", {}, name, manager="tests")
    yield name
    await client.delete(NAMESPACES, name)

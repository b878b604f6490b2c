"""Control planes that all e2e tests of a run share, and fleets of one test each."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from real_fleet import QUICK_BEAT, Fleet, a_fleet

from kube.plane import ControlPlane, control_plane

CRDS = Path(__file__).parents[2] / "api" / "crd"
MakeFleet = Callable[..., AbstractContextManager[Fleet]]


def _a_cluster(name: str, folder: Path) -> Iterator[ControlPlane]:
    with control_plane(folder, name) as started:
        started.install(CRDS)
        yield started


@pytest.fixture(scope="session")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The cluster of most tests."""
    yield from _a_cluster("east", tmp_path_factory.mktemp("east"))


@pytest.fixture(scope="session")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Another cluster, started for the first test that needs two."""
    yield from _a_cluster("west", tmp_path_factory.mktemp("west"))


@pytest.fixture
def fleet_on(request: pytest.FixtureRequest, east: ControlPlane, tmp_path: Path) -> MakeFleet:
    """Start a fleet on the first cluster, or on both."""

    def make(clusters: int = 1, **options: Any) -> AbstractContextManager[Fleet]:
        planes = [east] if clusters == 1 else [east, request.getfixturevalue("west")]
        return a_fleet(tmp_path / "fleet", planes, **{"operator": QUICK_BEAT} | options)

    return make

"""Control planes that all e2e tests of a run share, and fleets of one test each."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from real_fleet import QUICK_BEAT, Fleet, a_fleet

from kube.plane import ControlPlane, control_planes

CRDS = Path(__file__).parents[2] / "api" / "crd"
MakeFleet = Callable[..., AbstractContextManager[Fleet]]


@pytest.fixture(scope="session")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ControlPlane]]:
    """Two clusters: east and west."""
    folder = tmp_path_factory.mktemp("planes")
    with control_planes(["east", "west"], folder) as started:
        for plane in started:
            plane.install(CRDS)
        yield started


@pytest.fixture
def fleet_on(planes: list[ControlPlane], tmp_path: Path) -> MakeFleet:
    """Start a fleet on the first cluster, or on both."""

    def make(clusters: int = 1, **options: Any) -> AbstractContextManager[Fleet]:
        return a_fleet(tmp_path / "fleet", planes[:clusters], **{"operator": QUICK_BEAT} | options)

    return make

"""One etcd for all tests of a worker; every test has a prefix of its own.

All tests on three members are one piece, and all on one: one worker starts these.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from bigfleet.coordinator.store.etcd import election
from etcd_members import Cluster, running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in ("one_member", "three_members"):
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def one_member() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_members() -> Iterator[Cluster]:
    with running(3) as cluster:
        yield cluster


@pytest.fixture
def long_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that no pause of a busy machine outlasts: for tests of something else."""
    monkeypatch.setattr(election, "LEASE_SECONDS", 60)


@pytest.fixture
def prefix() -> str:
    return f"test-{secrets.token_hex(6)}"

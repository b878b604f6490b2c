"""Modules stay together, long tests begin first, and no test is lost by ordering them."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import distribution_of_tests
import pytest
from distribution_of_tests import in_order, runs_alone
from hypothesis import given
from hypothesis import strategies as st

import run_tests

CONFTEST = """
import pytest
from distribution_of_tests import PieceScheduling, in_order, runs_alone

def pytest_collection_modifyitems(items):
    for number, item in enumerate(items):
        if runs_alone(item):
            item.add_marker(pytest.mark.xdist_group(f"long-{number}"))
    items[:] = in_order(items)

def pytest_xdist_make_scheduler(config, log):
    return PieceScheduling(config, log)
"""
MODULE = """
import os
import pytest

@pytest.fixture(scope="module", autouse=True)
def system():
    with open("systems", "a") as file:
        file.write(f"{__name__}\\n")

@pytest.mark.parametrize("number", range(20))
def test_some(number):
    with open("workers", "a") as file:
        file.write(f"{__name__} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""
LONG = """

@pytest.mark.long
@pytest.mark.parametrize("words", ["a@b", "c"])
def test_long(words):
    pass
"""


@dataclass(frozen=True)
class FakeMark:
    """A marker by its name."""

    name: str


@dataclass(frozen=True)
class FakeTest:
    """A test by number, with markers of its own and of its module."""

    number: int
    own: tuple[str, ...] = ()
    module: tuple[str, ...] = ()

    @property
    def own_markers(self) -> list[FakeMark]:
        return [FakeMark(name) for name in self.own]

    def get_closest_marker(self, name: str) -> object:
        return name if name in (*self.own, *self.module) else None


MARKS = st.sampled_from(["long", "unit", "integration", "dst", "property"])


@given(st.lists(MARKS))
def test_every_test_is_there_once_long_ones_first_and_the_rest_in_its_order(
    marks: list[str],
) -> None:
    tests = [FakeTest(number, module=(mark,)) for number, mark in enumerate(marks)]
    ordered = in_order(tests)
    assert sorted(ordered, key=lambda test: test.number) == tests
    for mark in set(marks):
        numbers = [test.number for test in ordered if test.module == (mark,)]
        assert numbers == sorted(numbers)
    is_long = [test.module == ("long",) for test in ordered]
    assert is_long == sorted(is_long, reverse=True)


def test_a_long_test_is_alone_unless_its_module_or_group_keeps_it() -> None:
    assert runs_alone(FakeTest(1, own=("long",)))
    assert not runs_alone(FakeTest(2, module=("long",)))
    assert not runs_alone(FakeTest(3, own=("long", "xdist_group")))
    assert not runs_alone(FakeTest(4, own=("long",), module=("xdist_group",)))
    assert not runs_alone(FakeTest(5))


def test_one_worker_runs_a_module_and_sets_its_fixture_up_once(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(MODULE)
    (tmp_path / "test_d.py").write_text("import pytest\n" + LONG)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *run_tests.DISTRIBUTION],
        cwd=tmp_path, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(distribution_of_tests.__file__).parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "62 passed" in done.stdout
    assert sorted((tmp_path / "systems").read_text().split()) == ["test_a", "test_b", "test_c"]
    workers = set((tmp_path / "workers").read_text().splitlines())
    assert len(workers) == 3


@pytest.mark.parametrize(
    ("nodeid", "piece"),
    [
        ("a/test_x.py::test_y", "a/test_x.py"),
        ("a/test_x.py::test_y[1::2]", "a/test_x.py"),
        ("a/test_x.py::test_y[b@c]", "a/test_x.py"),
        ("a/test_x.py::test_y[b@c]@etcd", "@etcd"),
        ("a/test_x.py::test_y@etcd", "@etcd"),
    ],
)
def test_a_piece_is_a_module_or_a_named_group(nodeid: str, piece: str) -> None:
    scheduling = object.__new__(distribution_of_tests.PieceScheduling)
    assert scheduling._split_scope(nodeid) == piece

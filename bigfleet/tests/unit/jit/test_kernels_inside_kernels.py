"""Kernels that only kernels call: compiled into their callers, and into nothing else."""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

from bigfleet.jit import compiler
from bigfleet.jit.decorators import inner, jit

I64 = npt.NDArray[np.int64]


@inner
def _doubled(value: int) -> int:
    return 2 * value


@inner
def _sum_of_doubled(values: I64) -> int:
    total = 0
    for value in values:
        total += _doubled(value)
    return total


@jit
def twice_the_sum(values: I64) -> int:
    return _sum_of_doubled(values)


@jit
def four_times(value: int) -> int:
    return _doubled(_doubled(value))


def test_a_kernel_gives_what_the_kernels_inside_it_give() -> None:
    assert twice_the_sum(np.arange(5)) == 20


def test_two_kernels_may_have_the_same_one_inside() -> None:
    assert (four_times(3), twice_the_sum(np.array([1]))) == (12, 2)


def test_calling_an_inner_kernel_from_python_is_an_error_and_not_a_crash() -> None:
    with pytest.raises((TypeError, ValueError)):
        _doubled(1)


@pytest.fixture
def pipeline_made_again() -> Iterator[None]:
    compiler.inner_pipeline.cache_clear()
    yield
    compiler.inner_pipeline.cache_clear()


@pytest.mark.usefixtures("pipeline_made_again")
@pytest.mark.parametrize("error", [ImportError, AttributeError])
def test_a_numba_without_these_classes_compiles_the_long_way(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def missing(name: str) -> ModuleType:
        if name == "numba.core.typed_passes":
            raise error(name)
        return import_module(name)

    monkeypatch.setattr(compiler, "import_module", missing)
    assert compiler.inner_pipeline() is None
    assert compiler.compile_for_callers(lambda value: 3 * value)(2) == 6


@pytest.mark.usefixtures("pipeline_made_again")
def test_a_numba_that_links_differently_compiles_the_long_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiler, "_LIBRARY_METHODS", ("not_a_method",))
    assert compiler.inner_pipeline() is None

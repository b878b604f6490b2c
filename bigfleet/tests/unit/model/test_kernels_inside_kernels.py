"""Kernels that only kernels call: compiled into their callers, and into nothing else."""

import numpy as np
import numpy.typing as npt
import pytest

from bigfleet.model.columns.jit import inner, jit

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

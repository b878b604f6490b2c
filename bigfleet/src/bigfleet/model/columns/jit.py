"""The one place that knows numba: compiled functions over columns.

Kernels are plain Python over arrays, so they also run interpreted (NUMBA_DISABLE_JIT=1), which is
how mutation tests and coverage see them. Compiled code is cached on disk; no cycle waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile on first call, cache on disk, release the interpreter lock while running."""
    return cast("F", njit(cache=True, nogil=True)(function))

"""The one place that knows numba: compiled functions over columns.

Kernels are plain Python over arrays, so they also run interpreted (NUMBA_DISABLE_JIT=1), which is
how mutation tests and coverage see them. Compiled code is cached on disk; no cycle waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile on first call, cache on disk, release the interpreter lock while running."""
    compiled = njit(cache=True, nogil=True)(function)
    if hasattr(compiled, "get_call_template"):
        _compile_once(compiled)
    return cast("F", compiled)


def _compile_once(dispatcher: Any) -> None:
    """One version for kernels that call this one, whatever integers or constants they pass.

    Left alone, numba compiles a function anew for each width of integer and each literal it is
    called with, and everything below it with it: twice the time at the first start.
    """
    resolve = dispatcher.get_call_template

    def resolve_plain(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = resolve_plain


def _plain(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind

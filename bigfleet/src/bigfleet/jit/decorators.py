"""The one place that knows numba: compiled functions over columns.

Kernels are plain Python over arrays, so they also run interpreted (NUMBA_DISABLE_JIT=1), which is
how mutation tests and coverage see them. Compiled code is cached on disk (`cache` says where), so
no cycle waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from bigfleet.jit.cache import cache_of

F = TypeVar("F", bound=Callable[..., object])


def inner(function: F) -> F:
    """For kernels that only other kernels call: compiled into those, never on its own."""
    config: Any = numba.config
    if config.DISABLE_JIT:
        return function
    from bigfleet.jit.compiler import compile_for_callers

    compiled = compile_for_callers(function)
    _compile_once(compiled)
    return cast("F", compiled)


def jit(function: F) -> F:
    """For kernels that Python calls: compiled on the first call, cached on disk; the interpreter
    lock is released while they run.
    """
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_of(Path(cast("Any", function).__code__.co_filename).parent))
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    finally:
        config.CACHE_DIR = before
    if hasattr(compiled, "get_call_template"):
        _compile_once(compiled)
    return cast("F", compiled)


def _compile_once(dispatcher: Any) -> None:
    """One version for kernels that call this one, whatever integers or constants they pass.

    Left alone, numba compiles a function again for each width of integer and each literal it is
    called with, and everything below it with it: twice the time at the first start.
    """
    resolve = dispatcher.get_call_template

    def resolve_plain(args: Any, kws: Any) -> Any:
        return resolve(tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = resolve_plain


def _plain(kind: Any) -> Any:
    types: Any = numba.types
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind

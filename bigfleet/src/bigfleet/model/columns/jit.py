"""The one place that knows numba: compiled functions over columns.

Kernels are plain Python over arrays, so they also run interpreted (NUMBA_DISABLE_JIT=1), which is
how mutation tests and coverage see them. Compiled code is cached on disk; no cycle waits for it.

numba looks at a function's own file to see whether its cache is stale, not at the files of the
functions it calls. So the cache lies in a directory named after a digest of the whole folder of
kernels: a change anywhere in it can never meet code compiled before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def inner(function: F) -> F:
    """For kernels that only other kernels call: compiled into those, never on its own."""
    config: Any = numba.config
    if config.DISABLE_JIT:
        return function
    from bigfleet.model.columns.inlining import compile_for_callers

    compiled = compile_for_callers(function)
    _compile_once(compiled)
    return cast("F", compiled)


def jit(function: F) -> F:
    """For kernels that Python calls: compiled on the first call, cached on disk; the interpreter
    lock is released while they run.
    """
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = _cache_of(Path(cast("Any", function).__code__.co_filename).parent)
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    finally:
        config.CACHE_DIR = before
    if hasattr(compiled, "get_call_template"):
        _compile_once(compiled)
    return cast("F", compiled)


@lru_cache
def _cache_of(folder: Path) -> str:
    """Where compiled code of the kernels in a folder is kept: below NUMBA_CACHE_DIR if that is
    set, else in the user's cache.
    """
    digest = hashlib.sha256()
    own = Path(__file__)
    for source in (*sorted(folder.glob("*.py")), own, own.with_name("inlining.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "bigfleet" / "kernels"
    return str(Path(base) / f"{folder.name}-{digest.hexdigest()[:16]}")


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
    types: Any = numba.types
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind

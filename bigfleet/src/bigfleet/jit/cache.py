"""The folder in which compiled kernels are kept, for the compiler and for `bigfleet doctor`.

In order: below NUMBA_CACHE_DIR; in `.numba` of the checkout this file lies in, which is where
`make` and the tests keep them; in the user's cache.

numba looks at a function's own file to see whether its cache is stale, not at the files of the
functions it calls. So the cache lies in a directory named after a digest of the whole folder of
kernels: a change anywhere in it can never meet code compiled before.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve()
_COMPILERS: Final = ("decorators.py", "compiler.py")
"""What they are compiled with, beside this file."""


def home() -> Path:
    """The folder in which all compiled code is kept."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder:
        return Path(folder)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return of_checkout(_HERE) or Path(caches) / "bigfleet" / "kernels"


def of_checkout(source: Path) -> Path | None:
    """`.numba` of the checkout a file of this distribution lies in; None where it was installed, or
    where nothing may be written.
    """
    package = next(each for each in source.parents if each.name == "jit").parent
    distribution = package.parents[1]
    if package.parent.name != "src" or not (distribution / "pyproject.toml").is_file():
        return None
    root = distribution.parent
    kept = root / ".numba"
    if not (root / "Makefile").is_file() or not os.access(kept if kept.is_dir() else root, os.W_OK):
        return None
    return kept


def cache_of(folder: Path) -> Path:
    """Where compiled code of the kernels in a folder is kept."""
    return home() / f"{folder.name}-{_digest(folder)[:16]}"


@lru_cache
def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for source in (*sorted(folder.glob("*.py")), *map(_HERE.with_name, _COMPILERS)):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def is_compiled(folder: Path) -> bool:
    """Whether this Python finds compiled code of the kernels in a folder."""
    kind = f"py{sys.version_info[0]}{sys.version_info[1]}"
    return any(cache_of(folder).rglob(f"*.{kind}*.nbc"))

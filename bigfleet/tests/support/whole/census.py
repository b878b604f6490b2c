"""How many things each memory of a shard holds, by the name of the attribute.

A leak is a memory that holds more after the same work. Counting says which one it is, long before
a process's size does.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

_ATOMS = (str, bytes, int, float, bool, type(None), type, types.FunctionType, types.MethodType)
_PACKAGES = ("bigfleet.", "collections", "asyncio")


def census(root: object, *, apart: Iterable[str] = ()) -> dict[str, int]:
    """Path of each container below an object -> its size; paths that end like `apart` are left out.

    Looks into objects of ours, never into the elements of containers.
    """
    left_out = tuple(apart)
    found: dict[str, int] = {}
    seen: set[int] = set()
    waiting: deque[tuple[str, object]] = deque([("", root)])
    while waiting:
        path, thing = waiting.popleft()
        if isinstance(thing, _ATOMS) or id(thing) in seen or path.endswith(left_out or ("\0",)):
            continue
        seen.add(id(thing))
        size = _size(thing)
        if size is not None:
            found[path] = size
            continue
        if type(thing).__module__.startswith(_PACKAGES):
            waiting.extend((f"{path}.{name}", value) for name, value in _parts(thing))
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int], slack: int) -> dict[str, str]:
    """Memories that hold more than before by more than the slack, and by how much."""
    return {
        path: f"{before.get(path, 0)} -> {size}"
        for path, size in after.items()
        if size > before.get(path, 0) + slack
    }


def _size(thing: object) -> int | None:
    if isinstance(thing, np.ndarray):
        return int(thing.size)
    if isinstance(thing, dict | list | set | frozenset | tuple | deque | bytearray):
        return len(thing)
    return None


def _parts(thing: object) -> Iterator[tuple[str, object]]:
    yield from getattr(thing, "__dict__", {}).items()
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{kind.__name__}{name}" if name.startswith("__") else name
            if hasattr(thing, mangled):
                yield mangled, getattr(thing, mangled)

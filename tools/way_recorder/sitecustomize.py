"""Records which functions of a checkout a process calls first, and when; for tools/trace_way.py.

Python imports this module at start-up when its folder is on PYTHONPATH. It does nothing unless
`TRACE_WAY` names a folder. The byte in the folder's file `window` says which part of the run it
is: 0 for start-up, 1 for the idle system, 2 for the request. The first call of a function in each
window is written at once as one line, because the processes are killed in the end.
"""

import mmap
import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType


def _record(folder: Path, root: str) -> None:
    with (folder / "window").open("rb") as file:
        window = mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ)
    out = os.open(folder / f"{os.getpid()}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(out, f"{' '.join(' '.join(sys.orig_argv).split())}\n".encode())
    seen: tuple[set[CodeType], ...] = (set(), set(), set())
    ours: dict[str, bool] = {}

    def on_event(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code, number = frame.f_code, window[0]
        if code in seen[number]:
            return
        seen[number].add(code)
        name = code.co_filename
        if ours.setdefault(name, name.startswith(root) and "/src/" in name):
            line = f"{time.monotonic_ns()}\t{number}\t{name[len(root) :]}\t{code.co_qualname}\n"
            os.write(out, line.encode())

    threading.setprofile(on_event)
    sys.setprofile(on_event)


if "TRACE_WAY" in os.environ:
    _record(Path(os.environ["TRACE_WAY"]), os.environ["TRACE_WAY_ROOT"])

"""Single keys from a terminal, without waiting for Enter; and waiting that a key ends."""

from __future__ import annotations

import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager


class Keys:
    """Keys as they are pressed. Without a terminal there are none, and waiting is sleeping."""

    def __init__(self, has_terminal: bool) -> None:
        self._has_terminal = has_terminal

    def wait(self, seconds: float) -> str:
        """Wait so long at most; the key that was pressed, or nothing."""
        if not self._has_terminal:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return sys.stdin.read(1) if ready else ""


@contextmanager
def keys() -> Iterator[Keys]:
    """Keys while inside; the terminal is as it was afterwards."""
    if not sys.stdin.isatty():
        yield Keys(has_terminal=False)
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield Keys(has_terminal=True)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

"""Running a program of ours from its first word to its exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable


def _stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def run_program(app: Callable[..., object], **named: str) -> None:
    """Run its command line; SIGTERM ends it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        app(**named)
    except BrokenPipeError:
        # The reader closed the pipe; what is still buffered must not complain on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)

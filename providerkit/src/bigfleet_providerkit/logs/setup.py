"""One logger per process, made from two options; parts get it handed in.

Secrets and bootstrap blobs are never given to a logger; values are quoted so that a line stays a
line.
"""

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import TextIO

import structlog
from structlog.typing import FilteringBoundLogger, WrappedLogger

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_WORDS = {"warning": "WARN", "exception": "ERROR"}
Event = MutableMapping[str, object]


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: object) -> str:
    text = str(value)
    if text and text.isprintable() and not any(sign in text for sign in ' "='):
        return text
    return json.dumps(text, ensure_ascii=False)


def as_text(_logger: WrappedLogger, level: str, event: Event) -> str:
    """`<time> <LEVEL> <message> key=value ...`."""
    message = event.pop("event", "")
    trace = event.pop("exception", None)
    keys = "".join(f" {key}={_value(value)}" for key, value in event.items())
    line = f"{_moment()} {_WORDS.get(level, level.upper())} {message}{keys}"
    return f"{line}\n{trace}" if trace else line


def as_json(_logger: WrappedLogger, level: str, event: Event) -> str:
    """The same words in `msg`, the same keys beside it."""
    message = event.pop("event", "")
    head = {"time": _moment(), "level": _WORDS.get(level, level.upper()).lower(), "msg": message}
    return json.dumps({**head, **event}, default=str, ensure_ascii=False)


def make_logger(
    level: str = "info", form: str = "text", file: TextIO | None = None
) -> FilteringBoundLogger:
    """A logger that writes to stderr."""
    # Bound once: the proxy that wrap_logger gives would be bound again for every line.
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(file or sys.stderr),
        processors=[
            structlog.processors.format_exc_info,
            as_json if form == "json" else as_text,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
        cache_logger_on_first_use=False,
    ).bind()
    return logger


def silent_logger() -> FilteringBoundLogger:
    """A logger that says nothing, for providers inside other processes."""
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    ).bind()
    return logger

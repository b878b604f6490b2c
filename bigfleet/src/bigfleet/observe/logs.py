"""Log lines: `<time> <LEVEL> <message> key=value ...` on stderr, or the same as JSON.

Code calls the standard library's loggers, or structlog's; what it passes as `extra`, or as keys,
becomes the keys. Values are quoted where a line would otherwise not stay a line. Secrets and
bootstrap blobs are never given to a logger.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Final, TextIO

import structlog
from structlog.stdlib import ExtraAdder, ProcessorFormatter
from structlog.typing import WrappedLogger

FORMATS: Final = ("text", "json")
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_NAMES: Final = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_OURS: Final = frozenset({"event", "_record", "_from_structlog", "exception", "stack"})
_REPEATED: Final = frozenset({"color_message"})
"""uvicorn says its message twice, once with escape codes for a terminal."""
_RESERVED: Final = frozenset(logging.makeLogRecord({}).__dict__) - {"exc_info", "stack_info"}
Event = MutableMapping[str, object]


class LogSettingsError(ValueError):
    """A format or level that does not exist."""


def configure_logs(form: str = "text", level: str = "info", file: TextIO | None = None) -> None:
    """Every logger of the process writes here from now on."""
    if form not in FORMATS:
        raise LogSettingsError(f"log format {form!r} is unknown: use one of {', '.join(FORMATS)}")
    if level not in LEVELS:
        raise LogSettingsError(f"log level {level!r} is unknown: use one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler(file or sys.stderr)
    handler.setFormatter(make_formatter(form))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    structlog.configure(
        processors=[_without_reserved, structlog.stdlib.render_to_log_kwargs],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _without_reserved(_logger: WrappedLogger, _method: str, event: Event) -> Event:
    """Keys that the standard library keeps for itself get a line after them."""
    for key in _RESERVED & event.keys():
        event[f"{key}_"] = event.pop(key)
    return event


def make_formatter(form: str) -> logging.Formatter:
    """What turns a record into a line."""
    return ProcessorFormatter(
        foreign_pre_chain=[ExtraAdder(), structlog.processors.format_exc_info],
        processors=[as_json if form == "json" else as_text],
        use_get_message=True,
    )


def as_text(_logger: WrappedLogger, _method: str, event: Event) -> str:
    """`<time> <LEVEL> <message> key=value ...`."""
    moment, level = _head(event)
    keys = "".join(f" {key}={_value(value)}" for key, value in _keys(event).items())
    line = f"{moment} {level} {_one_line(str(event.get('event', '')))}{keys}"
    trace = event.get("exception")
    return f"{line}\n{trace}" if trace else line


def as_json(_logger: WrappedLogger, _method: str, event: Event) -> str:
    """The same words in `msg`, the same keys beside it."""
    moment, level = _head(event)
    document = {"time": moment, "level": level.lower(), "msg": str(event.get("event", ""))}
    # A key that is called like one of the three must not hide it.
    document.update(
        (f"{key}_" if key in document else key, value)  # type: ignore[misc]
        for key, value in _keys(event).items()
    )
    if event.get("exception"):
        document["exception"] = str(event["exception"])
    return json.dumps(document, default=str, ensure_ascii=False)


def _head(event: Event) -> tuple[str, str]:
    record = event.get("_record")
    created = record.created if isinstance(record, logging.LogRecord) else 0.0
    number = record.levelno if isinstance(record, logging.LogRecord) else logging.INFO
    moment = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")
    return moment.replace("+00:00", "Z"), _NAMES.get(number, logging.getLevelName(number))


def _keys(event: Event) -> dict[str, object]:
    return {key: value for key, value in event.items() if key not in _OURS | _REPEATED}


def _value(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    if text and text.isprintable() and not any(sign in text for sign in ' "='):
        return text
    return json.dumps(text, ensure_ascii=False)


def _one_line(message: str) -> str:
    return message if message.isprintable() else json.dumps(message, ensure_ascii=False)[1:-1]

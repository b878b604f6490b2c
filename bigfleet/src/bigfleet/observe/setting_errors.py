"""Why a setting is refused, in our words: the library's are those of a programmer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_WORDS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], str]]] = {
    "int_parsing": lambda given, _: f"{given!r} is not a whole number",
    "int_type": lambda given, _: f"{given!r} is not a whole number",
    "int_from_float": lambda given, _: f"{given!r} is not a whole number",
    "float_parsing": lambda given, _: f"{given!r} is not a number",
    "float_type": lambda given, _: f"{given!r} is not a number",
    "bool_parsing": lambda given, _: f"{given!r} is neither true nor false",
    "bool_type": lambda given, _: f"{given!r} is neither true nor false",
    "string_type": lambda given, _: f"{given!r} is not text",
    "tuple_type": lambda given, _: f"{given!r} is not a list",
    "list_type": lambda given, _: f"{given!r} is not a list",
    "literal_error": lambda given, limit: f"{given!r} is unknown: use {limit['expected']}",
    "greater_than": lambda given, limit: f"{given!r} is too small: use more than {limit['gt']:g}",
    "greater_than_equal": lambda given, limit: (
        f"{given!r} is too small: use {limit['ge']:g} or more"
    ),
    "less_than": lambda given, limit: f"{given!r} is too large: use less than {limit['lt']:g}",
    "less_than_equal": lambda given, limit: f"{given!r} is too large: use {limit['le']:g} or less",
}


def refusal(problem: Mapping[str, Any]) -> str:
    """One problem of a ValidationError."""
    words = _WORDS.get(problem["type"])
    if words is None:
        return str(problem["msg"]).removeprefix("Value error, ")
    return words(problem.get("input"), problem.get("ctx", {}))

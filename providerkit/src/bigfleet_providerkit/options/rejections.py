"""Why an option is refused, in our words: the library's are those of a programmer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "int_parsing": lambda _: "it is not a whole number",
    "int_type": lambda _: "it is not a whole number",
    "int_from_float": lambda _: "it is not a whole number",
    "float_parsing": lambda _: "it is not a number",
    "float_type": lambda _: "it is not a number",
    "bool_parsing": lambda _: "it is neither true nor false",
    "bool_type": lambda _: "it is neither true nor false",
    "string_type": lambda _: "it is not a text",
    "tuple_type": lambda _: "it is not a list",
    "list_type": lambda _: "it is not a list",
    "literal_error": lambda limit: f"it is unknown: use {limit['expected']}",
    "greater_than": lambda limit: f"it is too small: use more than {limit['gt']:g}",
    "greater_than_equal": lambda limit: f"it is too small: use {limit['ge']:g} or more",
    "less_than": lambda limit: f"it is too large: use less than {limit['lt']:g}",
    "less_than_equal": lambda limit: f"it is too large: use {limit['le']:g} or less",
}


def refusal(problem: Mapping[str, Any]) -> str:
    """One problem of a ValidationError, without what was given."""
    words = _WORDS.get(problem["type"])
    if words is None:
        return str(problem["msg"]).removeprefix("Value error, ")
    return words(problem.get("ctx", {}))

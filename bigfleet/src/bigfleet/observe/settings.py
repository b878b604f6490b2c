"""How a process is told what to do: flags, then environment, then a YAML file, as one value.

A component declares its settings as fields; each is a flag (`--cycle-interval`), a variable
(`BIGFLEET_CYCLE_INTERVAL`) and a key of the file (`cycle_interval`). Nothing that is not declared
is accepted, and every refusal is one line that names where the wrong thing was said.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Self, Union, get_args, get_origin
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BeforeValidator, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, SettingsConfigDict

from bigfleet_base.addresses import Endpoint, check_plaintext, dialled

# Why a setting is refused, in our words: the library's are those of a programmer.

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


PREFIX: Final = "BIGFLEET_"
FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|ms|s|m|h))+")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h)")
_VALUES: Final[Mapping[Any, str]] = {int: "N", float: "NUMBER", Path: "PATH"}
_SERVICE_LINK: Final = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP)(_\w+)?)?$")
"""Kubernetes puts variables like BIGFLEET_SHARD_SERVICE_HOST into every container."""


class SettingsError(ValueError):
    """Settings a process cannot start with."""


def parse_duration(text: object) -> float:
    """Seconds of `10s`, `200ms`, `1m30s`; a number is seconds."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    if isinstance(text, str):
        if _DURATION.fullmatch(text):
            return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        try:
            return float(text)
        except ValueError:
            pass
    raise ValueError(f"{text!r} is not a duration: write it like 10s, 200ms or 1m30s")


def format_duration(seconds: float) -> str:
    """The shortest way to write it: `10s`, `200ms`, `1m30s`."""
    if seconds and seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{rest:g}s"
    hours, minutes = divmod(int(minutes), 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number:g}{unit}" for number, unit in parts if number)


def listed_texts(value: object) -> object:
    """A list, however it came: repeated flags, a YAML list, or one text with commas."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        return value
    return [part.strip() for item in items for part in str(item).split(",") if part.strip()]


def _positive(seconds: float) -> float:
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{seconds} is not a duration: use zero or more")
    return seconds


Duration = Annotated[float, BeforeValidator(parse_duration), AfterValidator(_positive)]
"""Seconds."""
Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(listed_texts)]
"""Several texts; a flag may be repeated, a variable has commas."""


@dataclass(frozen=True, slots=True)
class SettingFlag:
    """One setting as a command line shows it."""

    field: str
    meaning: str
    default: str
    """As one would write it; empty when there is none."""
    is_switch: bool
    is_repeatable: bool
    value: str
    """What is to be written after it: `N`, `DURATION`, `text|json`."""

    @property
    def name(self) -> str:
        """`--cycle-interval`."""
        return flag_of(self.field)


def flag_of(field: str) -> str:
    """The flag of a setting."""
    return "--" + field.replace("_", "-")


def variable_of(field: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + field.upper()


class ProcessSettings(BaseSettings):
    """What all components' settings have in common. Immutable once loaded."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object],
        file: Path | None = None,
        foreign: Iterable[str] = (),
    ) -> Self:
        """The settings of a process. Flags that are None or empty lists were not given.

        `foreign` are variables that other components in the same environment are told by.
        """
        given = {name: value for name, value in flags.items() if value not in (None, [], ())}
        cls._refuse_unknown(given, flag_of, "flag")
        variables = cls._variables(foreign)
        path = file or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
        written = {} if path is None else cls._read(path)
        origin = {
            **{name: f"{path}: {name}" for name in written},
            **{name: variable_of(name) for name in variables},
            **{name: flag_of(name) for name in given},
        }
        try:
            return cls(**{**written, **variables, **given})
        except ValidationError as error:
            raise SettingsError(_in_words(error, origin)) from None

    @classmethod
    def flags(cls) -> list[SettingFlag]:
        """Every setting, in the order declared."""
        found = []
        for name, field in cls.model_fields.items():
            default = "" if field.is_required() else _shown(field.default, field.metadata)
            repeatable = NoDecode in field.metadata
            is_switch = field.annotation is bool
            value = value_of(name, field.annotation, field.metadata)
            words = field.description or ""
            found.append(SettingFlag(name, words, default, is_switch, repeatable, value))
        return found

    @classmethod
    def _variables(cls, foreign: Iterable[str]) -> dict[str, Any]:
        known = {variable_of(name) for name in cls.model_fields}
        known |= {FILE_VARIABLE, *foreign}
        for variable in sorted(os.environ):
            if not variable.startswith(PREFIX) or variable in known:
                continue
            if not _SERVICE_LINK.search(variable):
                raise SettingsError(f"{variable} is not a setting{_meant(variable, known)}")
        return EnvSettingsSource(cls)()

    @classmethod
    def _read(cls, path: Path) -> dict[str, Any]:
        try:
            document = yaml.safe_load(path.read_text())
        except (OSError, yaml.YAMLError) as error:
            message = " ".join(str(error).split())
            raise SettingsError(f"settings file {path} cannot be read: {message}") from None
        if document is None:
            return {}
        if not isinstance(document, dict):
            raise SettingsError(f"settings file {path} holds no mapping: write `key: value` lines")
        values = {str(key).replace("-", "_"): value for key, value in document.items()}
        cls._refuse_unknown(values, lambda name: name, f"key of settings file {path}")
        return values

    @classmethod
    def _refuse_unknown(cls, values: Iterable[str], show: Callable[[str], str], what: str) -> None:
        for name in values:
            if name not in cls.model_fields:
                known = {show(field) for field in cls.model_fields}
                raise SettingsError(f"{show(name)} is not a {what}{_meant(show(name), known)}")


def _meant(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f": did you mean {near[0]}?" if near else ""


def _in_words(error: ValidationError, origin: Mapping[str, str]) -> str:
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing":
        return f"{flag_of(field)} is missing: give it, or {variable_of(field)}"
    message = refusal(first)
    return f"{origin[field]}: {message}" if field in origin else message


def value_of(name: str, annotation: Any, metadata: Iterable[Any]) -> str:
    """What a flag is followed by, as its help shows it."""
    if any(isinstance(m, BeforeValidator) and m.func is parse_duration for m in metadata):
        return "DURATION"
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return value_of(name, inner, more)
    some = [each for each in get_args(annotation) if each is not NoneType]
    if get_origin(annotation) in (Union, UnionType) and len(some) == 1:
        return value_of(name, some[0], ())
    if annotation in _VALUES:
        return _VALUES[annotation]
    return "ADDRESS" if name.endswith(("addr", "listen")) else "TEXT"


def _shown(value: object, metadata: list[Any]) -> str:
    if value is None or value == () or value == "":
        return ""
    if isinstance(value, float) and any(
        isinstance(m, BeforeValidator) and m.func is parse_duration for m in metadata
    ):
        return format_duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


# Addresses as settings name them, checked when they are read: a wrong one is refused at the start.
#
# Types of fields: `Dial` is where to call, `Listen` where to be called, `Pages` where metrics and
# probes are, which may be switched off. The rules are those of `bigfleet_base.addresses`.

OFF: Final = ("", "0")
"""Pages that are not served."""
ALLOW_PLAINTEXT: Final = "Serve plaintext also to other machines, where no TLS is configured."
ALLOW_PLAINTEXT_PAGES: Final = "Serve /metrics and probes, which have no TLS, to other machines."


def check_listen(listen: str, flag: str, *, has_tls: bool, allowed: bool) -> None:
    """Refuse a port of calls that other machines reach in plaintext, unless that is allowed."""
    check_plaintext(
        listen,
        flag,
        has_tls=has_tls,
        allowed=allowed,
        allow_flag="--allow-plaintext",
        remedy="add --tls-cert, --tls-key and --tls-ca",
    )


def check_pages(pages: str, flag: str, *, allowed: bool) -> None:
    """Refuse pages that other machines reach, which are plaintext, unless that is allowed."""
    if pages not in OFF:
        check_plaintext(
            pages,
            flag,
            has_tls=False,
            allowed=allowed,
            allow_flag="--allow-plaintext-pages",
            remedy="metrics and probes have no TLS",
        )


def web(text: str) -> str:
    """The address of a web server."""
    try:
        parts = urlsplit(text)
        # Reading the port is what refuses a wrong one.
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(f"{text!r} is not a web address: write http://host:port or https://host")
    return text


def _listen(text: str) -> str:
    Endpoint.parse(text)
    return text


def _pages(text: str) -> str:
    if text not in OFF:
        Endpoint.parse(text, "host:port, :port, or 0 for none")
    return text


def _dial_or_none(text: str) -> str:
    return dialled(text) if text else text


def _web_or_none(text: str) -> str:
    return web(text) if text else text


Listen = Annotated[str, AfterValidator(_listen)]
Pages = Annotated[str, AfterValidator(_pages)]
Dial = Annotated[str, AfterValidator(_dial_or_none)]
Web = Annotated[str, AfterValidator(_web_or_none)]

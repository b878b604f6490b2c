"""From flags, environment and a YAML file to one checked value, in that order.

Every option can be written `--name value` or `--name=value`, with one or two dashes; switches stand
alone or with `=true`, `=false`. A secret also has a `-file` form. What is unknown, missing or wrong
is named in one line.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import ValidationError

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.options.model import KitOptions, Opt, described
from bigfleet_providerkit.options.rejections import refusal

PREFIX = "BIGFLEET_PROVIDER_"
O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider


class Names:
    """All spellings of the options of one model."""

    def __init__(self, model: type[KitOptions]) -> None:
        self.fields: dict[str, Opt] = dict(described(model))
        self._spelled: dict[str, str] = {}
        self._files: dict[str, str] = {}
        for field, opt in self.fields.items():
            for spelling in (field.replace("_", "-"), *opt.aliases):
                self._spelled[spelling] = field
                if opt.secret:
                    self._files[f"{spelling}-file"] = field
        self.switches = {
            name for name, info in model.model_fields.items() if info.annotation is bool
        }

    def field(self, spelling: str) -> tuple[str, bool] | None:
        """The field behind a spelling, and whether its value is in a file."""
        spelling = spelling.replace("_", "-")
        if spelling in self._spelled:
            return self._spelled[spelling], False
        if spelling in self._files:
            return self._files[spelling], True
        return None

    def complain(self, spelling: str, what: str) -> OptionError:
        """An unknown name, with the nearest known one."""
        near = difflib.get_close_matches(spelling, [*self._spelled, *self._files], 1)
        hint = f"; did you mean --{near[0]}?" if near else "; --help lists all options"
        return OptionError(f"unknown {what} {spelling}{hint}")


def parse_flags(names: Names, argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Values by field, and the words that are not options."""
    values: dict[str, str] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        spelling, sign, value = word.lstrip("-").partition("=")
        if spelling == "config":
            values["config"] = value if sign else _next(rest, word)
            continue
        found = names.field(spelling)
        if found is None:
            raise names.complain(spelling, "option")
        field, in_file = found
        if not sign:
            value = "true" if field in names.switches else _next(rest, word)
        values[field] = _read_secret(value, spelling) if in_file else value
    return values, words


def _next(rest: list[str], word: str) -> str:
    if not rest:
        raise OptionError(f"{word} needs a value; write {word}=VALUE")
    return rest.pop(0)


def _read_secret(path: str, spelling: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise OptionError(f"--{spelling} {path} cannot be read: {error.strerror}") from error


def from_environment(names: Names, environ: Mapping[str, str]) -> dict[str, object]:
    """Values by field from BIGFLEET_PROVIDER_... and the cloud's own names."""
    values: dict[str, object] = {}
    for field, opt in names.fields.items():
        ours = PREFIX + field.upper()
        for name in (ours, *opt.env):
            if name in environ:
                values[field] = environ[name]
                break
        else:
            if opt.secret and f"{ours}_FILE" in environ:
                values[field] = _read_secret(environ[f"{ours}_FILE"], f"{field}-file")
    return values


def from_file(names: Names, path: str) -> dict[str, object]:
    """Values by field from a YAML file."""
    try:
        data = yaml.safe_load(Path(path).read_text("utf-8"))
    except OSError as error:
        raise OptionError(f"--config {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise OptionError(f"--config {path}: {' '.join(str(error).split())}") from error
    if not isinstance(data or {}, Mapping):
        raise OptionError(f"--config {path}: expected a map of options")
    values: dict[str, object] = {}
    for key, value in (data or {}).items():
        found = names.field(str(key))
        if found is None:
            raise names.complain(str(key), f"key in {path}:")
        field, in_file = found
        values[field] = _read_secret(str(value), str(key)) if in_file else _inline(value)
    return values


def _inline(value: object) -> object:
    """A list of offerings written directly into the file is passed on as text."""
    return yaml.safe_dump(value) if isinstance(value, list) else value


def parse_options(
    model: type[O], argv: Sequence[str], environ: Mapping[str, str]
) -> tuple[O, list[str]]:
    """The options of a process, and the words beside them."""
    names = Names(model)
    flags, words = parse_flags(names, argv)
    config = flags.pop("config", None) or environ.get(PREFIX + "CONFIG")
    values: dict[str, object] = from_file(names, config) if config else {}
    values.update(from_environment(names, environ))
    values.update(flags)
    try:
        return model.model_validate(values), words
    except ValidationError as error:
        raise OptionError(_explain(error, names)) from error


def _explain(error: ValidationError, names: Names) -> str:
    parts = []
    for problem in error.errors():
        field = str(problem["loc"][0]) if problem["loc"] else ""
        text = refusal(problem)
        if not field:
            parts.append(text)
            continue
        opt = names.fields.get(field)
        example = f"; for example {opt.example}" if opt and opt.example else ""
        if problem["type"] == "missing":
            # What pydantic shows here is everything that was given, secrets included.
            named = "".join(f" or {name}" for name in (opt.env if opt else ()))
            parts.append(f"--{field.replace('_', '-')}{named} is required{example}")
            continue
        shown = "" if opt and opt.secret else f" {problem.get('input')!r}"
        parts.append(f"--{field.replace('_', '-')}{shown}: {text}{example}")
    return "; ".join(dict.fromkeys(parts))

"""YAML read key by key, so that every complaint names its line.

`FileFields` is one mapping of a file. What has been read is taken out; `finish` refuses the rest,
with the key that was probably meant. Numbers are checked against bounds where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from math import inf, isfinite
from pathlib import Path
from typing import Any

import yaml

from bigfleet.observe.settings import parse_duration
from bigfleet_lab.profiles.errors import ProfileError


class FileFields:
    """One mapping of a file."""

    def __init__(self, file: str, line: int, prefix: str, entries: Mapping[str, yaml.Node]) -> None:
        self._file, self._line, self._prefix = file, line, prefix
        self._left = dict(entries)
        self._lines = {key: _line(node) for key, node in entries.items()}
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._lines

    def error(self, text: str, key: str = "") -> ProfileError:
        """A complaint about a key, or about the whole mapping."""
        return ProfileError(f"{self._file}:{self._lines.get(key, self._line)}", text)

    def number(self, key: str, default: float = 0.0, low: float = -inf, high: float = inf) -> float:
        """A number within bounds."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise self.error(f"{self._name(key)} is {value!r}: write a number", key)
        if not low <= value <= high:
            bounds = f"of {low:g} or more" if high == inf else f"from {low:g} to {high:g}"
            raise self.error(f"{self._name(key)} is {value:g}: use a number {bounds}", key)
        return float(value)

    def optional_number(self, key: str, low: float = -inf, high: float = inf) -> float | None:
        """The same, None where the file does not say."""
        self._read.add(key)
        return self.number(key, low=low, high=high) if key in self else None

    def whole(self, key: str, default: int = 0, low: int = 0) -> int:
        """A whole number."""
        value = self.number(key, default, low)
        if value != int(value):
            raise self.error(f"{self._name(key)} is {value:g}: write a whole number", key)
        return int(value)

    def optional_whole(self, key: str, low: int = 0) -> int | None:
        """The same, None where the file does not say."""
        self._read.add(key)
        return self.whole(key, low=low) if key in self else None

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{self._name(key)} is {value!r}: write true or false", key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text; required without a default."""
        value = self._take(key, default)
        if value is None:
            raise self.error(f"{self._name(key)} is missing: it is required")
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"{self._name(key)} is {value!r}: write a text", key)
        return value

    def choice(self, key: str, default: str, known: Iterable[str]) -> str:
        """One of these texts."""
        value, names = self.text(key, default), sorted(known)
        if value not in names:
            raise self.error(
                f"{self._name(key)} is {value!r}: choose one of {', '.join(names)}", key
            )
        return value

    def duration(self, key: str, default: float | None = None) -> float | None:
        """Seconds of `90s`, `15m`, `2h`."""
        if key not in self:
            self._read.add(key)
            return default
        value = self._take(key, None)
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            raise self.error(f"{self._name(key)}: {error}", key) from None
        if seconds <= 0:
            raise self.error(f"{self._name(key)} is {value!r}: use more than 0 s", key)
        return seconds

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.error(f"{self._name(key)} is {value!r}: write a list of texts", key)
        return tuple(value)

    def values(self, key: str) -> dict[str, Any]:
        """A mapping of plain values, by name; who asks checks them."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise self.error(f"{self._name(key)} is {value!r}: write a mapping", key)
        return {str(name): one for name, one in value.items()}

    def mapping(self, key: str, required: bool = False) -> FileFields:
        """A mapping inside this one; an empty one where it is absent."""
        if required and key not in self:
            raise self.error(f"{self._name(key)} is missing: it is required")
        self._read.add(key)
        node = self._left.pop(key, None)
        return self._inner(node, self._name(key) + ".", self._lines.get(key, self._line))

    def entries(self, key: str) -> Iterator[FileFields]:
        """The mappings of a list."""
        self._read.add(key)
        node = self._left.pop(key, None)
        if node is None:
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(f"{self._name(key)} is not a list: begin each entry with '- '", key)
        for number, one in enumerate(node.value):
            yield self._inner(one, f"{self._name(key)}[{number}].", _line(one))

    def finish(self) -> None:
        """Refuse what nothing has read."""
        for key in self._left:
            close = get_close_matches(key, self._read, n=1)
            remedy = (
                f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(self._read))}"
            )
            raise self.error(f"unknown key {self._name(key)}: {remedy}", key)

    def _inner(self, node: yaml.Node | None, prefix: str, line: int) -> FileFields:
        return _fields(self._file, line, prefix, node)

    def _name(self, key: str) -> str:
        return f"{self._prefix}{key}"

    def _take(self, key: str, default: Any) -> Any:
        self._read.add(key)
        node = self._left.pop(key, None)
        return default if node is None else _value(node)


def read_document(text: str, file: str, kind: str) -> FileFields:
    """A file of this API version and kind, ready to be read."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ProfileError(f"{file}:{line}", f"not YAML: {error.problem}") from None
    fields = _fields(file, 1, "", node)
    version, found = fields.text("apiVersion"), fields.text("kind")
    if version != API_VERSION:
        raise fields.error(f"apiVersion is {version!r}: write {API_VERSION}", "apiVersion")
    if found != kind:
        raise fields.error(f"kind is {found!r}: a {kind} is expected here", "kind")
    return fields


def read_file(path: Path, kind: str) -> FileFields:
    """The same of a file."""
    try:
        return read_document(path.read_text(encoding="utf-8"), path.name, kind)
    except OSError as error:
        raise ProfileError(str(path), f"cannot be read: {error.strerror}") from None


API_VERSION = "bigfleet.io/scaletest/v1"


def _fields(file: str, line: int, prefix: str, node: yaml.Node | None) -> FileFields:
    if node is None:
        return FileFields(file, line, prefix, {})
    if not isinstance(node, yaml.MappingNode):
        name = prefix.removesuffix(".") or "the file"
        raise ProfileError(f"{file}:{_line(node)}", f"{name} is not a mapping: write key: value")
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = str(key.value)
        if name in entries:
            raise ProfileError(f"{file}:{_line(key)}", f"{prefix}{name} is there twice: keep one")
        entries[name] = value
    return FileFields(file, line, prefix, entries)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _value(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()

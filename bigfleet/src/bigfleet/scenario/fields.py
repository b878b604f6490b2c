"""Reading checked values out of JSON: every refusal names the file, the place and the value.

`Fields` stands for one object of the file. It knows its place (`machines[3]`), refuses keys it was
not told of, and hands out values of the type that is asked for. What the values mean is left to
`scenario`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from bigfleet.model import ModelError, Resources, parse_resources
from bigfleet.scenario.errors import ScenarioError

_SHOWN: Final = 60
"""A refusal quotes this much of a value: enough to find it, short enough for one line."""


class _Object(dict[str, object]):
    """A JSON object that remembers a key written twice, which a plain dict would lose."""

    __slots__ = ("twice",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.twice: str | None = None
        if len(self) != len(pairs):
            counted = Counter(key for key, _ in pairs)
            self.twice = counted.most_common(1)[0][0]


def read_text(path: Path) -> bytes:
    """What a file holds, or a refusal that says why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ScenarioError(f"{path}: cannot be read: {why}") from None
    except ValueError as error:
        raise ScenarioError(f"{str(path)!r}: is not a file name: {error}") from None


def load_json(text: str | bytes, file: str) -> object:
    """The value of a JSON text."""
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(decoded, object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{file}: byte {error.start} is not UTF-8: save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise ScenarioError(
            f"{file}: line {error.lineno}, column {error.colno}: is not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise ScenarioError(f"{file}: is nested too deeply for a scenario") from None
    except ValueError as error:
        raise ScenarioError(f"{file}: is not JSON: {error}") from None


def shown(value: object) -> str:
    """A value as a refusal quotes it: on one line, and not too long."""
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object, with the file and the place it stands at."""

    file: str
    place: str
    values: Mapping[str, object]

    @classmethod
    def of(cls, file: str, place: str, value: object, known: Iterable[str]) -> Fields:
        """The object at a place; only these keys may be in it."""
        fields = cls(file, place, _mapping(file, place, value))
        allowed = tuple(known)
        for key in fields.values:
            if key not in allowed:
                raise ScenarioError(
                    f"{file}: {fields.at(key)}: unknown key with value "
                    f"{shown(fields.values[key])}: known are {', '.join(allowed)}"
                )
        return fields

    def at(self, key: str) -> str:
        """The place of one of its values."""
        return _joined(self.place, key)

    def refuse(self, key: str, why: str) -> NoReturn:
        """Refuse a value; `why` says what to write instead."""
        value = f"{shown(self.values[key])} " if key in self.values else "is missing: "
        raise ScenarioError(f"{self.file}: {self.at(key)}: {value}{why}")

    def refuse_as(self, key: str, error: ModelError) -> NoReturn:
        """Refuse a value for a reason the model gave, which names the value itself."""
        raise ScenarioError(f"{self.file}: {self.at(key)}: {error}") from None

    def text(self, key: str, default: str | None = "") -> str:
        """A text without line breaks and the like; without a default it must be there."""
        value = self.values.get(key, default)
        if value is None and key not in self.values:
            self.refuse(key, "write a text")
        return self._text(key, value)

    def integer(self, key: str, default: int, least: int, most: int) -> int:
        """A whole number inside bounds."""
        value = self.values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            self.refuse(key, "is not a whole number: write one")
        if not least <= value <= most:
            self.refuse(key, f"is out of range: write {least} to {most}")
        return value

    def number(self, key: str, default: float, most: float) -> float:
        """A number from zero to a bound; NaN and infinities are none."""
        value = self.values.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse(key, "is not a number: write one")
        if isinstance(value, float) and not math.isfinite(value):
            self.refuse(key, f"is not a finite number: write 0 to {most:g}")
        if not 0 <= value <= most:
            self.refuse(key, f"is out of range: write 0 to {most:g}")
        return float(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty by default."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self.refuse(key, "is not a list: write texts in [ ]")
        for item in value:
            self._text(key, item)
        return tuple(value)

    def mapping(self, key: str) -> dict[str, str]:
        """Texts by text; empty by default."""
        value = self.values.get(key, {})
        found = _mapping(self.file, self.at(key), value)
        for name, item in found.items():
            place = _joined(self.at(key), name)
            if not name or not name.isprintable():
                raise ScenarioError(f"{self.file}: {place}: {shown(name)} is not a name: write one")
            if not isinstance(item, str) or not item.isprintable():
                raise ScenarioError(
                    f"{self.file}: {place}: {shown(item)} is not a text: write one in quotes"
                )
        return {name: str(item) for name, item in found.items()}

    def resources(self, key: str, most_units: int) -> Resources:
        """Amounts by resource name, in milli-units."""
        texts = self.mapping(key)
        amounts: dict[str, int] = {}
        for name, text in texts.items():
            try:
                amounts |= parse_resources({name: text})
            except ModelError as error:
                self.refuse_as(key, error)
            if amounts[name] > most_units * 1000:
                place = _joined(self.at(key), name)
                raise ScenarioError(
                    f"{self.file}: {place}: {shown(text)} is more than can be counted: "
                    f"write at most {most_units}"
                )
        return amounts

    def objects(self, key: str, known: Iterable[str]) -> list[Fields]:
        """A list of objects; empty by default."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self.refuse(key, "is not a list: write objects in [ ]")
        allowed = tuple(known)
        return [
            Fields.of(self.file, f"{self.at(key)}[{i}]", item, allowed)
            for i, item in enumerate(value)
        ]

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise ScenarioError(
                f"{self.file}: {self.at(key)}: {shown(value)} is not a text: write one in quotes"
            )
        if not value.isprintable():
            raise ScenarioError(
                f"{self.file}: {self.at(key)}: {shown(value)} holds characters that cannot be "
                "printed: leave them out"
            )
        return value


def _joined(place: str, key: str) -> str:
    # A key with dots or slashes (labels have them) would not be found again without brackets.
    if not key.isidentifier():
        return f"{place}[{shown(key)}]"
    return f"{place}.{key}" if place else key


def _mapping(file: str, place: str, value: object) -> Mapping[str, object]:
    where = f"{file}: {place}" if place else file
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: {shown(value)} is not an object: write {{ ... }}")
    if isinstance(value, _Object) and value.twice is not None:
        raise ScenarioError(f"{where}: key {shown(value.twice)} is written twice: write it once")
    return value

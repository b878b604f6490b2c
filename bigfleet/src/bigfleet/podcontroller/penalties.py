"""What interrupting a Pod, or taking its machine, costs: annotations, else its PriorityClass.

The defaults are a file, `<PriorityClass>: {interruptionPenalty: "16", reclamationPenalty: "0"}`.
Amounts are quantities of dollars, zero or more; they are handed on as they were written, and
rounded to buckets by the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from bigfleet.model import QuantityError, parse_quantity
from bigfleet.podcontroller.errors import DefaultsError

INTERRUPTION: Final = "interruptionPenalty"
RECLAMATION: Final = "reclamationPenalty"
ANNOTATIONS: Final = {
    INTERRUPTION: "bigfleet.lucy.sh/interruption-penalty",
    RECLAMATION: "bigfleet.lucy.sh/reclamation-penalty",
}
Defaults = Mapping[str, Mapping[str, str]]
"""Penalties by name, by PriorityClass."""


@dataclass(frozen=True, slots=True)
class Penalties:
    """Penalties that are stated, by their name in a CapacityRequest; notes are for the owner."""

    stated: Mapping[str, str]
    notes: tuple[str, ...] = ()


def penalties_of(
    annotations: Mapping[str, str], priority_class: str, defaults: Defaults
) -> Penalties:
    """The penalties of a Pod."""
    stated: dict[str, str] = dict(defaults.get(priority_class, {}))
    notes = []
    for name, annotation in ANNOTATIONS.items():
        text = annotations.get(annotation)
        if text is None:
            continue
        wrong = _wrong(text)
        if wrong:
            used = f"{stated[name]}, of its PriorityClass," if name in stated else "none"
            notes.append(f"Annotation {annotation} is passed over ({wrong}); {used} is used.")
        else:
            stated[name] = text
    return Penalties(stated, tuple(notes))


def read_defaults(path: Path | None) -> Defaults:
    """The file of defaults, checked; a DefaultsError says what is wrong in it."""
    if path is None:
        return {}
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DefaultsError(f"priority class defaults {path} cannot be read: {reason}") from error
    if not isinstance(document, dict | None):
        raise DefaultsError(f"{path} holds no mapping: write `<PriorityClass>: {{...}}` lines")
    return {str(name): _checked(path, str(name), entry) for name, entry in (document or {}).items()}


def _checked(path: Path, name: str, entry: object) -> dict[str, str]:
    if not isinstance(entry, dict):
        raise DefaultsError(f"{path}: {name}: write {INTERRUPTION} and {RECLAMATION} below it")
    stated = {}
    for key, value in entry.items():
        if key not in ANNOTATIONS:
            raise DefaultsError(f"{path}: {name}: {key} is unknown: use {', '.join(ANNOTATIONS)}")
        wrong = _wrong(str(value))
        if wrong:
            raise DefaultsError(f"{path}: {name}: {key}: {wrong}")
        stated[str(key)] = str(value)
    return stated


def _wrong(text: str) -> str:
    try:
        dollars = parse_quantity(text)
    except QuantityError as error:
        return str(error)
    return f"{text!r} is negative: write dollars of zero or more" if dollars.nano < 0 else ""

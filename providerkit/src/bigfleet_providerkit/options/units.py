"""How durations, sizes, lists and maps are written in options, and read back.

`90s`, `2m`, `1h30m`, `250ms` and plain numbers (seconds) are durations; `8MiB` and plain numbers
are sizes; `create=0.02,drain=0.1` is a map. Every complaint names the text it could not read.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

_STEP = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZE = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)?", re.IGNORECASE)
_BYTES = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def parse_duration(value: object) -> float:
    """Seconds from `1h30m`, `250ms` or a plain number."""
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a duration; write 90s, 2m or 1h30m")
    if isinstance(value, int | float):
        seconds = float(value)
    else:
        seconds = _parse_duration_text(str(value).strip())
    if not 0 <= seconds < 1e9:
        raise ValueError(f"{value!r} is not a usable duration; write 90s, 2m or 1h30m")
    return seconds


def _parse_duration_text(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    steps = list(_STEP.finditer(text))
    if not steps or "".join(step.group(0) for step in steps) != text:
        raise ValueError(f"{text!r} is not a duration; write 90s, 2m or 1h30m")
    return sum(float(step.group(1)) * _SECONDS[step.group(2)] for step in steps)


def write_duration(seconds: float) -> str:
    """The way people write it: `1h30m0s`, `5m0s`, `2s`, `0.5s`."""
    whole = int(seconds)
    if whole != seconds:
        return f"{seconds:g}s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"


def parse_size(value: object) -> int:
    """Bytes from `8MiB` or a plain number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{value!r} is not a size; write 8MiB or a number of bytes")
    return int(match.group(1)) * _BYTES[(match.group(2) or "").lower()]


def parse_list(value: object) -> object:
    """A list from `a,b`; a list stays as it is."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def parse_map(value: object) -> object:
    """A map from `a=1,b=2`; a map stays as it is."""
    if not isinstance(value, str):
        return value
    result = {}
    for part in parse_pairs(value):
        result[part[0]] = part[1]
    return result


def parse_pairs(text: str) -> list[tuple[str, str]]:
    """The parts of `a=1,b=2`."""
    pairs = []
    for part in text.split(","):
        if not part.strip():
            continue
        name, sign, value = part.partition("=")
        if not sign or not name.strip():
            raise ValueError(f"{part.strip()!r} is not name=value")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _written(convert: Callable[[float], str]) -> PlainSerializer:
    return PlainSerializer(convert, return_type=str)


Duration = Annotated[float, BeforeValidator(parse_duration), _written(write_duration)]
Size = Annotated[int, BeforeValidator(parse_size)]
Words = Annotated[tuple[str, ...], BeforeValidator(parse_list)]
TextMap = Annotated[Mapping[str, str], BeforeValidator(parse_map)]
Rates = Annotated[Mapping[str, float], BeforeValidator(parse_map)]

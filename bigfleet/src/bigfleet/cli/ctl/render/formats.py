"""Times, amounts, labels and enums as people and programs read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from bigfleet.model.amounts.resources import readable

if TYPE_CHECKING:
    from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2

N = TypeVar("N", bound=int)

SECOND: Final = 1_000_000_000
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))
_OPERATORS: Final = {
    1: "In",
    2: "NotIn",
    3: "Exists",
    4: "DoesNotExist",
    5: "Same",
    100: "Gt",
    101: "Lt",
}


def moment(unix_ns: int) -> str | None:
    """A time for programs, RFC 3339 in UTC; None for never."""
    if not unix_ns:
        return None
    at = datetime.fromtimestamp(unix_ns / SECOND, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ago(unix_ns: int, now: int) -> str:
    """A time for people: `3 s ago`, `never`."""
    return f"{lasting((now - unix_ns) / SECOND)} ago" if unix_ns else "never"


def lasting(seconds: float) -> str:
    """`42 s`, `5 min`, `3 h`, `2 d`."""
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def clock(unix_ns: int) -> str:
    """The time of day, in UTC."""
    return datetime.fromtimestamp(unix_ns / SECOND, UTC).strftime("%H:%M:%S")


def plural(count: int, what: str) -> str:
    """`1 machine`, `2 machines`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def dollars(amount: float) -> str:
    """`$1,234.50`."""
    return f"${amount:,.2f}"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def amounts(resources: Mapping[str, str]) -> dict[str, str]:
    """What is not zero, by name."""
    return {name: text for name, text in sorted(resources.items()) if text not in ("", "0")}


def amount_words(resources: Mapping[str, str]) -> str:
    """`cpu 4, memory 16Gi`; nothing when there is nothing."""
    items = amounts(resources).items()
    return ", ".join(f"{name} {readable(name, text)}" for name, text in items) or "nothing"


def vector(resources: provider_pb2.Resources) -> dict[str, str]:
    """A vector of resources by name."""
    return amounts(resources.resources)


def condition(requirement: capacity_pb2.NodeSelectorRequirement) -> str:
    """A requirement as one reads it: `pool In [a, b]`."""
    operator = _OPERATORS.get(requirement.operator, f"operator {int(requirement.operator)}")
    values = f" [{', '.join(requirement.values)}]" if requirement.values else ""
    return f"{requirement.key} {operator}{values}"


def title(namer: Callable[[N], str], number: N, prefix: str) -> str:
    """A value as one reads it: `OnDemand` of CAPACITY_TYPE_ON_DEMAND."""
    return "".join(part.capitalize() for part in name(namer, number, prefix).split("_"))


def name(namer: Callable[[N], str], number: N, prefix: str) -> str:
    """A value without what all values of its enum begin with; its number when it is unknown.

    `namer` is the `Name` of a protobuf enum.
    """
    try:
        return namer(number).removeprefix(prefix)
    except ValueError:
        return str(number)

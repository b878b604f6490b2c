"""The kit's interface as lines of text, and which recorded lines no longer hold.

A line names one thing that a provider outside this repository may rely on: a name, a parameter
that a call accepts, what a call requires, a field, a member. New names, optional parameters and
fields with defaults are allowed; everything recorded stays.

    python tools/frozen_interface.py --add     writes down what is new
"""

import dataclasses
import enum
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "tests" / "compat" / "interface.txt"
ROOT = "bigfleet_providerkit"
MODULES: dict[str, tuple[str, ...]] = {
    "kit": ("Kit",),
    "codec.tags": (
        "TagCodec", "MANAGED", "PROVIDER", "MACHINE", "OPERATION", "CAPACITY", "CLUSTER",
        "HOST_KEY",
    ),
    "codec.flat": ("FlatTags",),
    "calls.http_errors": ("classify_http", "pause_of"),
    "prices.web_list": ("WebList",),
    "options.units": ("Duration", "TextMap", "Words", "Size", "Rates"),
    "hostexec.options": ("SshOptions", "AgentOptions"),
    "hostexec.substrates": ("SshSubstrate", "AgentSubstrate", "DELIVERY_CALLS"),
    "hostexec.channels.guest": ("GuestChannel", "GuestStatus"),
    "hostexec.channels.command": ("CommandChannel",),
    "substrate": (
        "KnowsReadiness", "KnowsInterruptions", "ChecksPermissions", "AcceptsOfferings",
        "LeavesLitter", "Serves", "Closes", "RenewsCredentials",
    ),
    "testing": ("Shard", "Remote", "ProviderProcess", "eventually", "free_port"),
}  # fmt: skip
"""Beside the names of the package itself."""
EXACT = (" requires ", " demands ")
"""Parts of lines that may not grow either: a provider of today has no more than these."""
MADE_BY_THE_KIT = ("Kit", "RunningProvider")
"""Handed to providers, never built by them: their fields are frozen, not how they are built."""
NOT_FOR_PROVIDERS = ("opened", "close")
CONTRACTS = ("Substrate", *MODULES["substrate"])


def interface() -> list[str]:
    """Every line that holds now."""
    package = importlib.import_module(ROOT)
    named = [("", name, getattr(package, name)) for name in package.__all__]
    for module, names in MODULES.items():
        loaded = importlib.import_module(f"{ROOT}.{module}")
        named += [(module, name, getattr(loaded, name)) for name in names]
    return sorted({line for place, name, value in named for line in _lines(place, name, value)})


def broken(recorded: list[str], now: list[str]) -> list[str]:
    """Recorded lines that do not hold any more, each with what there is instead."""
    known = set(now)
    lost = [line for line in recorded if line and not line.startswith("#") and line not in known]
    exact = {line.split(part)[0] + part: line for line in now for part in EXACT if part in line}
    heads = {line: part for line in lost for part in EXACT if part in line}
    return [
        f"{line}; now: {exact.get(line.split(heads[line])[0] + heads[line], 'gone')}"
        if line in heads
        else line
        for line in lost
    ]


def recorded_lines() -> list[str]:
    """What was written down."""
    return RECORDED.read_text("utf-8").splitlines() if RECORDED.exists() else []


def _lines(place: str, name: str, value: object) -> Iterator[str]:
    full = f"{place}.{name}" if place else name
    yield f"{full} is there"
    if isinstance(value, type) and issubclass(value, enum.Enum):
        yield from (f"{full} has the member {member.name}" for member in value)
    elif isinstance(value, type):
        yield from _class_lines(full, name, value)
    elif inspect.isfunction(value):
        yield from _call_lines(full, value)


def _class_lines(full: str, name: str, value: type) -> Iterator[str]:
    if name in CONTRACTS:
        methods = sorted(key for key in vars(value) if not key.startswith("_"))
        yield f"{full} demands {', '.join(methods)}"
    elif hasattr(value, "model_fields"):
        yield from (f"{full} has the option {field}" for field in value.model_fields)
    elif name in MADE_BY_THE_KIT and dataclasses.is_dataclass(value):
        fields = (field.name for field in dataclasses.fields(value))
        yield from (f"{full}.{field} is there" for field in fields if not field.startswith("_"))
    elif not issubclass(value, BaseException) or value.__init__ is not Exception.__init__:
        yield from _call_lines(full, value)
    for key, member in inspect.getmembers(value):
        private = key.startswith("_") or key in NOT_FOR_PROVIDERS
        if private or hasattr(value, "model_fields"):
            continue
        if inspect.isfunction(member):
            yield from _call_lines(f"{full}.{key}", member)
        elif isinstance(member, property):
            yield f"{full}.{key} is there"


def _call_lines(full: str, call: Callable[..., object]) -> Iterator[str]:
    """What a call accepts, and what it requires."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except ValueError:
        return
    given = [p for p in parameters if p.name != "self"]
    by_place = [p.name for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for number, name in enumerate(by_place):
        yield f"{full} takes {name} in place {number + 1}"
    yield from (f"{full} takes {p.name} by name" for p in given if p.kind is p.KEYWORD_ONLY)
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = [p.name for p in given if p.default is p.empty and p.kind not in open_ended]
    yield f"{full} requires {', '.join(required) or 'nothing'}"


if __name__ == "__main__":
    before = recorded_lines()
    if problems := broken(before, interface()):
        print("\n".join(["these lines do not hold any more:", *problems]), file=sys.stderr)
        sys.exit(1)
    if sys.argv[1:] == ["--add"]:
        lines = sorted({*before, *interface()} - {""})
        RECORDED.write_text("\n".join(lines) + "\n", "utf-8")
        print(f"{len(lines)} lines, {len(lines) - len([b for b in before if b])} new")

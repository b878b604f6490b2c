"""Reads the frozen contract, `golden/contract.txt`, into values.

The table is the second, independent statement of the contract: it is written by hand and knows
nothing of the definitions, so a slip in one of the two shows as a difference. This module only
reads it; comparing is left to the tests, making bytes to `goldens`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

CONTRACT = Path(__file__).parent.parent / "golden" / "contract.txt"
SCALARS = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})
FIRST_ADDITION = 100

_K = TypeVar("_K")
_V = TypeVar("_V")

FIELD = re.compile(
    r"(?P<number>\d+) (?P<name>\w+) (?P<repeated>repeated )?"
    r"(?:map<(?P<key>\w+),(?P<value>\w+)>|(?P<type>[\w.]+))"
    r"(?: in (?P<oneof>\w+))?(?P<added> \+)?"
)
RESERVED = re.compile(r"(?P<number>\d+) reserved (?P<name>\w+)")
ENUM_VALUE = re.compile(r"(?P<number>\d+) (?P<name>\w+)(?P<added> \+)?")
RPC = re.compile(
    r"(?P<name>\w+) (?P<request_stream>stream )?(?P<request>\w+)"
    r" -> (?P<response_stream>stream )?(?P<response>\w+)(?P<added> \+)?"
)


class TableError(ValueError):
    """A line of the table cannot be read."""

    def __init__(self, number: int, line: str) -> None:
        super().__init__(f"contract.txt:{number}: cannot read {line!r}; its head explains the form")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. A map has the types of key and value, everything else one type."""

    number: int
    name: str
    type: str
    repeated: bool = False
    key: str | None = None
    oneof: str | None = None
    added: bool = False


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One value of an enum."""

    number: int
    name: str
    added: bool = False


@dataclass(frozen=True, slots=True)
class Rpc:
    """One call of a service."""

    name: str
    request: str
    response: str
    request_stream: bool = False
    response_stream: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A message: fields by number, and the numbers and names it keeps reserved."""

    name: str
    frozen: bool
    fields: dict[int, Field] = field(default_factory=dict)
    reserved: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum: values by number."""

    name: str
    frozen: bool
    values: dict[int, EnumValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Service:
    """A service: calls by name."""

    name: str
    frozen: bool
    rpcs: dict[str, Rpc] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class File:
    """One definition file: what it imports, and the names it declares."""

    name: str
    imports: frozenset[str]
    messages: dict[str, Message] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contract:
    """The whole table."""

    files: dict[str, File] = field(default_factory=dict)

    @property
    def messages(self) -> dict[str, Message]:
        """Messages of all files by name."""
        return {name: item for file in self.files.values() for name, item in file.messages.items()}

    @property
    def enums(self) -> dict[str, Enum]:
        """Enums of all files by name, nested ones as Message.Enum."""
        return {name: item for file in self.files.values() for name, item in file.enums.items()}

    @property
    def services(self) -> dict[str, Service]:
        """Services of all files by name."""
        return {name: item for file in self.files.values() for name, item in file.services.items()}


def read_contract(path: Path = CONTRACT) -> Contract:
    """The table in a file."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Contract:
    """The table in a text. A line that does not fit, or that says a thing twice, is an error."""
    contract = Contract()
    file: File | None = None
    block: Message | Enum | Service | None = None
    for number, line in _lines(text):
        words = line.split()
        if line.startswith("  ") and block is not None:
            understood = _take_member(block, line.strip())
        elif words[0] == "file":
            file = File(words[1], frozenset(words[3:]))
            understood = _put(contract.files, file.name, file)
        elif file is not None and len(words) == 3 and words[2] in ("frozen", "added"):
            block, understood = _open_block(file, words[0], words[1], frozen=words[2] == "frozen")
        else:
            understood = False
        if not understood:
            raise TableError(number, line)
    return contract


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _open_block(
    file: File, kind: str, name: str, *, frozen: bool
) -> tuple[Message | Enum | Service | None, bool]:
    if kind == "message":
        message = Message(name, frozen)
        return message, _put(file.messages, name, message)
    if kind == "enum":
        enum = Enum(name, frozen)
        return enum, _put(file.enums, name, enum)
    if kind == "service":
        service = Service(name, frozen)
        return service, _put(file.services, name, service)
    return None, False


def _take_member(block: Message | Enum | Service, line: str) -> bool:
    if isinstance(block, Message):
        return _take_field(block, line)
    if isinstance(block, Enum):
        match = ENUM_VALUE.fullmatch(line)
        if match is None:
            return False
        value = EnumValue(int(match["number"]), match["name"], bool(match["added"]))
        return _put(block.values, value.number, value)
    match = RPC.fullmatch(line)
    if match is None:
        return False
    rpc = Rpc(
        match["name"],
        match["request"],
        match["response"],
        request_stream=bool(match["request_stream"]),
        response_stream=bool(match["response_stream"]),
        added=bool(match["added"]),
    )
    return _put(block.rpcs, rpc.name, rpc)


def _take_field(message: Message, line: str) -> bool:
    if match := RESERVED.fullmatch(line):
        number = int(match["number"])
        return number not in message.fields and _put(message.reserved, number, match["name"])
    match = FIELD.fullmatch(line)
    if match is None:
        return False
    item = Field(
        int(match["number"]),
        match["name"],
        match["value"] or match["type"],
        repeated=bool(match["repeated"]),
        key=match["key"],
        oneof=match["oneof"],
        added=bool(match["added"]),
    )
    return item.number not in message.reserved and _put(message.fields, item.number, item)


def _put(table: dict[_K, _V], key: _K, value: _V) -> bool:
    if key in table:
        return False
    table[key] = value
    return True

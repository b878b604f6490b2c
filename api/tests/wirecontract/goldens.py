"""Golden bytes of every message, made from the frozen table alone.

The bytes are written by the few lines of encoding below, from `golden/contract.txt`, and never by
the protobuf library or the generated classes: what those make of the bytes is what the tests are
about. Every field gets a value that follows from its number and name, lists and maps get two
entries, and a message with a oneof gets one golden for each of its members.

    python -m wirecontract.goldens --record    (in api/tests) writes golden/bytes/*.hex again

is for a contract that grew; bytes of what was there before may then only become longer.
"""

import argparse
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from wirecontract.table import (
    FIRST_ADDITION,
    SCALARS,
    Contract,
    Field,
    File,
    Message,
    read_contract,
)

BYTES = Path(__file__).parent.parent / "golden" / "bytes"

VARINT, FIXED64, LENGTH = 0, 1, 2

Scalar = str | bytes | bool | int | float
Value = Scalar | dict[str, "Value"] | list["Value"]


def golden_names(message: Message) -> Iterator[tuple[str, str | None]]:
    """The goldens of a message: its name, or one name per member of its oneof with that member."""
    members = [item.name for item in message.fields.values() if item.oneof is not None]
    if not members:
        yield message.name, None
    for member in members:
        yield f"{message.name}.{member}", member


def full_value(contract: Contract, message: Message, member: str | None = None) -> dict[str, Value]:
    """Every field with a value, by name; of a oneof the member named, or else the last."""
    if member is None:
        member = next((i.name for i in reversed(message.fields.values()) if i.oneof), None)
    return {
        item.name: _field_value(contract, item)
        for item in message.fields.values()
        if item.oneof is None or item.name == member
    }


def _field_value(contract: Contract, item: Field) -> Value:
    if item.key is not None:
        return {f"{item.name}/{n}": _single(contract, item, n) for n in (1, 2)}
    if item.repeated:
        return [_single(contract, item, n) for n in (1, 2)]
    return _single(contract, item, 1)


def _single(contract: Contract, item: Field, copy: int) -> Value:
    if item.type in contract.messages:
        return full_value(contract, contract.messages[item.type])
    if item.type in contract.enums:
        # Frozen values only, so that a golden without added fields has no additions at all.
        numbers = [n for n in contract.enums[item.type].values if n < FIRST_ADDITION]
        return numbers[-copy]
    values: dict[str, Scalar] = {
        "string": f"{item.name}-{copy} é",
        "bytes": bytes((0, 255, copy)) + item.name.encode(),
        "bool": True,
        "int32": 2_000_000_000 + item.number * 10 + copy,
        "int64": 9_000_000_000_000_000_000 + item.number * 10 + copy,
        "double": item.number + copy / 4,
    }
    return values[item.type]


def encode(contract: Contract, message: Message, value: dict[str, Value]) -> bytes:
    """The bytes of a message whose fields have these values, in the order of numbers."""
    return b"".join(
        _encode_field(contract, item, value[item.name])
        for _, item in sorted(message.fields.items())
        if item.name in value
    )


def _encode_field(contract: Contract, item: Field, value: Value) -> bytes:
    if isinstance(value, dict) and item.key is not None:
        # On the wire a map is a list of messages with the key as field 1 and the value as field 2.
        entry = Field(2, item.name, item.type)
        key = Field(1, item.name, item.key)
        return b"".join(
            _tag(item.number, LENGTH)
            + _sized(_encode_field(contract, key, name) + _encode_field(contract, entry, one))
            for name, one in sorted(value.items())
        )
    if isinstance(value, list):
        if _is_packed(contract, item):
            numbers = (_varint(one) for one in value if isinstance(one, int))
            return _tag(item.number, LENGTH) + _sized(b"".join(numbers))
        single = Field(item.number, item.name, item.type)
        return b"".join(_encode_field(contract, single, one) for one in value)
    if isinstance(value, dict):
        inner = encode(contract, contract.messages[item.type], value)
        return _tag(item.number, LENGTH) + _sized(inner)
    return _encode_scalar(item.number, value)


def _is_packed(contract: Contract, item: Field) -> bool:
    return item.type in contract.enums or item.type in SCALARS - {"string", "bytes"}


def _encode_scalar(number: int, value: Scalar) -> bytes:
    if isinstance(value, str):
        return _tag(number, LENGTH) + _sized(value.encode())
    if isinstance(value, bytes):
        return _tag(number, LENGTH) + _sized(value)
    if isinstance(value, float):
        return _tag(number, FIXED64) + struct.pack("<d", value)
    return _tag(number, VARINT) + _varint(value)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def without_additions(contract: Contract, message: Message, value: dict[str, Value]) -> bytes:
    """The bytes that a peer would send which knows no field from 100 on, at any depth."""
    return encode(_frozen_part(contract), _stripped(message), value)


def _frozen_part(contract: Contract) -> Contract:
    return Contract(
        {
            name: File(
                name,
                file.imports,
                {key: _stripped(message) for key, message in file.messages.items()},
                file.enums,
                file.services,
            )
            for name, file in contract.files.items()
        }
    )


def _stripped(message: Message) -> Message:
    fields = {n: item for n, item in message.fields.items() if n < FIRST_ADDITION}
    return Message(message.name, message.frozen, fields, message.reserved)


def make(contract: Contract) -> dict[str, dict[str, bytes]]:
    """All goldens: file name to golden name to bytes."""
    return {
        Path(file.name).stem: {
            name: encode(contract, message, full_value(contract, message, member))
            for message in file.messages.values()
            for name, member in golden_names(message)
        }
        for file in contract.files.values()
    }


def read(folder: Path = BYTES) -> dict[str, dict[str, bytes]]:
    """The recorded goldens, as `make` gives them."""
    return {
        path.stem: {
            name: bytes.fromhex(digits)
            for name, _, digits in (
                line.partition(" ") for line in path.read_text(encoding="ascii").splitlines()
            )
        }
        for path in sorted(folder.glob("*.hex"))
    }


def record(contract: Contract, folder: Path = BYTES) -> None:
    """Write all goldens: one file per definition file, one line per golden."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, goldens in make(contract).items():
        lines = [f"{name} {data.hex()}".rstrip() for name, data in goldens.items()]
        (folder / f"{stem}.hex").write_text("\n".join(lines) + "\n", encoding="ascii")


def main(argv: Sequence[str]) -> int:
    """Compare with the recorded bytes, or write them with --record; 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the bytes again")
    contract = read_contract()
    if parser.parse_args(argv).record:
        record(contract)
        return 0
    if make(contract) == read():
        return 0
    sys.stderr.write("The recorded bytes are not those of contract.txt; see --help\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

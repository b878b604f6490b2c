"""Writes docs/reference/api.md from the protocol definitions, so that the two never disagree.

`make proto` writes the page; `make docs` fails when it is not what the definitions say. The words
are the comments in api/proto, read by the compiler itself; this file only lays them out. That every
element has a comment is api/tests/unit/test_comments.py's business.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

ROOT: Final = Path(__file__).parent.parent
DEFINITIONS: Final = ROOT / "api" / "proto"
BELOW: Final = "bigfleet/v1alpha1"
PAGE: Final = ROOT / "docs" / "reference" / "api.md"
ORDER: Final = ("capacity", "provider", "shard", "shardread", "coordinator")
HEAD: Final = """\
# API

<!-- Written by tools/api_reference.py from api/proto; `make proto` writes it again. -->

Package `bigfleet.v1alpha1`: every service, call, message and field that crosses processes, with the
words of its definition. How the contract is kept, and what may be added to it, is told in
[wire protocols](../internals/wire-protocols.md); who calls whom in
[where the data goes](../internals/data-flow.md).
"""

# Numbers of fields in FileDescriptorProto and below it, of which the paths of comments are made.
SYNTAX, MESSAGE, ENUM, SERVICE = 12, 4, 5, 6
FIELD, NESTED_ENUM, ONEOF = 2, 4, 8
VALUE, METHOD = 2, 2

Place = tuple[int, ...]
Words = Mapping[Place, str]
"""What is said about the element at a place, paragraphs as they were written."""


def read(definitions: Path) -> list[FileDescriptorProto]:
    """The definitions with their comments, in the order in which people meet them."""
    names = [f"{BELOW}/{name}.proto" for name in ORDER]
    found = {path.stem for path in (definitions / BELOW).glob("*.proto")}
    if found != set(ORDER):
        raise SystemExit(f"{definitions}: definitions and ORDER differ: {found ^ set(ORDER)}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "contract.bin"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={definitions}"]
        options = ["--include_source_info", f"--descriptor_set_out={out}"]
        subprocess.run([*command, *options, *names], cwd=definitions, check=True)
        compiled = FileDescriptorSet.FromString(out.read_bytes())
    files = {file.name: file for file in compiled.file}
    return [files[name] for name in names]


def render(files: Sequence[FileDescriptorProto]) -> str:
    """The whole page."""
    return "\n".join([HEAD, *_services(files), *(line for file in files for line in _file(file))])


def _services(files: Sequence[FileDescriptorProto]) -> Iterator[str]:
    yield "| service | defined in | calls |"
    yield "| --- | --- | --- |"
    for file in files:
        for service in file.service:
            calls = ", ".join(f"`{method.name}`" for method in service.method)
            home = f"[{Path(file.name).name}](#{_anchor(Path(file.name).name)})"
            yield f"| [{service.name}](#{_anchor(service.name)}) | {home} | {calls} |"
    yield ""


def _file(file: FileDescriptorProto) -> Iterator[str]:
    words = _comments(file)
    yield f"## {Path(file.name).name}\n"
    yield f"{words[SYNTAX,]}\n"
    for i, service in enumerate(file.service):
        yield from _service((SERVICE, i), service, words)
    for i, message in enumerate(file.message_type):
        yield from _message((MESSAGE, i), message, words)
    for i, enum in enumerate(file.enum_type):
        yield from _enum((ENUM, i), enum.name, enum, words)


def _comments(file: FileDescriptorProto) -> Words:
    return {
        tuple(location.path): "\n".join(
            line.removeprefix(" ").rstrip()
            for line in location.leading_comments.strip("\n").splitlines()
        ).strip()
        for location in file.source_code_info.location
    }


def _service(place: Place, service: ServiceDescriptorProto, words: Words) -> Iterator[str]:
    yield f"### {service.name}\n"
    yield f"{words[place]}\n"
    yield "| call | takes | answers | meaning |"
    yield "| --- | --- | --- | --- |"
    for i, method in enumerate(service.method):
        takes, answers = _ends(method)
        yield f"| `{method.name}` | {takes} | {answers} | {_cell(words[*place, METHOD, i])} |"
    yield ""


def _ends(method: MethodDescriptorProto) -> tuple[str, str]:
    takes, answers = _link(method.input_type), _link(method.output_type)
    return (
        f"stream of {takes}" if method.client_streaming else takes,
        f"stream of {answers}" if method.server_streaming else answers,
    )


def _message(place: Place, message: DescriptorProto, words: Words) -> Iterator[str]:
    yield f"### {message.name}\n"
    yield f"{words[place]}\n"
    if message.field:
        yield "| field | number | type | meaning |"
        yield "| --- | --- | --- | --- |"
    for i, field in enumerate(message.field):
        meaning = _cell(words[*place, FIELD, i])
        yield f"| `{field.name}` | {field.number} | {_type(message, field)} | {meaning} |"
    if message.field:
        yield ""
    for i, oneof in enumerate(message.oneof_decl):
        members = [f"`{field.name}`" for field in message.field if _within(field, i)]
        yield f"`{oneof.name}` is at most one of {', '.join(members)}. {words[*place, ONEOF, i]}\n"
    if message.reserved_range:
        numbers = [str(n) for span in message.reserved_range for n in range(span.start, span.end)]
        names = [f"`{name}`" for name in message.reserved_name]
        yield f"Reserved: {', '.join([*numbers, *names])}.\n"
    for i, enum in enumerate(message.enum_type):
        yield from _enum((*place, NESTED_ENUM, i), f"{message.name}.{enum.name}", enum, words)


def _enum(place: Place, name: str, enum: EnumDescriptorProto, words: Words) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{words[place]}\n"
    yield "| value | number | meaning |"
    yield "| --- | --- | --- |"
    for i, value in enumerate(enum.value):
        yield f"| `{value.name}` | {value.number} | {_cell(words[*place, VALUE, i])} |"
    yield ""


def _within(field: FieldDescriptorProto, oneof: int) -> bool:
    return field.HasField("oneof_index") and field.oneof_index == oneof


def _type(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    entries = {one.name: one for one in message.nested_type if one.options.map_entry}
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, value = entry.field
        return f"map of {_single(key)} to {_single(value)}"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {_single(field)}"
    return _single(field)


def _single(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _link(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _link(type_name: str) -> str:
    name = type_name.removeprefix(f".{BELOW.replace('/', '.')}.")
    return f"[{name}](#{_anchor(name)})"


def _anchor(heading: str) -> str:
    return heading.lower().replace(".", "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(argv: Sequence[str]) -> int:
    """Write the page, or say that it is old."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(argv)
    page = render(read(DEFINITIONS))
    if not options.check:
        PAGE.write_text(page, encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print(f"{PAGE.relative_to(ROOT)} is older than api/proto; run: make proto", file=sys.stderr)
        return 1
    print("api: the reference says what the definitions say")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Every element of the contract says what it means: the API reference is made of these comments."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

DEFINITIONS = Path(__file__).parents[3] / "api" / "proto"
SOURCES = sorted(path.relative_to(DEFINITIONS) for path in DEFINITIONS.rglob("*.proto"))

# Numbers of fields in FileDescriptorProto and below it, of which the paths of comments are made.
MESSAGE, ENUM, SERVICE = 4, 5, 6
FIELD, NESTED_ENUM, ONEOF = 2, 4, 8
VALUE, METHOD = 2, 2

Element = tuple[tuple[int, ...], str]


def elements(file: FileDescriptorProto) -> Iterator[Element]:
    for i, message in enumerate(file.message_type):
        yield (MESSAGE, i), message.name
        for j, item in enumerate(message.field):
            yield (MESSAGE, i, FIELD, j), f"{message.name}.{item.name}"
        for j, oneof in enumerate(message.oneof_decl):
            yield (MESSAGE, i, ONEOF, j), f"{message.name}.{oneof.name}"
        for j, enum in enumerate(message.enum_type):
            yield (MESSAGE, i, NESTED_ENUM, j), f"{message.name}.{enum.name}"
            for k, value in enumerate(enum.value):
                yield (MESSAGE, i, NESTED_ENUM, j, VALUE, k), value.name
    for i, enum in enumerate(file.enum_type):
        yield (ENUM, i), enum.name
        for j, value in enumerate(enum.value):
            yield (ENUM, i, VALUE, j), value.name
    for i, service in enumerate(file.service):
        yield (SERVICE, i), service.name
        for j, method in enumerate(service.method):
            yield (SERVICE, i, METHOD, j), f"{service.name}.{method.name}"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> FileDescriptorSet:
    out = tmp_path_factory.mktemp("descriptors") / "contract.bin"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={DEFINITIONS}"]
    options = ["--include_source_info", f"--descriptor_set_out={out}"]
    subprocess.run([*command, *options, *map(str, SOURCES)], cwd=DEFINITIONS, check=True)
    return FileDescriptorSet.FromString(out.read_bytes())


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_element_says_what_it_means(compiled: FileDescriptorSet, source: Path) -> None:
    file = next(one for one in compiled.file if one.name == source.as_posix())
    commented = {
        tuple(location.path)
        for location in file.source_code_info.location
        if location.leading_comments.strip()
    }
    assert [name for path, name in elements(file) if path not in commented] == []

"""The reference of the calls and messages between processes."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

import api_reference
import check_links


@pytest.fixture(scope="module")
def files() -> list[FileDescriptorProto]:
    return api_reference.read(api_reference.DEFINITIONS)


def test_the_page_is_what_the_definitions_say(files: list[FileDescriptorProto]) -> None:
    assert api_reference.PAGE.read_text(encoding="utf-8") == api_reference.render(files)


def test_every_call_message_and_field_is_there(files: list[FileDescriptorProto]) -> None:
    lines = api_reference.render(files).splitlines()
    for file in files:
        for service in file.service:
            assert f"### {service.name}" in lines
            for method in service.method:
                assert any(line.startswith(f"| `{method.name}` | ") for line in lines)
        for message in file.message_type:
            start = lines.index(f"### {message.name}")
            for field in message.field:
                row = f"| `{field.name}` | {field.number} | "
                assert any(line.startswith(row) for line in lines[start:])


def test_no_two_elements_share_an_anchor(files: list[FileDescriptorProto]) -> None:
    page = api_reference.render(files)
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert len(headings) == len({check_links.anchor(line.lstrip("# ")) for line in headings})


def test_types_are_told_in_words(files: list[FileDescriptorProto]) -> None:
    page = api_reference.render(files)
    assert "| `Session` | stream of [OperatorMessage](#operatormessage) | stream of " in page
    assert "| `aggregate_resources` | 2 | map of string to string | " in page
    assert "| `needs` | 3 | list of [CapacityNeed](#capacityneed) | " in page

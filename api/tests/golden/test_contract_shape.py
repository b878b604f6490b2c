"""The generated package has exactly the shape that `contract.txt` freezes, and grows by rule."""

import pickle

import pytest

from wirecontract.descriptors import (
    DESCRIPTORS,
    FOLDER,
    PACKAGE,
    file_proto,
    generated_contract,
    message_class,
    shape_only,
)
from wirecontract.table import FIRST_ADDITION, SCALARS, read_contract

TABLE = read_contract()
FROZEN = shape_only(TABLE)
FOUND = generated_contract()


def names(*tables: dict[str, object]) -> list[str]:
    return sorted({name for table in tables for name in table})


def test_the_files_are_those_of_the_table_and_import_what_it_says() -> None:
    assert {n: f.imports for n, f in FOUND.files.items()} == {
        n: f.imports for n, f in FROZEN.files.items()
    }


@pytest.mark.parametrize("file", names({**FROZEN.files}, {**FOUND.files}))
def test_a_file_declares_the_names_of_the_table_and_no_others(file: str) -> None:
    frozen, found = FROZEN.files[file], FOUND.files[file]
    assert set(found.messages) == set(frozen.messages)
    assert set(found.enums) == set(frozen.enums)
    assert set(found.services) == set(frozen.services)


@pytest.mark.parametrize("message", names({**FROZEN.messages}, {**FOUND.messages}))
def test_a_message_has_the_frozen_fields_and_keeps_its_reserved_numbers_and_names(
    message: str,
) -> None:
    assert FOUND.messages.get(message) == FROZEN.messages.get(message)


@pytest.mark.parametrize("enum", names({**FROZEN.enums}, {**FOUND.enums}))
def test_an_enum_has_the_frozen_values(enum: str) -> None:
    assert FOUND.enums.get(enum) == FROZEN.enums.get(enum)


@pytest.mark.parametrize("service", names({**FROZEN.services}, {**FOUND.services}))
def test_a_service_has_the_frozen_calls_with_their_streaming_kinds(service: str) -> None:
    assert FOUND.services.get(service) == FROZEN.services.get(service)


@pytest.mark.parametrize("message", names({**TABLE.messages}))
def test_a_frozen_message_grows_by_numbers_from_100_on_only(message: str) -> None:
    table = TABLE.messages[message]
    if table.frozen:
        grown = {n for n, item in table.fields.items() if item.added}
        assert grown == {n for n in table.fields if n >= FIRST_ADDITION}
    else:
        assert sorted(table.fields) == list(range(1, len(table.fields) + 1))


@pytest.mark.parametrize("enum", names({**TABLE.enums}))
def test_a_frozen_enum_grows_by_numbers_from_100_on_only(enum: str) -> None:
    table = TABLE.enums[enum]
    grown = {n for n, item in table.values.items() if item.added}
    assert grown == {n for n in table.values if n >= FIRST_ADDITION}
    assert table.frozen or not grown
    assert next(iter(table.values)) == 0


def test_the_table_uses_only_types_that_it_declares() -> None:
    declared = SCALARS | set(TABLE.messages) | set(TABLE.enums)
    used = {item.type for message in TABLE.messages.values() for item in message.fields.values()}
    called = {
        name
        for service in TABLE.services.values()
        for rpc in service.rpcs.values()
        for name in (rpc.request, rpc.response)
    }
    assert used <= declared
    assert called <= set(TABLE.messages)


@pytest.mark.parametrize("file", sorted(DESCRIPTORS))
def test_a_file_is_plain_proto3_in_the_frozen_package_without_language_options(file: str) -> None:
    proto = file_proto(DESCRIPTORS[file])
    assert proto.name == FOLDER + file
    assert proto.package == PACKAGE
    assert proto.syntax == "proto3"
    assert not proto.HasField("options")
    assert not any(item.proto3_optional for message in proto.message_type for item in message.field)


def test_classes_say_that_they_live_in_our_package_so_that_they_can_be_pickled() -> None:
    for name in TABLE.messages:
        found = message_class(name)
        assert found.__module__.startswith("bigfleet_api.v1alpha1.")
        assert pickle.loads(pickle.dumps(found())) == found()

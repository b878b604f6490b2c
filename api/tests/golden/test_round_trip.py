"""Every message reads and writes the recorded bytes, whatever a newer or older peer adds or leaves.

The bytes were made from the frozen table without protobuf's help (see `wirecontract.goldens`).
"""

from collections.abc import Mapping, Sequence

import pytest
from google.protobuf.message import Message as Proto

from bigfleet_api.v1alpha1.capacity_pb2 import NodeSelectorRequirement, PenaltyBucket
from wirecontract import goldens
from wirecontract.descriptors import message_class
from wirecontract.goldens import Value
from wirecontract.table import FIRST_ADDITION, read_contract

TABLE = read_contract()
RECORDED = {name: data for file in goldens.read().values() for name, data in file.items()}
# Field 999 with the text "newer", as a peer with a later contract might send it.
UNKNOWN = bytes.fromhex("ba3e05") + b"newer"


def golden_cases() -> list[tuple[str, str, str | None]]:
    return [
        (golden, message.name, member)
        for message in TABLE.messages.values()
        for golden, member in goldens.golden_names(message)
    ]


all_goldens = pytest.mark.parametrize(("golden", "name", "member"), golden_cases())
all_messages = pytest.mark.parametrize("name", sorted(TABLE.messages))


def plain(proto: Proto) -> dict[str, Value]:
    """What a decoded message says, in the form of `goldens.full_value`."""
    return {found.name: plain_value(getattr(proto, found.name)) for found, _ in proto.ListFields()}


def plain_value(value: object) -> Value:
    if isinstance(value, Proto):
        return plain(value)
    if isinstance(value, str | bytes | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: plain_value(one) for key, one in value.items()}
    assert isinstance(value, Sequence)
    return [plain_value(one) for one in value]


def clear_additions(proto: Proto) -> None:
    for found, value in proto.ListFields():
        if found.number >= FIRST_ADDITION:
            proto.ClearField(found.name)
        elif isinstance(value, Proto):
            clear_additions(value)
        elif isinstance(value, Sequence):
            for one in value:
                if isinstance(one, Proto):
                    clear_additions(one)


def test_the_recorded_bytes_are_those_of_the_table() -> None:
    assert goldens.read() == goldens.make(TABLE)


@all_goldens
def test_a_golden_says_what_was_put_in_and_writes_back_the_same_bytes(
    golden: str, name: str, member: str | None
) -> None:
    decoded = message_class(name).FromString(RECORDED[golden])
    assert plain(decoded) == goldens.full_value(TABLE, TABLE.messages[name], member)
    assert decoded.SerializeToString(deterministic=True) == RECORDED[golden]


@all_messages
def test_an_empty_message_is_no_bytes_and_back(name: str) -> None:
    decoded = message_class(name).FromString(b"")
    assert decoded.ListFields() == []
    assert decoded.SerializeToString(deterministic=True) == b""


@all_goldens
def test_a_field_of_a_newer_peer_is_read_over_and_passed_on(
    golden: str, name: str, member: str | None
) -> None:
    decoded = message_class(name).FromString(RECORDED[golden] + UNKNOWN)
    assert plain(decoded) == goldens.full_value(TABLE, TABLE.messages[name], member)
    assert decoded.SerializeToString(deterministic=True) == RECORDED[golden] + UNKNOWN


@all_goldens
def test_a_golden_of_a_peer_without_our_additions_keeps_everything_frozen(
    golden: str, name: str, member: str | None
) -> None:
    message = TABLE.messages[name]
    older = goldens.without_additions(TABLE, message, goldens.full_value(TABLE, message, member))
    expected = message_class(name).FromString(RECORDED[golden])
    clear_additions(expected)
    decoded = message_class(name).FromString(older)
    assert decoded == expected
    assert decoded.SerializeToString(deterministic=True) == older


def test_an_addition_is_absent_in_a_frame_of_a_peer_without_it() -> None:
    message = TABLE.messages["OperatorMessage"]
    observations = goldens.full_value(TABLE, message, "node_observations")
    assert goldens.without_additions(TABLE, message, observations) == b""


@pytest.mark.parametrize("number", [6, 99, 102])
def test_an_enum_number_that_is_unknown_survives_decoding(number: int) -> None:
    # Field 2 of NodeSelectorRequirement; what to do about it is for the reader to decide.
    decoded = NodeSelectorRequirement.FromString(bytes((0x10, number)))
    assert decoded.operator == number
    assert decoded.SerializeToString() == bytes((0x10, number))


def test_the_28_penalty_buckets_have_their_names() -> None:
    bounds = [str(2**power) for power in range(24)]
    texts = ["UNSPECIFIED", "ZERO", "HALF_DOLLAR", *bounds, "PINNED"]
    assert len(texts) == 28
    assert PenaltyBucket.items() == [
        (f"PENALTY_BUCKET_{text}", number) for number, text in enumerate(texts)
    ]

"""The frozen table is read strictly: a slip in it is an error, not a smaller contract."""

import pytest

from wirecontract.table import Field, Rpc, TableError, parse

HEAD = "file a.proto imports b.proto c.proto\n"


def test_a_field_line_is_read_with_all_its_parts() -> None:
    text = (
        HEAD + "message M frozen\n  1 a repeated N.E\n  2 b map<string,int32>\n  100 c N in o +\n"
    )
    assert parse(text).messages["M"].fields == {
        1: Field(1, "a", "N.E", repeated=True),
        2: Field(2, "b", "int32", key="string"),
        100: Field(100, "c", "N", oneof="o", added=True),
    }


def test_an_rpc_line_is_read_with_its_streaming_kinds() -> None:
    text = HEAD + "service S frozen\n  Get A -> B\n  Watch stream A -> stream B +\n"
    assert parse(text).services["S"].rpcs == {
        "Get": Rpc("Get", "A", "B"),
        "Watch": Rpc("Watch", "A", "B", request_stream=True, response_stream=True, added=True),
    }


def test_imports_comments_and_empty_lines_are_told_apart() -> None:
    contract = parse("# a remark\n\n" + HEAD + "\nmessage M added\n")
    assert contract.files["a.proto"].imports == {"b.proto", "c.proto"}
    assert contract.messages["M"].fields == {}


@pytest.mark.parametrize(
    "body",
    [
        "message M\n",
        "message M thawed\n",
        "thing M frozen\n",
        "message M frozen\n  1 a\n",
        "message M frozen\n  1 a string\n  1 b string\n",
        "message M frozen\n  1 reserved a\n  1 b string\n",
        "message M frozen\n  1 b string\n  1 reserved a\n",
        "message M frozen\nmessage M frozen\n",
        "enum E frozen\n  A 0\n",
        "enum E frozen\n  0 A\n  0 B\n",
        "service S frozen\n  Get A B\n",
        "  1 a string\n",
    ],
)
def test_a_line_that_cannot_be_read_or_says_a_thing_twice_is_refused(body: str) -> None:
    with pytest.raises(TableError, match=r"contract\.txt:\d+"):
        parse(HEAD + body)

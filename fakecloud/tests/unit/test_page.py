"""What a page can say: routes that share an address, forms, its own words for problems."""

import pytest

from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Cloud,
    Life,
    OutOfStock,
    Problem,
    Reply,
    ScriptError,
    VirtualClock,
    text_of,
    texts_of,
)


def words(problem: Problem) -> Reply:
    """Errors as an older cloud writes them."""
    text = f"<Error><Code>{problem.code}</Code></Error>"
    return Reply(400, text.encode(), {"Content-Type": "text/xml"})


def actions() -> Cloud:
    """A cloud with one address for everything."""
    cloud = Cloud("actions", clock=VirtualClock(), dialect=words)

    @cloud.route("POST", "/", op="Run", when=lambda call: call.form().get("Action") == "Run")
    def run(call: Call) -> Reply:
        return Reply(body={"ran": call.form()["Name"]})

    @cloud.route("POST", "/", op="Stop", when=lambda call: call.form().get("Action") == "Stop")
    def stop(call: Call) -> Reply:
        raise OutOfStock("nothing to stop")

    @cloud.route("GET", "/files/{name:path}", op="Read")
    def read(call: Call) -> Reply:
        return Reply(body=call.params["name"].encode())

    return cloud


async def test_routes_that_share_an_address_are_told_apart_by_their_request() -> None:
    cloud = actions()
    reply = await cloud.answer(Call("POST", "/", body=b"Action=Run&Name=x+y"))
    assert reply.body == {"ran": "x y"}
    await cloud.answer(Call("POST", "/", body=b"Action=Stop"))
    await cloud.answer(Call("POST", "/", body=b"Action=Fly"))
    assert cloud.counts == {"Run": 1, "Stop": 1, "?": 1}


async def test_a_dialect_words_every_problem() -> None:
    reply = await actions().answer(Call("POST", "/", body=b"Action=Stop"))
    assert reply.status == 400
    assert reply.encoded()[0] == b"<Error><Code>out_of_stock</Code></Error>"
    assert reply.headers == {"Content-Type": "text/xml"}


async def test_a_throttled_answer_says_when_to_come_again_in_every_dialect() -> None:
    cloud = actions()
    cloud.throttle.limit("*", rate=0.25, burst=1)
    await cloud.answer(Call("GET", "/files/a"))
    reply = await cloud.answer(Call("GET", "/files/a"))
    assert reply.headers["Retry-After"] == "4"


async def test_a_placeholder_can_be_a_whole_path() -> None:
    reply = await actions().answer(Call("GET", "/files/a/b.json"))
    assert reply.encoded() == (b"a/b.json", "application/octet-stream")


async def test_a_mistake_in_a_page_is_not_an_answer() -> None:
    cloud = Cloud("wrong", clock=VirtualClock())
    things = cloud.collection("things", Life("on"))

    @cloud.route("POST", "/", op="Act")
    def act(call: Call) -> Reply:
        things.create("t-1", {})
        things.act("t-1", "fly")
        return Reply()

    with pytest.raises(ScriptError, match="no verb 'fly'"):
        await cloud.answer(Call("POST", "/"))


def test_a_kind_of_object_has_one_collection() -> None:
    cloud = Cloud("twice")
    cloud.collection("things", Life("on"))
    with pytest.raises(ScriptError, match="'things'"):
        cloud.collection("things", Life("on"))


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff", b'"text"'])
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest, match="JSON"):
        Call("POST", "/", body=body).json()


def test_a_body_that_is_no_text_is_no_form() -> None:
    with pytest.raises(BadRequest, match="form"):
        Call("POST", "/", body=b"\xff").form()


@pytest.mark.parametrize("value", [None, "", 1, ["a"]])
def test_a_field_that_must_be_text_is_nothing_else(value: object) -> None:
    with pytest.raises(BadRequest, match="name is a text"):
        text_of({"name": value}, "name")


@pytest.mark.parametrize("value", ["a", {"a": 1}, [1]])
def test_a_map_of_texts_is_nothing_else(value: object) -> None:
    with pytest.raises(BadRequest, match="map of texts"):
        texts_of({"tags": value}, "tags")
    assert texts_of({}, "tags") == {}

"""The ways in which clouds cut a listing into pages, and read a query."""

import re

import pytest

from bigfleet_fakecloud import (
    BadRequest,
    Call,
    Resource,
    link_header,
    next_link,
    numbered_page,
    offset_page,
    operation_headers,
    page,
)

ITEMS = [Resource(f"h-{n:02d}", "running", 0.0, 0.0, 0, {}, {}) for n in range(23)]


def a_call(**query: str) -> Call:
    return Call("GET", "/v1/hosts", query, origin="https://cloud:1")


@pytest.mark.parametrize("size", [1, 5, 23, 24, 50])
def test_numbered_pages_show_everything_once(size: int) -> None:
    shown: list[str] = []
    number: int | None = 1
    while number is not None:
        part = numbered_page(ITEMS, a_call(page=str(number), per_page=str(size)))
        assert part.total == len(ITEMS)
        shown += [item.ref for item in part.items]
        number = part.next
    assert shown == [item.ref for item in ITEMS]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_offset_pages_show_everything_once(size: int) -> None:
    shown: list[str] = []
    while part := offset_page(ITEMS, a_call(offset=str(len(shown)), limit=str(size))):
        shown += [item.ref for item in part]
    assert shown == [item.ref for item in ITEMS]


@pytest.mark.parametrize("query", [{"page": "0"}, {"per_page": "51"}, {"per_page": "0"}])
def test_a_page_that_the_cloud_would_refuse_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        numbered_page(ITEMS, a_call(**query))


def test_links_lead_from_page_to_page_and_keep_the_rest_of_the_query() -> None:
    call = a_call(page="2", per_page="10", label="a b")
    header = link_header(call, numbered_page(ITEMS, call))["Link"]
    found = {name: url for url, name in re.findall(r'<([^>]*)>; rel="(\w+)"', header)}
    assert set(found) == {"first", "prev", "next", "last"}
    assert found["next"] == "https://cloud:1/v1/hosts?per_page=10&label=a+b&page=3"
    assert link_header(a_call(), numbered_page(ITEMS[:3], a_call())) == {}


def test_a_continuation_is_an_address_with_a_cursor() -> None:
    first = page(ITEMS, 20)
    link = next_link(a_call(), first.cursor, "$skiptoken")
    assert link is not None
    assert link.startswith("https://cloud:1/v1/hosts?%24skiptoken=")
    assert next_link(a_call(), page(ITEMS, 23).cursor) is None


def test_a_name_that_comes_twice_keeps_both_values() -> None:
    call = Call("GET", "/", {"label": "b"}, pairs=(("label", "a"), ("x", "1"), ("label", "b")))
    assert call.values("label") == ["a", "b"]
    assert call.values("absent") == []
    assert a_call(label="one").values("label") == ["one"]


def test_a_long_operation_is_announced_in_headers() -> None:
    headers = operation_headers("https://c/op/1", retry_after=2.0, location="https://c/vm/1")
    assert headers["Azure-AsyncOperation"] == "https://c/op/1"
    assert headers["Location"] == "https://c/vm/1"
    assert headers["Retry-After"] == "2"

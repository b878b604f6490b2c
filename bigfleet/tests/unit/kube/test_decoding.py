"""Whatever an API server, or a proxy before it, sends: an object, a bad one, or a KubeError."""

from __future__ import annotations

import msgspec
import pytest

from bigfleet.kube import DecodeError
from bigfleet.kube.decoding import EventKind, decode, decode_event, decode_page
from bigfleet.kube.errors import ServerError, api_error
from bigfleet.kube.objects import Object

NO_TEXT = b'{"metadata": {"name": "\xff"}}'


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'{"type": "ADDED"}',
        b'{"type": "LOST", "object": {}}',
        b'{"type": "ADDED", "object": null}',
        b'{"type": "ADDED", "object": [1]}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": 5}}}',
        b'{"type": "BOOKMARK", "object": {"metadata": null}}',
        b'{"type": "ERROR", "object": {"code": "many"}}',
    ],
)
def test_a_line_that_is_no_event_ends_the_watch_and_not_the_process(line: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_event(line, Object)


def test_an_object_that_is_no_text_is_a_bad_one() -> None:
    event = decode_event(b'{"type": "ADDED", "object": ' + NO_TEXT + b"}", Object)
    assert event.kind is EventKind.BAD
    page = decode_page(b'{"items": [{"metadata": {"name": "a"}}, ' + NO_TEXT + b"]}", Object)
    assert ([one.metadata.name for one in page.items], len(page.bad)) == (["a"], 1)
    with pytest.raises(DecodeError):
        decode(NO_TEXT, Object)


@pytest.mark.parametrize("body", [b"", b"null", b"<html>", b'{"items": {}}', b"\xff"])
def test_a_list_that_is_none_is_said(body: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_page(body, Object)


def test_a_refusal_keeps_its_code_whatever_its_words_are() -> None:
    error = api_error(503, b'{"message": "caf\xe9"}')
    assert isinstance(error, ServerError)
    assert error.code == 503


def test_a_raw_object_is_kept_as_it_came() -> None:
    assert bytes(decode(NO_TEXT, msgspec.Raw)) == NO_TEXT
